"""Reports of all cases, and from devices, have the law of the channel. χ² tests, false-alarm rate 1e-6 each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from searchblend.blender.paper.estimate_client import count_reports
from searchblend.blender.paper.local_report import local_report
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import WORDS, ReportProbabilities
from searchblend.mechanisms.tally import Ints
from searchblend_lab.evidence.laws.channel import ChannelCase
from searchblend_lab.evidence.laws.sampled_reports import REPORT_CASES, check_reports, in_bulk

cases = pytest.mark.parametrize("case", REPORT_CASES, ids=str)
"""(case, true cell, how many reports) -> how often each cell was reported."""


def by_device(case: ChannelCase, cell: int, n: int) -> Ints:
    record = list(case.head.cells())[cell]
    return count_reports(np.array([local_report([record], case.head, case.params) for _ in range(n)])[:, 0], case.head)


@cases
def test_bulk_reports(case: ChannelCase):
    check_reports(in_bulk(BulkReporter), (case, 100_000))


def test_device_reports():
    check_reports(by_device, (REPORT_CASES[1], 1_000))


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
