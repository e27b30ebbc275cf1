"""The service's counters, back in the estimator's form: the same as counting the reports themselves."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from searchblend.blender.best.subset_report import (
    PLAIN_SETS,
    SINK_SETS,
    TWO_STAGE,
    ReportDesign,
    SubsetReport,
    subset_report,
)
from searchblend.blender.best.subset_report_bulk import ReportCounts, SubsetCounts
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.method import METHODS
from searchblend.blender.paper.local_report import local_report
from searchblend.blender.pipeline import run_blender
from searchblend.core.privacy import TrustModel
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import HeadList, Record
from searchblend.service.round_model import decode_figures, encode_figures, method_of
from searchblend.service.task_settings import TaskSettings
from searchblend.service.workers.estimator import report_counts
from searchblend.synthetic.seeded import SeededRandomness
from searchblend.wire.report import ReportShape, cells_as_parts, counters_of

QUERIES = ["google", "yahoo", "ebay", "maps"]
DESIGNS = [
    ReportDesign(0, 1, 1, TWO_STAGE),
    ReportDesign(0, 1, 3, SINK_SETS),
    ReportDesign(20, 2, 1, SINK_SETS),
    ReportDesign(10, 2, 3, SINK_SETS),
    ReportDesign(0, 1, 3, PLAIN_SETS),
    ReportDesign(10, 2, 3, PLAIN_SETS),
]


def people(n, seed):
    generator = np.random.default_rng(seed)
    return [Record(QUERIES[generator.choice(4, p=[0.4, 0.3, 0.2, 0.1])], f"u{generator.integers(2)}") for _ in range(n)]


def figures_of(settings, n=2000):
    params = settings.params
    group = InMemoryGroup.from_users([[record] for record in people(n, 1)])
    return METHODS["best"].list_head(group, params, randomness=SystemRandomness())


def estimate(figures, counts, shape, settings, n):
    reports = report_counts(counts, shape)
    return method_of(settings).estimate(figures, reports, settings.params, n, trust=TrustModel.LOCAL)


def counts_of(reports, shape):
    counters = [counter for parts in reports for counter in counters_of(parts, shape)]
    return np.bincount(counters, minlength=shape.n_counters)


def counted(reports, head, design, params):
    """The same reports, counted one by one."""
    if design.mechanism == TWO_STAGE:
        return ReportCounts(two_stage=np.bincount([r.items[0] for r in reports], minlength=head.n_cells))

    def of_kind(mechanism, about_queries):
        sets = [report.items for report in reports if report.about_queries is about_queries]
        named = [item for items in sets for item in items if item < mechanism.n_items]
        items = np.bincount(np.array(named, dtype=np.int64), minlength=mechanism.n_items)
        return SubsetCounts(items, sets.count(()), len(sets))

    queries, cells = design.about_queries(head, params), design.about_cells(head, params)
    return ReportCounts(
        queries=None if queries is None else of_kind(queries, True),
        cells=None if cells is None else of_kind(cells, False),
    )


def same(found, expected):
    for kind in ("queries", "cells"):
        one, other = getattr(found, kind), getattr(expected, kind)
        assert (one is None) == (other is None)
        if one is not None:
            assert one.items.tolist() == other.items.tolist()
            assert (one.sinks, one.n) == (other.sinks, other.n)
    assert (found.two_stage is None) == (expected.two_stage is None)
    if found.two_stage is not None:
        assert found.two_stage.tolist() == expected.two_stage.tolist()


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.mechanism} {design.query_steps}")
@pytest.mark.parametrize("m", [1, 2])
def test_counters_come_back_as_the_reports_they_were(design, m):
    settings = TaskSettings(name="x", records_per_client=m, epsilon=2.0)
    params, figures = settings.params, figures_of(settings)
    shape = ReportShape.of(b"t" * 16, 1, figures.head, params, design)
    reports = [subset_report([record], figures.head, design, params) for record in people(300, 2)]
    counts = counts_of(reports, shape)
    assert counts.sum() == shape.counts_per_report * 300
    flat = [part for parts in reports for part in parts]
    same(report_counts(counts, shape), counted(flat, figures.head, design, params))


@pytest.mark.thorough
@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.mechanism} {design.query_steps}")
def test_estimates_find_the_shares(design):
    settings = TaskSettings(name="x", epsilon=4.0, method="best")
    params = settings.params
    figures = replace(figures_of(settings), design=design)
    shape = ReportShape.of(b"t" * 16, 1, figures.head, params, design)
    reports = [subset_report([record], figures.head, design, params) for record in people(4000, 3)]
    counts = counts_of(reports, shape)
    release = estimate(figures, counts, shape, settings, 4000)
    by_query = dict(zip(release.head.queries, release.queries.probability, strict=False))
    for query, share in zip(QUERIES, [0.4, 0.3, 0.2, 0.1], strict=True):
        assert by_query[query] == pytest.approx(share, abs=0.06)


def forged_parts(figures, shape, query):
    """The worst parts about a query: all of the set is its URLs' cells, or the query is in the set."""
    head = figures.head
    if shape.cell_items:
        first = min(head.first_cells()[query], shape.cell_items - shape.cell_subset)
        yield SubsetReport(False, tuple(range(first, first + shape.cell_subset)))
    if shape.query_items:
        first = min(query, shape.query_items - shape.query_subset)
        yield SubsetReport(True, tuple(range(first, first + shape.query_subset)))


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.mechanism} {design.query_steps}")
@pytest.mark.parametrize("m", [1, 3])
def test_a_made_up_report_moves_a_trend_by_no_more_than_its_influence(design, m):
    """All its parts say the worst about one query. tests/unit/blender/test_influence.py searches for worse."""
    n = 400
    settings = TaskSettings(name="x", epsilon=4.0, records_per_client=m)
    params, figures = settings.params, replace(figures_of(TaskSettings(name="x")), design=design)
    shape = ReportShape.of(b"t" * 16, 1, figures.head, params, design)
    counts = counts_of([subset_report([record], figures.head, design, params) for record in people(n, 3)], shape)
    before = estimate(figures, counts, shape, settings, n).queries.probability
    bound = method_of(settings).influence(figures, report_counts(counts, shape), params, n)
    for query in range(len(figures.head)):
        for part in forged_parts(figures, shape, query):
            forged = counts + counts_of([(part,) * m], shape)
            moved = abs(estimate(figures, forged, shape, settings, n + 1).queries.probability - before)
            assert (moved <= bound).all()


