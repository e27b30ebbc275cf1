"""The law of the noise in numbers, and what the sampler does with given words."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from searchblend.core.errors import InvalidParameter
from searchblend.core.randomness import SystemRandomness, Tape
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace


def words(*values: int) -> Tape:
    return Tape(b"".join(value.to_bytes(8, "little") for value in values))


def test_known_values_of_the_law():
    noise = DiscreteLaplace(Fraction(2))
    a = math.exp(-2)
    assert noise.scale == 0.5
    assert noise.decay == pytest.approx(a)
    assert noise.variance == pytest.approx(2 * a / (1 - a) ** 2)
    assert noise.at_least(0) == pytest.approx(1 / (1 + a))
    assert noise.at_least(1) == pytest.approx(a / (1 + a))
    assert noise.at_least(-3) == pytest.approx(1 - noise.at_least(4))


def test_wide_noise_has_the_continuous_variance():
    assert DiscreteLaplace(Fraction(1, 1000)).variance == pytest.approx(2e6, rel=1e-6)


def test_words_that_decide():
    """Bits 1-63 all set: no noise. All clear: the largest magnitude. The lowest bit is the sign."""
    noise = DiscreteLaplace(Fraction(2))
    largest = max(noise.sampled_probabilities())
    top = (1 << 64) - 1
    assert noise.sample(4, words(top, top - 1, 0, 1)).tolist() == [0, 0, largest, -largest]


def test_one_word_per_draw():
    source = words(*range(5))
    assert len(DiscreteLaplace(Fraction(1)).sample(4, source)) == 4
    assert source.left == 8


def test_no_draw_takes_nothing():
    assert DiscreteLaplace(Fraction(1)).sample(0, Tape(b"")).tolist() == []


def test_more_draws_than_a_chunk():
    sample = DiscreteLaplace(Fraction(1)).sample((1 << 20) + 5, SystemRandomness())
    assert sample.dtype == np.int64
    assert len(np.unique(sample[-5:].tolist() + sample[:100].tolist())) > 1


def test_the_table_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        DiscreteLaplace(Fraction(1))._table.survival[0] = 0


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(-1), Fraction(1, 10**6)])
def test_noise_that_drowns_any_log_is_refused(rate: Fraction):
    with pytest.raises(InvalidParameter, match="epsilon: too small"):
        DiscreteLaplace(rate)


def test_narrow_noise_is_almost_none():
    noise = DiscreteLaplace(Fraction(100))
    assert noise.sampled_probabilities() == {0: 1}
    assert noise.sample(3, SystemRandomness()).tolist() == [0, 0, 0]
