"""Which parameters of a click graph are taken, and what is refused with which reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ALGORITHMS, PRESETS, ClickGraphParams, Shares, suggested_delta
from searchblend.core.privacy import Budget

BUDGET = Budget(2.3, 1e-6)


def test_defaults_are_those_of_the_algorithm():
    plain = ClickGraphParams(BUDGET)
    assert (plain.algorithm, plain.count_unit, plain.accounting, plain.query_noise) == (
        "gaussian",
        "users",
        "exact",
        "reuse",
    )
    paper = ClickGraphParams(BUDGET, algorithm="kkmn2009")
    assert (paper.count_unit, paper.accounting, paper.query_noise) == ("impressions", "paper", "fresh")
    assert ClickGraphParams(BUDGET, algorithm="kkmn2009", count_unit="users").accounting == "exact"
    for algorithm in ("weighted_gaussian", "dp_sips", "adaptive_gaussian"):
        assert ClickGraphParams(BUDGET, algorithm=algorithm).query_noise == "fresh"


def test_urls_are_not_published_unless_asked_for():
    assert ClickGraphParams(BUDGET).urls == "none"
    assert ClickGraphParams(BUDGET).reformulations == "none"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"algorithm": "eq9"}, "algorithm"),
        ({"max_queries_per_user": 0}, "max_queries_per_user"),
        ({"max_queries_per_user": 2.0}, "max_queries_per_user"),
        ({"max_queries_per_user": 1001}, "max_queries_per_user"),
        ({"max_clicks_per_user": 0}, "max_clicks_per_user"),
        ({"max_reformulations_per_user": -1}, "max_reformulations_per_user"),
        ({"count_unit": "impressions"}, "count_unit"),
        ({"count_unit": "people"}, "count_unit"),
        ({"accounting": "paper"}, "accounting"),
        ({"algorithm": "kkmn2009", "accounting": "eq9"}, "accounting"),
        ({"algorithm": "kkmn2009", "count_unit": "users", "accounting": "paper"}, "accounting"),
        ({"algorithm": "weighted_gaussian", "query_noise": "reuse"}, "query_noise"),
        ({"algorithm": "dp_sips", "query_noise": "reuse"}, "query_noise"),
        ({"urls": "log"}, "urls"),
        ({"urls": "public"}, "public_source"),
        ({"urls": "public", "public_source": " "}, "public_source"),
        ({"public_source": "somewhere"}, "public_source"),
        ({"reformulations": "all"}, "reformulations"),
        ({"max_counted_queries_per_user": 5}, "max_counted_queries_per_user"),
        ({"algorithm": "kkmn2009", "max_counted_queries_per_user": 5}, "max_counted_queries_per_user"),
        ({"algorithm": "dp_sips", "max_counted_queries_per_user": 0}, "max_counted_queries_per_user"),
        ({"population": 0}, "population"),
        ({"population": 1_000_000}, "delta"),
        ({"population": 2_000_000}, "delta"),
    ],
)
def test_refused(options, field):
    with pytest.raises(InvalidParameter) as refused:
        ClickGraphParams(BUDGET, **options)
    assert refused.value.field == field


def test_a_large_delta_needs_a_word():
    assert ClickGraphParams(BUDGET, population=999_999).population == 999_999
    assert ClickGraphParams(BUDGET, population=2_000_000, allow_large_delta=True).population == 2_000_000


def test_no_algorithm_publishes_urls_of_the_log_as_they_are():
    for algorithm in ALGORITHMS:
        with pytest.raises(InvalidParameter, match="urls"):
            ClickGraphParams(BUDGET, algorithm=algorithm, urls="log_urls")


def test_the_suggested_delta_is_always_accepted():
    assert suggested_delta(1000) == 1e-6
    for population in (1, 10**5, 10**9):
        params = ClickGraphParams(Budget(1.0, suggested_delta(population)), population=population)
        assert params.budget.delta * population <= 0.1


def test_presets():
    assert Shares.preset("select-heavy") == Shares(0.7, 0.2, 0.1)
    for name, parts in PRESETS.items():
        assert sum(parts) == pytest.approx(1)
        assert Shares.preset(name).select == parts[0]
    with pytest.raises(InvalidParameter, match="shares"):
        Shares.preset("most")


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "1"])
def test_shares_are_positive_numbers(value):
    with pytest.raises(InvalidParameter, match=r"shares\.clicks"):
        Shares(0.5, 0.3, value)


def test_an_epsilon_that_protects_nobody_is_refused():
    with pytest.raises(InvalidParameter, match="epsilon"):
        ClickGraphParams(Budget(65.0, 1e-6))


def test_parameters_can_be_replaced():
    params = ClickGraphParams(BUDGET)
    assert replace(params, max_queries_per_user=5).query_noise == "reuse"
    with pytest.raises(InvalidParameter, match="query_noise"):
        replace(params, algorithm="kkmn2009", count_unit="impressions", query_noise="both")
