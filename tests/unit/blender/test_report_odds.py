"""The stated odds are those of the exact law, and planted faults in the law change them."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from itertools import combinations

import pytest

from searchblend.blender.best.subset_report import (
    GAMMA_STEPS,
    PLAIN_SETS,
    SINK_SETS,
    TWO_STAGE,
    ReportDesign,
    subset_report,
)
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.blender.report_odds import list_odds, report_odds
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection
from searchblend.synthetic.seeded import SeededRandomness

HEAD = HeadList({"weather": ["w.example"], "news": ["n.example", "m.example"], "maps": []})
FLAT = HeadList({query: [] for query in "abcdefg"})
BUDGET = Budget(4.0, 1e-5)
Law = dict[frozenset[int], Fraction]


def set_law(mechanism: SubsetSelection | PlainSubsetSelection, item: int | None) -> Law:
    """Every report and its exact probability."""
    m, d = mechanism.n_items, mechanism.subset_size
    if isinstance(mechanism, PlainSubsetSelection):
        held = m if item is None else item
        with_it, without = mechanism.law()
        return {frozenset(s): with_it if held in s else without for s in combinations(range(m + 1), d)}
    sink, with_it, without = mechanism.law(item)
    sets = {frozenset(s): with_it if item in s else without for s in combinations(range(m), d)}
    return {frozenset(): sink, **sets}


def two_stage_law(stages: ReportProbabilities, cell: tuple[int, int]) -> Law:
    return {frozenset([said]): p for said, p in enumerate(stages.channel_row(*cell))}


def laws_of_cells(head: HeadList, params: BlenderParams, design: ReportDesign | None) -> list[Law]:
    """The law of a report about cells, for every true cell."""
    first, query_of = head.first_cells(), head.query_of_cells()
    if design is None or design.mechanism == TWO_STAGE:
        stages = (ReportProbabilities.exact if design else ReportProbabilities.of)(head, params)
        return [two_stage_law(stages, (query, cell - first[query])) for cell, query in enumerate(query_of)]
    mechanism = design.about_cells(head, params)
    assert mechanism is not None
    return [set_law(mechanism, cell if cell < head.n_cells - 1 else None) for cell in range(head.n_cells)]


def largest_ratio(laws: list[Law]) -> float:
    return float(max(max(law[said] for law in laws) / min(law[said] for law in laws) for said in laws[0]))


def chance_of_the_query(head: HeadList, laws: list[Law]) -> float:
    query_of = head.query_of_cells()

    def named(cell: int) -> Fraction:
        own = query_of[cell]
        return sum((p for said, p in laws[cell].items() if any(query_of[s] == own for s in said)), Fraction())

    return float(max(named(cell) for cell in range(head.n_cells - 1)))


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 8.0])
@pytest.mark.parametrize(
    "design",
    [
        None,
        ReportDesign(0, 1, 1, TWO_STAGE),
        *(ReportDesign(0, 1, d, kind) for kind in (SINK_SETS, PLAIN_SETS) for d in (1, 2, 6)),
    ],
)
def test_odds_about_cells_are_those_of_the_enumerated_law(epsilon: float, design: ReportDesign | None):
    params = BlenderParams(Budget(epsilon, 1e-5))
    laws = laws_of_cells(HEAD, params, design)
    odds = report_odds(HEAD, params, design)
    assert odds.growth == pytest.approx(largest_ratio(laws), rel=1e-9)
    assert odds.named == pytest.approx(chance_of_the_query(HEAD, laws), rel=1e-9)
    assert odds.growth <= math.exp(epsilon) * (1 + 1e-4)


@pytest.mark.parametrize("kind", [SINK_SETS, PLAIN_SETS])
@pytest.mark.parametrize("d", [1, 3, 7])
def test_odds_about_queries_are_those_of_the_enumerated_law(kind: str, d: int):
    params, design = BlenderParams(BUDGET), ReportDesign(GAMMA_STEPS, d, 1, kind)
    mechanism = design.about_queries(FLAT, params)
    assert mechanism is not None
    laws = [set_law(mechanism, item) for item in [*range(len(FLAT)), None]]
    odds = report_odds(FLAT, params, design)
    assert odds.growth == pytest.approx(largest_ratio(laws), rel=1e-9)
    assert odds.named == pytest.approx(float(sum(p for said, p in laws[0].items() if 0 in said)), rel=1e-9)
    assert odds.most_items == d


def test_the_public_coin_mixes_what_is_named():
    params = BlenderParams(BUDGET)
    halves = [report_odds(HEAD, params, ReportDesign(steps, 1, 2)).named for steps in (0, GAMMA_STEPS)]
    mixed = report_odds(HEAD, params, ReportDesign(GAMMA_STEPS // 2, 1, 2)).named
    assert mixed == pytest.approx(sum(halves) / 2)


def test_several_answers_share_the_budget():
    one, three = (BlenderParams(BUDGET, records_per_client=m) for m in (1, 3))
    odds = [report_odds(FLAT, params, ReportDesign(GAMMA_STEPS, 1, 1)) for params in (one, three)]
    assert odds[0].named > odds[1].named
    assert [o.growth for o in odds] == pytest.approx([math.exp(4)] * 2, rel=1e-9)


@pytest.mark.parametrize("n_queries", [1, 2, 7])
def test_one_query_is_the_worst_list(n_queries: int):
    """Over reports that name one search: sets of several name the true one more often and say less by it."""
    params = BlenderParams(BUDGET, query_budget_fraction=1.0)
    head = HeadList({str(query): [] for query in range(n_queries)})
    worst = list_odds(params, 1)
    designs = [None, *(ReportDesign(GAMMA_STEPS, 1, 1, kind) for kind in (SINK_SETS, PLAIN_SETS))]
    for odds in (report_odds(head, params, design) for design in designs):
        assert odds.named <= worst.named + BUDGET.delta
        assert odds.belief_after(0.02) <= worst.belief_after(0.02) + BUDGET.delta


def test_a_planted_fault_in_the_thresholds_is_seen(monkeypatch):
    """A device that told the truth more often would state it: the odds are not a formula of their own."""
    params, design = BlenderParams(BUDGET), ReportDesign(GAMMA_STEPS, 1, 1)
    right = report_odds(FLAT, params, design)
    honest = SubsetSelection.of(params.per_record[0], len(FLAT), 1)
    faulty = dataclasses.replace(honest, include_below=honest.include_below + (1 << 60))
    monkeypatch.setattr(ReportDesign, "about_queries", lambda *_: faulty)
    wrong = report_odds(FLAT, params, design)
    assert wrong.named > right.named + 0.05
    assert wrong.growth > right.growth * 1.5


def test_reports_name_the_true_search_as_often_as_stated():
    """The measurement that the consent texts failed: 4,000 reports of a holder over seven queries at ε = 4."""
    params, design = BlenderParams(BUDGET), ReportDesign(GAMMA_STEPS, 1, 1)
    randomness, n = SeededRandomness(7), 4_000
    said = [subset_report([Record("a", "")], FLAT, design, params, randomness=randomness)[0] for _ in range(n)]
    share = sum(0 in report.items for report in said) / n
    assert share == pytest.approx(report_odds(FLAT, params, design).named, abs=0.03)
    assert share == pytest.approx(0.88, abs=0.03)
