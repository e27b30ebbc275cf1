"""How clients should report: sizes of sets, forecasts, and the choice."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from searchblend.blender.best.choose_design import (
    QUERY_STEPS,
    Forecast,
    best_subset_size,
    candidates,
    choose_design,
    forecast,
)
from searchblend.blender.best.observations import OptinCounts, People
from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, TWO_STAGE, ReportDesign
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection

HEAD = HeadList((f"q{i}", ["1", "2"]) for i in range(12))
SHARES = np.repeat(0.02 * np.arange(1, 13) ** -1.0, 3) * np.tile([0.6, 0.3, 0.1], 12)
OPTIN = OptinCounts(SHARES, np.full(36, 1e-9), 20_000)


def params_for(epsilon: float) -> BlenderParams:
    return BlenderParams(Budget(epsilon, 1e-5))


@pytest.mark.parametrize("epsilon", [1, 2, 4])
@pytest.mark.parametrize("m", [500, 2000])
def test_best_size_for_rare_items(epsilon: int, m: int):
    """d/m is near (√(1+E) − 1)/E; the least is flat, so a quarter off is the same."""
    size = best_subset_size(Fraction(epsilon), np.full(m, 1e-6), SubsetSelection)
    growth = math.exp(epsilon)
    assert size / m == pytest.approx((math.sqrt(1 + growth) - 1) / growth, rel=0.25)


@pytest.mark.parametrize("kind", [SubsetSelection, PlainSubsetSelection])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_few_items_still_have_a_size(m: int, kind: type):
    """Never all of the items, unless there is one: such a set says nothing."""
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(8)):
        assert 1 <= best_subset_size(epsilon, np.full(m, 0.05), kind) <= max(m - 1, 1)


def test_candidates_of_a_list_with_urls():
    """Every γ for both kinds of sets, and the two-stage report."""
    designs = candidates(HEAD, SHARES, params_for(4))
    for name in (SINK_SETS, PLAIN_SETS):
        assert tuple(d.query_steps for d in designs if d.mechanism == name) == QUERY_STEPS
    assert [d.mechanism for d in designs].count(TWO_STAGE) == 1
    assert len(set(designs)) == len(designs)


def test_without_urls_there_are_only_queries():
    designs = candidates(HeadList({"a": [], "b": []}), np.array([0.1, 0.05]), params_for(4))
    assert {d.query_steps for d in designs} == {20}
    assert TWO_STAGE not in {d.mechanism for d in designs}


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 6.0])
def test_the_least_score_wins(epsilon: float):
    chosen, compared = choose_design(HEAD, OPTIN, params_for(epsilon), 400_000)
    assert chosen in compared
    assert chosen.score == min(entry.score for entry in compared)
    assert chosen.score == chosen.query_l1**2 * chosen.record_l1


def test_more_clients_make_better_forecasts():
    design = ReportDesign(10, 1, 2)
    few, many = (forecast(HEAD, OPTIN, design, params_for(4), People(20_000, n)) for n in (10_000, 1_000_000))
    assert many.query_l1 < few.query_l1
    assert many.record_l1 < few.record_l1


def test_reports_about_queries_help_queries_and_those_about_cells_records():
    people = People(20_000, 400_000)
    queries, cells = (forecast(HEAD, OPTIN, ReportDesign(s, 1, 1), params_for(6), people) for s in (20, 0))
    assert queries.query_l1 < cells.query_l1
    assert cells.record_l1 < queries.record_l1


def test_the_choice_looks_at_released_figures_only():
    """The same noisy counts give the same choice, whatever else is known."""
    one, two = (choose_design(HEAD, OPTIN, params_for(4), 400_000)[0] for _ in range(2))
    assert one == two


def test_shares_are_never_below_half_a_person():
    assert OptinCounts(np.array([-0.01, 0.0, 0.2]), np.zeros(3), 100).shares.tolist() == [0.005, 0.005, 0.2]


def test_forecasts_are_standard_errors_times_the_mean_of_a_half_normal():
    """One query, no clients to speak of: √(2/π)·√(c(1 − c)/n + v − c(1 − c)/N), a twentieth at least."""
    head = HeadList({"a": []})
    optin = OptinCounts(np.array([0.04]), np.array([1e-6]), 1000)
    said = forecast(head, optin, ReportDesign(20, 1, 1), params_for(0.01), People(1000, 1e-3))
    expected = math.sqrt(2 / math.pi) * math.sqrt(0.05 * (0.04 * 0.96 / 1000 + 1e-6))
    assert said.query_l1 == pytest.approx(expected, rel=0.01)
    assert isinstance(said, Forecast)
