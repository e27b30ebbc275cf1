"""Many clients at once: counts, chunks and words."""

from __future__ import annotations

import numpy as np
import pytest

from searchblend.blender.paper import local_report_bulk
from searchblend.blender.paper.local_report import randomize
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Tape, accept_below
from searchblend.core.records import HeadList
from searchblend.synthetic.seeded import SeededRandomness

HEAD = HeadList({"a": ["u", "v"], "b": ["u"], "c": []})
PROBABILITIES = ReportProbabilities.of(HEAD, BlenderParams(Budget(4, 1e-5)))


def test_everybody_reports_once():
    counts = np.array([10, 0, 5, 7, 0, 1, 100])
    reported = BulkReporter(PROBABILITIES).report_counts(counts, SeededRandomness(1))
    assert reported.sum() == counts.sum()
    assert len(reported) == HEAD.n_cells


def test_nobody_reports_nothing():
    nobody = np.zeros(HEAD.n_cells, dtype=np.int64)
    assert BulkReporter(PROBABILITIES).report_counts(nobody).tolist() == nobody.tolist()
    assert BulkReporter(PROBABILITIES).report(nobody[:0]).tolist() == []


def test_chunks_do_not_change_who_is_asked(monkeypatch: pytest.MonkeyPatch):
    """Everybody tells the truth: the counts come back whatever the chunk size."""
    monkeypatch.setattr(local_report_bulk, "_CHUNK", 7)

    class Truthful:
        cryptographic = False

        def take(self, n_bytes: int) -> bytes:
            return b"\x00" * n_bytes

    counts = np.array([3, 0, 11, 6, 7, 1, 30])
    reporter = BulkReporter(PROBABILITIES)
    assert reporter.report_counts(counts, Truthful()).tolist() == counts.tolist()
    assert (
        reporter.report(np.repeat(np.arange(7), counts), Truthful()).tolist()
        == np.repeat(np.arange(7), counts).tolist()
    )


def test_the_wildcard_alone_needs_no_word():
    reporter = BulkReporter(ReportProbabilities.of(HeadList({}), BlenderParams(Budget(4, 1e-5))))
    assert reporter.report_counts(np.array([5]), Tape(b"")).tolist() == [5]


def test_rejected_halves_are_replaced_as_on_the_device():
    """k − 1 = 3 rejects 2^32 − 1: the query's half is replaced first, then the URL's."""
    bad = accept_below(3)
    lie = (bad << 32) | bad
    words = [PROBABILITIES.keep_query_below, lie, bad, 0, 1]
    content = b"".join(word.to_bytes(8, "little") for word in words)
    query, url = randomize(2, 0, PROBABILITIES, Tape(content))
    said = BulkReporter(PROBABILITIES).report(np.array([HEAD.first_cells()[2]]), Tape(content))
    assert said.tolist() == [HEAD.first_cells()[query] + url]
    assert (query, url) == (0, 1)


@pytest.mark.parametrize("n_queries", [1, 2, 3, 50])
def test_a_list_without_urls_takes_the_words_that_a_device_takes(n_queries):
    """One client at a time with a tape of its own: the shorter way of such lists says what the device says."""
    probabilities = ReportProbabilities.of(
        HeadList({f"q{i}": [] for i in range(n_queries)}), BlenderParams(Budget(1, 1e-6))
    )
    reporter, source = BulkReporter(probabilities), SeededRandomness(n_queries)
    for _ in range(300):
        content, cell = source.take(64), source.take(1)[0] % (n_queries + 1)
        query, url = randomize(cell, 0, probabilities, Tape(content))
        assert url == 0
        assert reporter.report(np.array([cell]), Tape(content)).tolist() == [query]


def test_a_rejected_half_is_replaced_in_a_list_without_urls():
    probabilities = ReportProbabilities.of(HeadList({"a": [], "b": [], "c": []}), BlenderParams(Budget(1, 1e-6)))
    words = [probabilities.keep_query_below, accept_below(3) << 32, accept_below(3), 2]
    content = b"".join(word.to_bytes(8, "little") for word in words)
    assert BulkReporter(probabilities).report(np.array([0]), Tape(content)).tolist() == [3]
    assert randomize(0, 0, probabilities, Tape(content)) == (3, 0)
