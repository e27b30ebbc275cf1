"""Budgets and parameters: what is accepted, what is refused, how a budget is shared."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from strategies import BUDGETS, blender_params

OUTSIDE_OPEN_UNIT = st.one_of(st.floats(max_value=0), st.floats(min_value=1), st.just(math.nan))


@given(st.one_of(st.floats(max_value=0), st.sampled_from([math.inf, math.nan])))
def test_epsilon_must_be_positive_and_finite(epsilon: float):
    with pytest.raises(InvalidParameter) as refused:
        Budget(epsilon, 1e-5)
    assert refused.value.field == "epsilon"


@given(OUTSIDE_OPEN_UNIT)
def test_delta_lies_strictly_between_zero_and_one(delta: float):
    with pytest.raises(InvalidParameter) as refused:
        Budget(1.0, delta)
    assert refused.value.field == "delta"


@given(BUDGETS, OUTSIDE_OPEN_UNIT)
def test_head_fraction_lies_strictly_between_zero_and_one(budget: Budget, fraction: float):
    with pytest.raises(InvalidParameter) as refused:
        BlenderParams(budget, head_fraction=fraction)
    assert refused.value.field == "head_fraction"


@given(BUDGETS, OUTSIDE_OPEN_UNIT.filter(lambda fraction: fraction != 1))
def test_query_budget_fraction_is_at_most_one(budget: Budget, fraction: float):
    with pytest.raises(InvalidParameter) as refused:
        BlenderParams(budget, query_budget_fraction=fraction)
    assert refused.value.field == "query_budget_fraction"


@given(BUDGETS, st.one_of(st.integers(max_value=0), st.floats(), st.booleans()))
@pytest.mark.parametrize("field", ["max_head_queries", "records_per_client"])
def test_counts_are_whole_numbers_of_at_least_one(field: str, budget: Budget, value: object):
    with pytest.raises(InvalidParameter) as refused:
        BlenderParams(budget, **{field: value})
    assert refused.value.field == field


@given(BUDGETS, st.integers().filter(lambda m: m != 1))
def test_the_printed_method_takes_one_record_per_optin_user(budget: Budget, m: int):
    with pytest.raises(InvalidParameter, match="records_per_optin"):
        BlenderParams(budget, records_per_optin=m).for_printed_method()


@given(blender_params())
def test_the_shares_are_the_budget_exactly(params: BlenderParams):
    """m_C (ε_Q + ε_U) = ε and m_C (δ_Q + δ_U) = δ without any rounding, all parts positive."""
    for whole, query, url in zip(
        (params.budget.epsilon, params.budget.delta), params.query_share, params.url_share, strict=True
    ):
        assert params.records_per_client * (query + url) == Fraction(whole)
        assert query > 0
        assert url > 0


@given(blender_params())
def test_a_log_without_urls_has_one_stage(params: BlenderParams):
    alone = params.for_log(has_urls=False)
    assert alone.query_share == params.per_record
    assert alone.url_share == (0, 0)
    assert params.for_log(has_urls=True) == params
    with pytest.raises(InvalidParameter, match="query_budget_fraction"):
        alone.for_log(has_urls=True)
