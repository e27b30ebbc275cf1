"""The laws of our local mechanisms, held to their enumerated channels."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchblend.accounting.client_spends import (
    randomized_response_spend,
    subset_selection_spend,
    two_stage_spend,
)
from searchblend.accounting.dominating_pair import dominating_law
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection

ROUNDING = 1e-13


def excess(upper, lower, alpha):
    return float(sum(max(Fraction(p) - alpha * Fraction(q), 0) for p, q in zip(upper, lower, strict=True)))


def falls_short(law, rows, steps=8):
    top = law.step.largest
    alphas = [Fraction(math.exp(top * step / steps)) for step in range(-steps, steps + 1)]
    return [
        (p, q)
        for p, q in permutations(rows, 2)
        if any(excess(p, q, alpha) > excess(law.upper, law.lower, alpha) + ROUNDING for alpha in alphas)
    ]


def channel(widths, budget, **options):
    head = HeadList((f"q{i}", [f"u{j}" for j in range(n)]) for i, n in enumerate(widths))
    params = BlenderParams(budget, **options)
    probabilities = ReportProbabilities.of(head, params)
    rows = [probabilities.channel_row(q, u) for q, width in enumerate(head.n_urls) for u in range(width)]
    return probabilities, rows


@pytest.mark.thorough
@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.sampled_from([0.5, 2.0, 4.0]))
def test_two_stage_dominates_every_pair_of_cells(widths, epsilon):
    budget = Budget(epsilon, 1e-3)
    probabilities, rows = channel(widths, budget)
    assert falls_short(two_stage_spend(probabilities, budget).law, rows) == []


def test_the_check_notices_a_pair_left_out():
    _, rows = channel([3, 3, 1], Budget(4.0, 1e-3))
    assert falls_short(dominating_law([(rows[0], rows[1])]), rows)


def test_two_stage_uses_less_than_it_states():
    """The real loss is ε_Q + ln(k_q t_q): 3.758 of the stated 4 at k_q = 3."""
    budget = Budget(4.0, 1e-5)
    probabilities, _ = channel([2] * 50, budget)
    spend = two_stage_spend(probabilities, budget)
    keep_url = math.exp(0.6) / (math.exp(0.6) + 2)
    assert spend.law.step.largest == pytest.approx(3.4 + math.log(3 * keep_url), abs=1e-3)
    assert (spend.epsilon, spend.delta) == (4.0, 1e-5)


def test_several_cells_are_several_steps():
    budget = Budget(4.0, 1e-5)
    probabilities, _ = channel([2, 3], budget, records_per_client=3)
    ((_, times),) = two_stage_spend(probabilities, budget, records_per_client=3).steps
    assert times == 3


@pytest.mark.parametrize(("n_items", "size"), [(1, 1), (4, 1), (4, 2), (5, 4), (3, 3)])
def test_subset_selection_dominates_every_pair_of_inputs(n_items, size):
    mechanism = SubsetSelection.of(Fraction(1), n_items, size)
    rows = [subset_row(mechanism, item) for item in [*range(n_items), None]]
    assert all(sum(row) == 1 for row in rows)
    spend = subset_selection_spend([(Fraction(1), mechanism)], 1.0)
    assert falls_short(spend.law, rows) == []
    assert spend.law.step.largest <= 1.0 + 1e-12


def subset_row(mechanism, item):
    sink, with_item, without = mechanism.law(item)
    sets = combinations(range(mechanism.n_items), mechanism.subset_size)
    return [sink, *(with_item if item in chosen else without for chosen in sets)]


@pytest.mark.parametrize(("n_items", "size"), [(1, 1), (4, 1), (4, 2), (4, 4)])
def test_plain_subset_selection_dominates_every_pair_of_inputs(n_items, size):
    mechanism = PlainSubsetSelection.of(Fraction(1), n_items, size)
    named, other = mechanism.law()
    items = range(n_items + 1)
    rows = [[named if item in chosen else other for chosen in combinations(items, size)] for item in items]
    assert all(sum(row) == 1 for row in rows)
    assert falls_short(subset_selection_spend([(Fraction(1), mechanism)], 1.0).law, rows) == []


def test_coin_chances_must_sum_to_one():
    with pytest.raises(InvalidParameter, match="sum to 1"):
        subset_selection_spend([(Fraction(1, 2), SubsetSelection.of(Fraction(1), 4, 2))], 1.0)


def test_randomized_response_of_one_value_is_no_mechanism():
    with pytest.raises(InvalidParameter, match="at least 2"):
        randomized_response_spend(1.0, 1)
