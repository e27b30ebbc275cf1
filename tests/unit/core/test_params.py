"""Parameters with the defaults of the paper, validated once."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from fractions import Fraction

import pytest

from searchblend.core.errors import InvalidParameter, UsageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget

BUDGET = Budget(4, 1e-5)


def test_defaults_are_those_of_the_paper():
    params = BlenderParams(BUDGET)
    assert (params.head_fraction, params.query_budget_fraction) == (0.95, 0.85)
    assert (params.records_per_client, params.max_head_queries) == (1, 50)
    assert params.for_printed_method().records_per_optin == 1


def test_shares_of_the_default_budget():
    params = BlenderParams(BUDGET)
    assert float(params.query_share[0]) == pytest.approx(3.4)
    assert float(params.url_share[0]) == pytest.approx(0.6)
    assert float(params.query_share[1] + params.url_share[1]) == pytest.approx(1e-5)


def test_several_records_share_the_budget():
    epsilon, delta = BlenderParams(BUDGET, records_per_client=4).per_record
    assert epsilon == 1
    assert delta == Fraction(1e-5) / 4


def test_parameters_do_not_change():
    with pytest.raises(FrozenInstanceError):
        BlenderParams(BUDGET).max_head_queries = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_head_queries", 0),
        ("max_head_queries", 2.0),
        ("max_head_queries", True),
        ("records_per_client", 0),
        ("records_per_client", None),
        ("records_per_optin", 0),
        ("head_fraction", 0.0),
        ("head_fraction", 1.0),
        ("head_fraction", float("nan")),
        ("query_budget_fraction", 0.0),
        ("query_budget_fraction", 1.01),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(field: str, value: object):
    with pytest.raises(InvalidParameter) as refused:
        BlenderParams(BUDGET, **{field: value})
    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")
    assert isinstance(refused.value, UsageError)


def test_the_number_of_records_that_count_is_not_guessed_where_no_method_has_settled_it():
    assert BlenderParams(BUDGET, records_per_optin=20).counted_records_per_optin == 20
    with pytest.raises(InvalidParameter, match="records_per_optin: expected a number"):
        _ = BlenderParams(BUDGET).counted_records_per_optin


def test_the_printed_method_refuses_more_than_one_record_per_optin_user():
    with pytest.raises(InvalidParameter, match="records_per_optin: expected 1"):
        BlenderParams(BUDGET, records_per_optin=2).for_printed_method()


def test_the_whole_budget_goes_to_the_query_only_without_urls():
    alone = BlenderParams(BUDGET).for_log(has_urls=False)
    assert alone.query_budget_fraction == 1
    with pytest.raises(InvalidParameter, match="query_budget_fraction"):
        alone.for_log(has_urls=True)