def test_the_printed_method_is_estimated_from_cells():
    settings = TaskSettings(name="x", method="paper")
    head = HeadList({"google": ["a"], "yahoo": ["b"]})
    shape = ReportShape.of(b"t" * 16, 1, head, settings.params, None)
    reports = [cells_as_parts(local_report([Record("google", "a")], head, settings.params)) for _ in range(500)]
    counts = counts_of(reports, shape)
    assert report_counts(counts, shape).two_stage.tolist() == counts[: head.n_cells].tolist()


@pytest.mark.parametrize("m", [1, 2])
def test_a_round_states_the_same_mechanisms_as_a_run(m):
    settings = TaskSettings(name="x", records_per_client=m)
    params, design = settings.params, DESIGNS[1]
    figures = replace(figures_of(settings), design=design)
    shape = ReportShape.of(b"t" * 16, 1, figures.head, params, design)
    counts = counts_of([subset_report([record], figures.head, design, params) for record in people(300, 2)], shape)
    in_round = estimate(figures, counts, shape, settings, 300)
    groups = [InMemoryGroup.from_users([[record] for record in people(2000, seed)]) for seed in (1, 2)]
    in_run = run_blender(*groups, params)
    assert in_round.mechanism["client"]["variances_valid"] is in_run.mechanism["client"]["variances_valid"] is True
    assert set(in_round.mechanism["optin"]) == set(in_run.mechanism["optin"])
    assert in_round.guarantee.groups[1].trust is TrustModel.LOCAL


@pytest.mark.parametrize("m", [1, 2])
def test_a_round_of_the_printed_method_says_whether_its_variances_are_valid(m):
    """They assume one report of a client."""
    settings = TaskSettings(name="x", method="paper", records_per_client=m)
    group = InMemoryGroup.from_users([[record] for record in people(2000, 1)])
    figures = METHODS["paper"].list_head(group, settings.params, randomness=SystemRandomness())
    shape = ReportShape.of(b"t" * 16, 1, figures.head, settings.params, None)
    reports = [cells_as_parts(local_report([record], figures.head, settings.params)) for record in people(300, 2)]
    in_round = estimate(figures, counts_of(reports, shape), shape, settings, 300)
    assert in_round.mechanism["client"]["variances_valid"] is (m == 1)


def released(figures):
    """What an estimator says of figures that it reads from the store."""
    settings, design = TaskSettings(name="x"), DESIGNS[1]
    figures = decode_figures(encode_figures(replace(figures, design=design)))
    shape = ReportShape.of(b"t" * 16, 1, figures.head, settings.params, design)
    reports = [subset_report([record], figures.head, design, settings.params) for record in people(50, 2)]
    return estimate(figures, counts_of(reports, shape), shape, settings, 50)


@pytest.mark.parametrize("source", [SystemRandomness(), SeededRandomness(1)], ids=["system", "seeded"])
def test_the_guarantee_states_what_the_curator_drew_from_and_not_what_the_estimator_has(source):
    group = InMemoryGroup.from_users([[record] for record in people(2000, 1)])
    figures = METHODS["best"].list_head(group, TaskSettings(name="x").params, randomness=source)
    guarantee = released(figures).guarantee
    condition = next(c for c in guarantee.conditions if c.name == "cryptographic randomness")
    assert guarantee.holds is condition.holds is source.cryptographic


@pytest.mark.parametrize("record", ["absent", None, "yes", 1])
def test_no_one_vouches_for_a_list_without_a_record_of_its_generator(record):
    """A round that an earlier version drew, or a row that was edited by hand."""
    document = json.loads(encode_figures(figures_of(TaskSettings(name="x"))))
    assert document.pop("cryptographic") is True
    if record != "absent":
        document["cryptographic"] = record
    guarantee = released(decode_figures(json.dumps(document).encode())).guarantee
    condition = next(c for c in guarantee.conditions if c.name == "cryptographic randomness")
    assert not guarantee.holds
    assert "not on record" in condition.detail
