"""The exact figures of a log."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_logs import counts_of, read

from searchblend.core.errors import InvalidParameter

AOL = """AnonID\tQuery\tQueryTime\tItemRank\tClickURL
1\tb\t2006-03-01 00:00:03\t1\thttp://b.example
1\ta\t2006-03-01 00:00:01\t1\thttp://a.example
1\tA \t2006-03-01 00:00:01\t10\thttp://z.example
1\ta\t2006-03-01 00:00:01\t2\thttp://y.example
1\tb\t2006-03-01 00:00:02\t\t
1\tc\t2006-03-01 00:00:09\t1\thttp://c.example
2\ta\t2006-03-01 00:00:01
2\tc\t2006-03-01 00:00:01\t1\thttp://c.example
2\t-\t2006-03-01 00:00:01\t\t
3\tÄ\t2006-03-01 00:00:01\t1\thttp://c.example/
"""


@pytest.fixture
def log(tmp_path: Path):
    (tmp_path / "log").write_text(AOL)
    with read(tmp_path / "log", keep_lines=True) as opened:
        yield opened


def test_statistics_of_figure_8(log):
    found = log.statistics()
    assert (found.bytes, found.lines, found.users) == (len(AOL.encode()), 10, 3)
    assert (found.queries, found.urls, found.records, found.malformed) == (4, 5, 6, 1)


def test_a_log_without_urls_has_none(tmp_path: Path):
    (tmp_path / "log").write_text("user\tquery\n1\ta\n1\tb\n2\ta\n")
    with read(tmp_path / "log", keep_lines=True) as log:
        found = log.statistics()
    assert (found.queries, found.urls, found.records) == (2, 0, 2)


def test_keeping_lines_changes_nothing_else(log, tmp_path: Path):
    with read(tmp_path / "log") as other:
        assert other.summary == log.summary
        assert counts_of(other.split(optin_fraction=1e-9)[1].tally()) == counts_of(
            log.split(optin_fraction=1e-9)[1].tally()
        )
        with pytest.raises(InvalidParameter, match="keep_lines"):
            other.statistics()
