"""e^x in integers."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from searchblend.mechanisms.fixed_point import FRACTION_BITS, exp_bounds, exp_fraction_bounds


def test_e_to_36_digits():
    low, high = exp_bounds(Fraction(1))
    digits = 271828182845904523536028747135266249
    assert low * 10**35 >> FRACTION_BITS == digits
    assert high * 10**35 >> FRACTION_BITS == digits


@pytest.mark.parametrize("x", [Fraction(17, 5), Fraction(3, 5), Fraction(-2), Fraction(1, 10**9), Fraction(64)])
def test_agrees_with_the_platform(x: Fraction):
    low, high = exp_fraction_bounds(x)
    assert float(low) == pytest.approx(math.exp(x), rel=1e-15)
    assert low < high


def test_the_same_bits_on_every_machine():
    """Pinned: a port that differs in one bit may give a device other thresholds."""
    low, high = exp_bounds(Fraction(17, 5))
    assert low == 10196254886784060100159039075547698935988
    assert high == 10196254886784060100159039075547698936060


def test_a_negative_exponent_is_the_reciprocal():
    (low, high), (inverse_low, inverse_high) = exp_fraction_bounds(Fraction(2)), exp_fraction_bounds(Fraction(-2))
    assert inverse_low == 1 / high
    assert inverse_high == 1 / low
