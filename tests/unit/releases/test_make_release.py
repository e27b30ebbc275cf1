"""The frame of a release from a log: what is shown is what was published, and a published id reads nothing."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from searchblend.core.privacy import Budget, Neighbors
from searchblend.releases.make_release import Cost, LedgerEntry, make_release
from searchblend.store.ledger import open_ledger

COST = Cost(Budget(1.0, 1e-6), Neighbors.REPLACE_ONE, "a test")
LOG = SimpleNamespace(summary=SimpleNamespace(as_json=lambda: {"lines": 1}))


def released(folder, ledger, make, opened):
    @contextlib.contextmanager
    def open_log():
        opened.append(True)
        yield LOG

    return make_release(
        folder,
        COST,
        open_log=open_log,
        make=make,
        summarize=lambda log: log.summary.as_json(),
        read=lambda files: files["a"].decode(),
        ledger=ledger,
    )


def test_without_a_ledger_what_was_made_is_written_and_shown(tmp_path):
    written = released(tmp_path / "out", None, lambda log: ("drawn", {"a": b"drawn"}), [])
    assert (written.released, written.input_summary) == ("drawn", {"lines": 1})
    assert (tmp_path / "out" / "a").read_bytes() == b"drawn"


def test_of_two_runs_of_one_id_only_the_first_to_publish_is_shown(tmp_path):
    """The other has drawn noise of its own: whoever saw both would know more than one release tells."""
    entry = LedgerEntry(tmp_path / "ledger.db", "first")

    def overtaken(log):
        with open_ledger(entry.path) as other:
            other.publish(entry.release_id, {"a": b"published"})
        return "drawn", {"a": b"drawn"}

    written = released(tmp_path / "out", entry, overtaken, [])
    assert written.released == "published"
    assert (tmp_path / "out" / "a").read_bytes() == b"published"


def test_a_published_id_gives_the_same_bytes_and_reads_nothing(tmp_path):
    entry, opened = LedgerEntry(tmp_path / "ledger.db", "first"), []
    released(tmp_path / "one", entry, lambda log: ("drawn", {"a": b"drawn"}), opened)
    again = released(tmp_path / "two", entry, lambda log: pytest.fail("drawn again"), opened)
    assert (again.released, again.input_summary, len(opened)) == ("drawn", None, 1)
    assert (tmp_path / "two" / "a").read_bytes() == b"drawn"
