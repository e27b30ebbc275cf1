"""One client, one tape: the scalar and the vectorised report are the same, and no lie is the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchblend.blender.paper.local_report import local_report, randomize
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import Tape, TapeExhausted
from searchblend.core.records import WILDCARD, HeadList, Record
from strategies import blender_params, lie_words, list_of_widths, url_counts, words_around

LISTS = url_counts(max_queries=7, max_urls=5).map(list_of_widths)


@st.composite
def tapes(draw: st.DrawFn, probabilities: ReportProbabilities, query: int) -> bytes:
    """A decision at or near a threshold, then words that are often rejected."""
    edges = [probabilities.keep_record_below[query], probabilities.keep_query_below]
    moduli = [probabilities.n_queries - 1, *probabilities.n_urls, *(w - 1 for w in probabilities.n_urls if w > 1)]
    words = [draw(words_around(edges)), *draw(st.lists(lie_words(moduli), min_size=1, max_size=6))]
    return b"".join(word.to_bytes(8, "little") for word in words)


@given(LISTS, blender_params(), st.data())
def test_bulk_and_scalar_agree_on_every_tape(head: HeadList, params: BlenderParams, data: st.DataObject):
    probabilities, first = ReportProbabilities.of(head, params), head.first_cells()
    cell = data.draw(st.integers(0, head.n_cells - 1))
    query = head.query_of_cells()[cell]
    content = data.draw(tapes(probabilities, query))
    reporter, cells, bulk_tape, tape = BulkReporter(probabilities), np.array([cell]), Tape(content), Tape(content)
    try:
        said_query, said_url = randomize(query, cell - first[query], probabilities, tape)
    except TapeExhausted:
        with pytest.raises(TapeExhausted):
            reporter.report(cells, bulk_tape)
        return
    said = first[said_query] + said_url
    assert reporter.report(cells, bulk_tape).tolist() == [said]
    assert bulk_tape.left == tape.left

    decision = int.from_bytes(content[:8], "little")
    assert 0 <= said_url < probabilities.n_urls[said_query]
    assert (said == cell) == (decision < probabilities.keep_record_below[query])
    assert (said_query == query) == (decision < probabilities.keep_query_below)


@given(blender_params(), st.binary(min_size=24, max_size=24))
def test_a_list_of_the_wildcard_alone_says_nothing(params: BlenderParams, content: bytes):
    head = HeadList({})
    params = BlenderParams(params.budget)
    assert local_report([Record("q", "u")], head, params, randomness=Tape(content)) == (0,)
    reporter = BulkReporter(ReportProbabilities.of(head, params))
    assert reporter.report(np.zeros(3, dtype=np.int64), Tape(b"")).tolist() == [0, 0, 0]


@given(LISTS, blender_params(), st.lists(st.integers(0, 50), min_size=1, max_size=5))
def test_a_report_has_m_cells_whatever_the_records(head: HeadList, params: BlenderParams, numbers: list[int]):
    cells = list(head.cells())
    records = [cells[number] if number < len(cells) else Record("unknown", WILDCARD) for number in numbers]
    report = local_report(records, head, params)
    assert len(report) == params.records_per_client
    assert all(0 <= cell < head.n_cells for cell in report)


@given(LISTS, blender_params())
def test_thresholds_are_ordered(head: HeadList, params: BlenderParams):
    """Truth within kept query within all words; a query with one cell has no URL to lie about."""
    probabilities = ReportProbabilities.of(head, params)
    for width, below in zip(probabilities.n_urls, probabilities.keep_record_below, strict=True):
        assert 0 < below <= probabilities.keep_query_below < 2**64
        assert (below == probabilities.keep_query_below) == (width == 1)
