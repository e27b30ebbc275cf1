"""Sums, caps, groups."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchblend.accounting.client_spends import randomized_response_spend
from searchblend.accounting.spend import Spend
from searchblend.accounting.totals import BASIC, BudgetCap, default_delta, fits, for_group, remaining, total_of
from searchblend.core.documents import decode, encode
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget, Neighbors

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_REMOVE_ONE


def generic(epsilon, delta=0.0, neighbors=REPLACE):
    return Spend(epsilon, delta, neighbors, "any")


POOL = [generic(0.5, 1e-7), generic(0.05), randomized_response_spend(0.3, 20), randomized_response_spend(1.0, 3)]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(POOL), max_size=6), st.sampled_from(POOL), st.sampled_from([1e-3, 1e-5]))
def test_one_more_release_never_lowers_a_total(spends, one_more, delta):
    before, after = total_of(spends, delta), total_of([*spends, one_more], delta)
    assert after.summed_epsilon > before.summed_epsilon
    assert after.loss_distribution_epsilon >= before.loss_distribution_epsilon
    assert after.epsilon >= before.epsilon


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(POOL), min_size=1, max_size=6), st.randoms())
def test_the_order_of_releases_does_not_matter(spends, random):
    shuffled = random.sample(spends, len(spends))
    assert total_of(spends, 1e-5) == total_of(shuffled, 1e-5)


@given(st.integers(1, 40), st.sampled_from([0.1, 0.3, 0.7, 1e-3, 2.5]))
def test_exactly_at_the_cap_fits_and_nothing_more(times, epsilon):
    cap = Budget(float(f"{times * epsilon:.6g}"), 1e-6)
    assert fits([generic(epsilon)] * times, cap)
    assert not fits([generic(epsilon)] * times + [generic(1e-15)], cap)


def test_delta_is_capped_too():
    cap = Budget(100.0, 3e-6)
    assert fits([generic(1.0, 1e-6)] * 3, cap)
    assert not fits([generic(1.0, 1e-6)] * 4, cap)


def test_only_planned_releases_may_use_the_smaller_total():
    year = [randomized_response_spend(0.1, 100)] * 52
    assert not fits(year, Budget(0.6, 1e-6))
    assert fits(year, Budget(0.6, 1e-6), planned=True)
    assert not fits(year, Budget(0.5, 1e-6), planned=True)


def test_what_is_left():
    assert remaining([generic(0.1, 1e-7)] * 3, Budget(1.0, 1e-6)) == (0.7, 7e-7)
    assert remaining([generic(2.0, 1e-5)], Budget(1.0, 1e-6)) == (0.0, 0.0)
    epsilon, delta = remaining([randomized_response_spend(0.1, 100)] * 52, Budget(0.6, 1e-6), planned=True)
    assert 0.05 < epsilon < 0.07
    assert delta == 1e-6


def test_a_sum_whose_delta_is_too_large_says_nothing():
    total = total_of([generic(1.0, 1e-5)], 1e-6)
    assert (total.basic_epsilon, total.summed_epsilon) == (math.inf, 1.0)
    assert total.as_json()["epsilon"] is None
    assert total_of([], 1e-6).epsilon == 0


def test_mixed_relations_are_added_under_replace_one():
    total = total_of([generic(1.0), generic(1.0, neighbors=ADD)], 1e-6)
    assert (total.neighbors, total.summed_epsilon) == (REPLACE, 3.0)
    assert total_of([generic(1.0, neighbors=ADD)], 1e-6).neighbors is ADD


@pytest.mark.parametrize("ids", [1, 2, 5])
def test_group_privacy_is_the_recursion(ids):
    """P₀(S) ≤ e^ε P₁(S) + δ, applied k times."""
    epsilon, delta = 0.7, 1e-6
    slack = 0.0
    for _ in range(ids):
        slack = math.exp(epsilon) * slack + delta
    assert for_group(Budget(epsilon, delta), ids) == (ids * epsilon, pytest.approx(slack))


def test_group_privacy_ends_at_one():
    assert for_group(Budget(4.0, 1e-5), 5)[1] == 1.0
    assert for_group(Budget(400.0, 1e-5), 5) == (2000.0, 1.0)
    with pytest.raises(InvalidParameter):
        for_group(Budget(1.0, 1e-5), 0)


def test_caps():
    cap = BudgetCap(Budget(1.0, 1e-6), Budget(4.0, 1e-5), planned=True)
    assert decode(BudgetCap, encode(cap)) == cap
    assert decode(BudgetCap, encode(BudgetCap(lifetime=Budget(1.0, 1e-6)))) == BudgetCap(lifetime=Budget(1.0, 1e-6))
    with pytest.raises(InvalidParameter):
        BudgetCap()


def test_a_total_delta_must_be_a_probability():
    assert default_delta([generic(1.0, 1e-5)]) == pytest.approx(1.1e-5)
    assert total_of([generic(1.0)], 1e-5).method == BASIC or total_of([generic(1.0)], 1e-5).epsilon < 1.0
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidParameter):
            total_of([], delta)
