"""The written-down pair is at least as easy to tell apart as every pair of inputs, in both directions, at every α."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchblend.accounting.client_spends import dominating_law, randomized_response_spend
from searchblend.accounting.spend import PairLaw
from searchblend.core.errors import InvalidParameter

ROUNDING = 1e-13


def excess(upper, lower, alpha):
    return excess_over(*over_one_denominator([upper, lower]), alpha)


def over_one_denominator(rows) -> tuple[list[list[int]], int]:
    """Whole numbers and what to divide them by: fractions would be reduced at every step."""
    exact = [[Fraction(p) for p in row] for row in rows]
    below = math.lcm(*(p.denominator for row in exact for p in row))
    return [[p.numerator * (below // p.denominator) for p in row] for row in exact], below


def excess_over(rows: list[list[int]], below: int, alpha: Fraction) -> Fraction:
    n, d = alpha.numerator, alpha.denominator
    return Fraction(sum(max(d * p - n * q, 0) for p, q in zip(*rows, strict=True)), d * below)


def falls_short(law: PairLaw, rows, alphas) -> list[Fraction]:
    """Where some ordered pair of rows is easier to tell apart than the law says."""
    pairs, below = over_one_denominator(rows)
    stated = over_one_denominator([law.upper, law.lower])
    return [
        alpha
        for alpha in alphas
        if max(excess_over([p, q], below, alpha) for p, q in permutations(pairs, 2))
        > excess_over(*stated, alpha) + ROUNDING
    ]


def distributions(size):
    weights = st.lists(st.integers(0, 12), min_size=size, max_size=size).filter(any)
    return weights.map(lambda numbers: tuple(Fraction(number, sum(numbers)) for number in numbers))


CHANNELS = st.integers(2, 5).flatmap(lambda size: st.lists(distributions(size), min_size=2, max_size=5))
ALPHAS = st.lists(st.fractions(0, 30, max_denominator=1000), min_size=1, max_size=20)


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(CHANNELS, ALPHAS)
def test_it_dominates_every_ordered_pair(rows, alphas):
    law = dominating_law(combinations(rows, 2))
    ratios = [p / q for one, other in permutations(rows, 2) for p, q in zip(one, other, strict=True) if q]
    assert falls_short(law, rows, sorted({*alphas, *ratios})) == []


def test_no_single_pair_dominates_these():
    """One pair is worst at small α, another at large: the law has to bound both, and the check notices."""
    half = Fraction(1, 2)
    often, strongly = (half, half, 0, 0), (Fraction(1, 5), Fraction(4, 5), 0, 0)
    rarely = (Fraction(1, 1000), Fraction(999, 1000), 0, 0)
    rows = [tuple(map(Fraction, row)) for row in (often, strongly, rarely)]
    alphas = [Fraction(n, 10) for n in range(1, 6000, 7)]
    assert falls_short(dominating_law(combinations(rows, 2)), rows, alphas) == []
    for pair in combinations(rows[:2], 2):
        assert falls_short(dominating_law([pair]), rows, alphas)


def test_outcomes_whose_multiples_coincide_are_not_lost():
    upper = [Fraction(4, 28), *[Fraction(1, 28)] * 4, Fraction(20, 28)]
    lower = [Fraction(8, 28), *[Fraction(2, 28)] * 4, Fraction(12, 28)]
    law = dominating_law([(upper, lower)])
    assert falls_short(law, [upper, lower], [Fraction(n, 100) for n in range(300)]) == []


@pytest.mark.parametrize("n_values", [2, 3, 100])
def test_randomized_response_is_met_exactly(n_values):
    truth = Fraction(3, 2 + n_values)
    lie = (1 - truth) / (n_values - 1)
    rows = [tuple(truth if i == j else lie for j in range(n_values)) for i in range(min(n_values, 3))]
    law = dominating_law(combinations(rows, 2))
    assert len(law.upper) == (2 if n_values == 2 else 3)
    assert law.step.largest == pytest.approx(math.log(3), abs=1e-12)
    assert law.step.infinite == 0
    for alpha in (Fraction(1, 2), Fraction(1), Fraction(2)):
        assert float(excess(law.upper, law.lower, alpha)) == pytest.approx(float(excess(rows[0], rows[1], alpha)))


def test_what_only_one_input_can_say_has_infinite_loss():
    law = dominating_law([((Fraction(1, 100), Fraction(99, 100)), (Fraction(0), Fraction(1)))])
    assert law.step.infinite == pytest.approx(0.01)
    assert law.step.excess(50.0) == pytest.approx(0.01)


def test_a_channel_that_says_nothing_costs_nothing():
    same = (Fraction(1, 3), Fraction(2, 3))
    for pairs in ([], [(same, same)]):
        assert dominating_law(pairs).step.excess(0.0) == 0


def test_randomized_response_of_one_value_is_no_mechanism():
    with pytest.raises(InvalidParameter, match="at least 2"):
        randomized_response_spend(1.0, 1)
