"""The discrete Laplace sampler: its table and its code; what it draws is in the table of sampled laws."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from searchblend.core.randomness import SystemRandomness
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian
from searchblend_lab.evidence.laws.sampled_noise import laplace_draws
from searchblend_lab.evidence.laws.sampler import check_tail, total_variation

SCALES = [Fraction(1, 2), Fraction(1), Fraction(37, 10), Fraction(20)]


def test_short_tail_is_rejected_by_the_tail_check():
    noise = DiscreteLaplace(Fraction(1))
    with pytest.raises(AssertionError):
        check_tail(np.clip(laplace_draws(Fraction(1)), -5, 5), noise)


RATES = [*(1 / scale for scale in SCALES), Fraction(2), Fraction(0.05), Fraction(1, 1000), Fraction(8), Fraction(60)]
rates = pytest.mark.parametrize("rate", RATES, ids=lambda rate: f"rate={float(rate):.4g}")


@rates
def test_table_is_as_near_as_it_says(rate: Fraction):
    noise = DiscreteLaplace(rate)
    law = noise.sampled_probabilities()
    assert sum(law.values()) == 1
    assert all(law[y] == law[-y] for y in law)
    assert 0 < total_variation(law, rate) <= noise.distance


@rates
def test_distance_notices_a_wrong_table(rate: Fraction):
    """One unit of a 63-bit table moved per value, or the last value cut off, is beyond the stated distance."""
    noise = DiscreteLaplace(rate)
    law = noise.sampled_probabilities()
    moved = dict(law)
    shift = Fraction(len(law) + 4, 2**63)
    moved[0] -= shift
    moved[max(law) + 1] = shift
    assert total_variation(moved, rate) > noise.distance


@rates
def test_at_least_is_the_tail_of_the_sampled_law(rate: Fraction):
    noise = DiscreteLaplace(rate)
    law = noise.sampled_probabilities()
    for value in range(-6, 12):
        tail = sum((p for y, p in law.items() if y >= value), Fraction(0))
        assert float(tail) == pytest.approx(noise.at_least(value), abs=noise.distance, rel=1e-9)


@rates
def test_variance_is_that_of_the_law(rate: Fraction):
    noise = DiscreteLaplace(rate)
    second_moment = sum(p * y * y for y, p in noise.sampled_probabilities().items())
    assert float(second_moment) == pytest.approx(noise.variance, rel=1e-6, abs=1e-15)


def test_a_word_is_read_as_the_law_says():
    """The sampler's own code at both edges of every interval of its table, both signs."""
    noise = DiscreteLaplace(Fraction(2))
    law = noise.sampled_probabilities()
    start = 1 << 63
    for magnitude in range(max(law) + 1):
        width = int(law[magnitude] * (2**63 if magnitude == 0 else 2**64))
        for uniform in (start - 1, start - width):
            words = b"".join((uniform << 1 | sign).to_bytes(8, "little") for sign in (0, 1))
            assert noise.sample(2, _fixed(words)).tolist() == [magnitude, -magnitude]
        start -= width
    assert start == 0


def _fixed(content: bytes) -> SimpleNamespace:
    return SimpleNamespace(take=lambda n: content[:n])


def test_a_floor_beyond_the_table_is_never_reached():
    noise = RoundedGaussian(Fraction(1))
    positions, values = noise.reaching(noise.reach + 1, 100_000, SystemRandomness())
    assert len(positions) == len(values) == 0
    assert len(noise.reaching(-noise.reach, 1000, SystemRandomness())[0]) == 1000
