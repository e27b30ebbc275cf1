"""No report moves a published trend by more than its stated influence: a search over reports, states and edges.

Small rounds, so that one report weighs much, with everything that adapts near its edge: groups that just differ, a
query that is just doubted, shares at 0 and listed shares at 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from searchblend.blender.best import influence
from searchblend.blender.best.stability_histogram import CountedHeadList, curator_design
from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, TWO_STAGE, ReportDesign
from searchblend.blender.best.subset_report_bulk import ReportCounts, SubsetCounts, simulate_subset_reports
from searchblend.blender.estimates import Estimates, GroupEstimates
from searchblend.blender.method import METHODS, BestMethod
from searchblend.blender.release import HeadFigures
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget, TrustModel
from searchblend.core.records import HeadList
from searchblend.synthetic.seeded import SeededRandomness

HEAD = HeadList({"a": ["1", "2"], "b": ["1"], "c": [], "d": ["1"], "e": []})
SHARES = np.array([0.12, 0.06, 0.02, 0.1, 0.03, 0.09, 0.06, 0.02, 0.07])
DESIGNS = [
    ReportDesign(20, 2, 1, SINK_SETS),
    ReportDesign(10, 2, 3, SINK_SETS),
    ReportDesign(10, 2, 3, PLAIN_SETS),
    ReportDesign(0, 1, 1, TWO_STAGE),
]
STATES = {
    "alike": (SHARES, SHARES),
    "just different": (SHARES, SHARES * np.array([1.25, 1.25, 1.25, 0.8, 0.8, 1.2, 0.85, 0.85, 1.1])),
    "one query doubted": (SHARES, SHARES + np.array([0, 0, 0, 0, 0, 0.12, 0, 0, 0])),
    "a share at 0": (SHARES, SHARES * np.array([1, 1, 1, 1, 1, 0, 1, 1, 0])),
    "the list has everything": (SHARES / SHARES.sum(), SHARES / SHARES.sum()),
}


def params_for(parts: int) -> BlenderParams:
    return BlenderParams(Budget(3, 1e-5), max_head_queries=5, records_per_client=parts)


def figures_of(shares: np.ndarray, design: ReportDesign, params: BlenderParams, n: int = 1500) -> HeadFigures:
    curator = curator_design(params)
    counted = CountedHeadList(HEAD, np.rint(shares * n).astype(np.int64), n, curator)
    return HeadFigures(HEAD, n, counts=counted.counts, curator=curator, design=design)


def published(figures: HeadFigures, reports: ReportCounts, params: BlenderParams, n: int) -> np.ndarray:
    release = METHODS["best"].estimate(figures, reports, params, n, trust=TrustModel.LOCAL)
    return release.queries.probability


def with_part(reports: ReportCounts, kind: str, items: tuple[int, ...], sign: int) -> ReportCounts:
    if kind == "two_stage":
        assert reports.two_stage is not None
        counts = reports.two_stage.copy()
        counts[items[0]] += sign
        return ReportCounts(two_stage=counts)
    counted = getattr(reports, kind)
    named = counted.items.copy()
    named[[item for item in items if item < len(named)]] += sign
    changed = SubsetCounts(named, counted.sinks + (0 if items else sign), counted.n + sign)
    return ReportCounts(**{"queries": reports.queries, "cells": reports.cells, kind: changed})


def parts(design: ReportDesign) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Everything that one part of a report can say."""
    if design.mechanism == TWO_STAGE:
        yield from (("two_stage", (cell,)) for cell in range(HEAD.n_cells))
        return
    star = design.mechanism == PLAIN_SETS
    kinds = [("queries", len(HEAD), design.query_subset)] if design.query_steps else []
    kinds += [("cells", HEAD.n_cells - 1, design.cell_subset)] if design.query_steps < 20 else []
    for kind, items, size in kinds:
        yield from ((kind, chosen) for chosen in combinations(range(items + star), size))
        if not star:
            yield kind, ()


def held(reports: ReportCounts) -> bool:
    """Whether counts like these can be: none is negative."""
    counted = [entry for entry in (reports.queries, reports.cells) if entry is not None]
    return all(entry.items.min() >= 0 and entry.sinks >= 0 for entry in counted)


