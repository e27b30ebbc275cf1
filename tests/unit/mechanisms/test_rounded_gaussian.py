"""The law of the rounded Gaussian in numbers, its distance from the ideal with 60 digits, and what the sampler does."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from searchblend.core.errors import InvalidParameter
from searchblend.core.randomness import SystemRandomness, Tape
from searchblend.mechanisms.rounded_gaussian import (
    LARGEST_SIGMA,
    RoundedGaussian,
    distance_bound,
    gaussian_at_least,
    on_sigma_grid,
)

SIGMAS = [Fraction(1, 8), Fraction(1, 4), Fraction(1), Fraction(1801, 1024), Fraction(63, 8), Fraction(45)]


def words(*values: int) -> Tape:
    return Tape(b"".join(value.to_bytes(8, "little") for value in values))


def normal_between(low: Decimal, high: Decimal) -> Decimal:
    """P(low ≤ Z < high), standard normal, by the alternating Taylor series of its density: not what the table uses."""
    total = Decimal(0)
    term_low, term_high, n = low, high, 0
    while n < 600:
        total += (term_high - term_low) / (2 * n + 1)
        n += 1
        term_low *= -low * low / (2 * n)
        term_high *= -high * high / (2 * n)
    pi = Decimal(
        "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
    )
    return total / (2 * pi).sqrt()


@pytest.mark.thorough
@pytest.mark.parametrize("sigma", SIGMAS)
def test_distance_from_the_ideal_law_with_100_digits(sigma):
    noise = RoundedGaussian(sigma)
    law = noise.sampled_probabilities()
    assert sum(law.values()) == 1
    with localcontext(prec=130):
        scale = Decimal(sigma.numerator) / Decimal(sigma.denominator)
        half = Decimal("0.5")
        ideal = {y: normal_between((y - half) / scale, (y + half) / scale) for y in law if abs(y) / scale < 12}
        inside = sum(abs(Decimal(p.numerator) / p.denominator - ideal.get(y, Decimal(0))) for y, p in law.items())
        beyond = 1 - sum(ideal.values())
        assert (inside + beyond) / 2 <= Decimal(noise.distance)
    assert noise.distance <= distance_bound(float(sigma))


def test_known_values_of_the_law():
    noise = RoundedGaussian(Fraction(2))
    assert noise.scale == 2.0
    assert noise.at_least(0) == pytest.approx(norm.sf(-0.25))
    assert noise.at_least(3) == pytest.approx(norm.sf(1.25))
    assert noise.at_least(-3) == pytest.approx(1 - noise.at_least(4))
    assert noise.at_least(60) == pytest.approx(norm.sf(29.75), rel=1e-9)
    law = noise.sampled_probabilities()
    for y in range(16):
        assert float(law[y]) == pytest.approx(noise.at_least(y) - noise.at_least(y + 1), rel=1e-4, abs=1e-18)


def test_rounding_adds_a_twelfth():
    for sigma in (Fraction(1), Fraction(8), Fraction(300)):
        assert RoundedGaussian(sigma).variance == pytest.approx(float(sigma) ** 2 + 1 / 12, abs=2e-6)


def test_narrow_noise_is_almost_none():
    noise = RoundedGaussian(Fraction(1, 8))
    assert max(noise.sampled_probabilities()) == 1
    assert noise.variance == pytest.approx(2 * norm.sf(4), rel=1e-9)


def test_words_that_decide():
    """Bits 1-63 all set: no noise. All clear: the largest magnitude. The lowest bit is the sign."""
    noise = RoundedGaussian(Fraction(2))
    top = (1 << 64) - 1
    assert noise.reach == max(noise.sampled_probabilities())
    assert noise.sample(4, words(top, top - 1, 0, 1)).tolist() == [0, 0, noise.reach, -noise.reach]


def test_one_word_per_draw():
    source = words(*range(5))
    assert len(RoundedGaussian(Fraction(1)).sample(4, source)) == 4
    assert source.left == 8


@pytest.mark.parametrize("sigma", [Fraction(0), Fraction(-1), Fraction(1, 9), Fraction(LARGEST_SIGMA + 1)])
def test_noise_without_a_table_is_refused(sigma):
    with pytest.raises(InvalidParameter, match="sigma: expected Gaussian noise of 1/8 to 4096"):
        RoundedGaussian(sigma)


def test_sigma_off_the_grid_is_refused():
    with pytest.raises(InvalidParameter, match="1/1024"):
        RoundedGaussian(Fraction(1, 3))


def test_the_grid_is_never_below():
    for value in (7.861, 8.0, 0.2, math.pi):
        assert 0 <= on_sigma_grid(value) - Fraction(value) < Fraction(1, 1024)
    assert on_sigma_grid(1e-9) == Fraction(1, 8)


def test_a_long_table_is_made_in_seconds():
    noise = RoundedGaussian(Fraction(2048))
    assert np.std(noise.sample(200_000, SystemRandomness())) == pytest.approx(2048, rel=0.02)
    assert gaussian_at_least(9 * 2048, 2048.0) > 2.0**-64
    assert noise.reach > 9 * 2048
    assert (np.diff(noise._table.survival.astype(np.float64)) <= 0).all()


@pytest.mark.parametrize("m", [1, 2, 700, 5000, 15_000, 18_500])
def test_entries_of_a_long_table_do_not_drift(m):
    """Each entry is made from the one before; after thousands of them it is still the nearest integer."""
    sigma = 2048
    with localcontext(prec=130):
        z = (Decimal(m) - Decimal("0.5")) / sigma
        ideal = (1 - 2 * normal_between(Decimal(0), z)) * 2**63
    assert abs(int(RoundedGaussian(Fraction(sigma))._table.survival[m - 1]) - ideal) <= Decimal("0.50002")
