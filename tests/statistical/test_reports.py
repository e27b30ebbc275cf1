"""Reports as they come out of the code have the law of the channel. χ² tests with a false-alarm rate of 1e-6 each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from searchblend.blender.paper.estimate_client import count_reports
from searchblend.blender.paper.local_report import local_report, randomize
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import WORDS, ReportProbabilities
from searchblend.core.randomness import SystemRandomness
from searchblend.mechanisms.tally import Ints
from searchblend_lab.evidence.laws import faults
from searchblend_lab.evidence.laws.channel import ChannelCase, channel_of

FALSE_ALARM = 1e-6
CASES = [
    ChannelCase((1, 2, 3)),
    ChannelCase((2, 2), epsilon=1.0, query_budget_fraction=0.5),
    ChannelCase((0, 0, 4), epsilon=0.5),
    ChannelCase((0,) * 5, epsilon=2.0, query_budget_fraction=1.0),
]
cases = pytest.mark.parametrize("case", CASES, ids=str)
Report = Callable[[ChannelCase, int, int], Ints]
"""(case, true cell, how many reports) -> how often each cell was reported."""


def check_reports(report: Report, case: ChannelCase, n: int) -> None:
    """n reports for each true cell: the sum of all rows' χ² statistics."""
    channel = channel_of(ReportProbabilities.of(case.head, case.params))
    statistic, freedom = 0.0, 0
    for cell, row in enumerate(channel):
        expected = n * np.array(row, dtype=np.float64)
        assert expected.min() >= 20
        statistic += ((report(case, cell, n) - expected) ** 2 / expected).sum()
        freedom += len(row) - 1
    assert chi2.sf(statistic, freedom) >= FALSE_ALARM


def in_bulk(make: Callable[[ReportProbabilities], BulkReporter]) -> Report:
    def report(case: ChannelCase, cell: int, n: int) -> Ints:
        held = np.zeros(case.head.n_cells, dtype=np.int64)
        held[cell] = n
        return make(ReportProbabilities.of(case.head, case.params)).report_counts(held)

    return report


def one_by_one(case: ChannelCase, cell: int, n: int) -> Ints:
    probabilities, first = ReportProbabilities.of(case.head, case.params), case.head.first_cells()
    query, source = case.head.query_of_cells()[cell], SystemRandomness()
    pairs = (randomize(query, cell - first[query], probabilities, source) for _ in range(n))
    return count_reports(np.array([first[q] + u for q, u in pairs]), case.head)


def by_device(case: ChannelCase, cell: int, n: int) -> Ints:
    record = list(case.head.cells())[cell]
    return count_reports(np.array([local_report([record], case.head, case.params) for _ in range(n)])[:, 0], case.head)


@cases
def test_bulk_reports(case: ChannelCase):
    check_reports(in_bulk(BulkReporter), case, 100_000)


@cases
def test_scalar_reports(case: ChannelCase):
    check_reports(one_by_one, case, 10_000)


def test_device_reports():
    check_reports(by_device, CASES[1], 1_000)


@pytest.mark.parametrize("name", faults.BULK)
def test_wrong_bulk_reports_are_rejected(name: str):
    with pytest.raises(AssertionError):
        check_reports(in_bulk(faults.BULK[name]), CASES[0], 100_000)


@cases
@pytest.mark.parametrize("about", ["query", "url"])
def test_no_liar_tells_the_truth(case: ChannelCase, about: str):
    """Thresholds that make everybody lie: 20,000 clients of each cell, not one of them reports its own."""
    probabilities = ReportProbabilities.of(case.head, case.params)
    liars = replace(
        probabilities,
        keep_query_below=0 if about == "query" else WORDS - 1,
        keep_record_below=(0,) * probabilities.n_queries,
    )
    query_of = np.array(case.head.query_of_cells())
    lied_to = np.arange(case.head.n_cells)
    if about == "url":
        lied_to = lied_to[np.array(case.head.n_urls)[query_of] > 1]
    cells = np.repeat(lied_to, 20_000)
    said = BulkReporter(liars).report(cells)
    assert (said != cells).all()
    assert ((query_of[said] != query_of[cells]) == (about == "query")).all()