def largest_move(design: ReportDesign, state: str, some: int | None = None) -> float:
    """Relative to what is stated: every report added, left out, and in the place of another; ``some`` of them."""
    optin, client = STATES[state]
    params = params_for(1)
    figures = figures_of(optin, design, params)
    holders = np.rint(np.append(client, max(1 - client.sum(), 0)) * 700).astype(np.int64)
    n = int(holders.sum())
    reports = simulate_subset_reports(holders, HEAD, design, params, randomness=SeededRandomness(len(state)))
    bound = METHODS["best"].influence(figures, reports, params, n)
    before = published(figures, reports, params, n)
    every = list(parts(design))
    every = every[:: max(len(every) // some, 1)] if some else every
    largest = 0.0
    for added, gone in zip(every, reversed(every), strict=True):
        more = with_part(reports, *added, 1)
        for changed, people in ((more, n + 1), (with_part(reports, *gone, -1), n - 1), (with_part(more, *gone, -1), n)):
            if held(changed):
                moved = np.abs(published(figures, changed, params, people) - before)
                largest = max(largest, float((moved / bound).max()))
    return largest


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.mechanism} {design.query_steps}")
@pytest.mark.parametrize("state", STATES)
def test_no_report_moves_a_trend_further(design: ReportDesign, state: str):
    assert 0.03 < largest_move(design, state, some=8) <= 1  # a bound, and not one that anything keeps


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.mechanism} {design.query_steps}")
@pytest.mark.parametrize("state", STATES)
def test_no_report_at_all_moves_a_trend_further(design: ReportDesign, state: str):
    assert largest_move(design, state) <= 1


def test_several_parts_of_one_report():
    """m_C = 3, all parts alike or of both kinds."""
    params, design, n = params_for(3), DESIGNS[1], 300
    figures = figures_of(SHARES, design, params)
    holders = np.rint(np.append(SHARES, 1 - SHARES.sum()) * 3 * n).astype(np.int64)
    reports = simulate_subset_reports(holders, HEAD, design, params, randomness=SeededRandomness(4))
    bound = METHODS["best"].influence(figures, reports, params, n)
    before = published(figures, reports, params, n)
    for one in list(parts(design))[::17]:
        for other in list(parts(design))[::29]:
            changed = reports
            for part in (one, one, other):
                changed = with_part(changed, *part, 1)
            assert (np.abs(published(figures, changed, params, n + 1) - before) <= bound).all()


@pytest.mark.parametrize("state", ["just different", "one query doubted"])
def test_a_bound_that_forgets_the_weights_is_found_out(state: str, monkeypatch: pytest.MonkeyPatch):
    """Planted: tilts and doubts taken as fixed, as a derivative of the blend alone would."""
    monkeypatch.setattr(influence, "_doubt_range", lambda gaps, share, tilt, before: (before, np.zeros_like(before)))
    monkeypatch.setattr(influence._Step, "_weight_ratios", lambda self, share, hushed: (np.ones(13), np.ones(13)))
    assert largest_move(DESIGNS[0], state) > 1


def test_the_first_report_of_a_kind_may_decide_everything():
    design, params = DESIGNS[1], params_for(1)
    figures = figures_of(SHARES, design, params)
    reports = simulate_subset_reports(
        np.array([5] * HEAD.n_cells), HEAD, ReportDesign(20, 2, 3), params, randomness=SeededRandomness(1)
    )
    assert (BestMethod().influence(figures, reports, params, 50) == 1).all()


def test_the_printed_method():
    """Every report added, left out or exchanged; rounds of 60, so that one weighs much."""
    params, n = params_for(1), 60
    optin = np.append(np.add.reduceat(SHARES, HEAD.first_cells()[:-1]), 1 - SHARES.sum())
    estimates = Estimates(optin, optin * (1 - optin) / 200)
    figures = HeadFigures(HEAD, 200, optin=GroupEstimates(200, Estimates(np.append(SHARES, 0), np.ones(10)), estimates))
    counts = np.array([9, 4, 0, 7, 1, 8, 5, 2, 6, 18])
    method = METHODS["paper"]
    bound = method.influence(figures, ReportCounts(two_stage=counts), params, n)

    def trends(reported: np.ndarray) -> np.ndarray:
        return method.estimate(
            figures, ReportCounts(two_stage=reported), params, n, trust=TrustModel.LOCAL
        ).queries.probability

    before, one = trends(counts), np.eye(10, dtype=np.int64)
    moves = [
        trends(changed) - before
        for i in range(10)
        for changed in (counts + one[i], counts - one[i], *(counts + one[i] - one[j] for j in range(10)))
        if changed.min() >= 0
    ]
    assert (np.abs(moves) <= bound).all()
    assert np.abs(moves).max() > 0.3 * bound.max()
