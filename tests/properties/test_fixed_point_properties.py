"""The integer exponential really bounds e^x, against 80 decimal digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from searchblend.mechanisms.fixed_point import ONE, exp_bounds, exp_fraction_bounds
from searchblend.mechanisms.randomized_response import keep_probability
from strategies import EXPONENTS

SLACK = Fraction(1, 10**70)
"""What 80 digits leave undecided, relative to the value."""


def exact_exp(x: Fraction) -> Fraction:
    with localcontext(prec=80):
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())


@given(EXPONENTS)
def test_bounds_hold_the_value(x: Fraction):
    low, high = exp_fraction_bounds(x)
    value = exact_exp(x)
    assert 0 < low < high
    assert low <= value * (1 + SLACK)
    assert high >= value * (1 - SLACK)


@given(EXPONENTS)
def test_bounds_are_narrow(x: Fraction):
    low, high = exp_fraction_bounds(x)
    assert high / low - 1 < Fraction(1, 2**110)


@given(EXPONENTS, EXPONENTS)
def test_bounds_keep_the_order(x: Fraction, y: Fraction):
    assume(y - x > Fraction(1, 2**100))
    assert exp_fraction_bounds(x)[1] < exp_fraction_bounds(y)[0]


def test_zero_is_one():
    low, high = exp_bounds(Fraction(0))
    assert low == ONE
    assert high <= ONE + 1


@given(st.fractions(max_value=Fraction(-1, 10**9), max_denominator=10**9))
def test_integer_form_is_for_exponents_of_zero_or_more(x: Fraction):
    with pytest.raises(ValueError, match="x ≥ 0"):
        exp_bounds(x)


@given(st.floats(0.01, 20).map(Fraction), st.floats(0, 0.5).map(Fraction), st.integers(1, 1000))
def test_keep_probability_is_just_under_the_printed_one(epsilon: Fraction, delta: Fraction, k: int):
    kept = keep_probability(epsilon, delta, k)
    growth = exact_exp(epsilon)
    printed = (growth + delta / 2 * (k - 1)) / (growth + k - 1)
    assert 0 <= printed * (1 + SLACK) - kept < Fraction(1, 2**100)


@given(st.floats(0.01, 20).map(Fraction), st.floats(0, 0.5).map(Fraction), st.integers(2, 1000))
def test_one_stage_stays_within_its_budget(epsilon: Fraction, delta: Fraction, k: int):
    """t ≤ e^ε (1−t)/(k−1) + δ/2, and in the other direction without any δ."""
    kept = keep_probability(epsilon, delta, k)
    lie = (1 - kept) / (k - 1)
    growth = exp_fraction_bounds(epsilon)[0]
    assert kept <= growth * lie + delta / 2
    assert lie <= growth * kept
