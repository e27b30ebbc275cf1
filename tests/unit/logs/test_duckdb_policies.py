"""First queries and clicks of each user, distinct variants, and the exact figures of a log."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from made_logs import counts_of, read

from searchblend.errors import InvalidParameter
from searchblend.records import Record

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


def queries(found) -> dict[str, int]:
    return {str(record.query): n for record, n in counts_of(found).items()}


def clicks(found) -> dict[str, int]:
    return {f"{record.query} {str(record.url)[7]}": n for record, n in counts_of(found).items()}


def test_searches(log):
    # User 1 searched a at 1 s (three clicks), b at 2 s and 3 s, c at 9 s; user 2 a and c; user 3 ä.
    assert queries(log.query_tally()) == {"a": 2, "b": 2, "c": 2, "ä": 1}
    assert queries(log.query_tally(first=1)) == {"a": 2, "ä": 1}
    assert queries(log.query_tally(first=2)) == {"a": 2, "b": 1, "c": 1, "ä": 1}
    assert queries(log.query_tally(first=3)) == {"a": 2, "b": 2, "c": 1, "ä": 1}
    assert queries(log.query_tally(distinct=True)) == {"a": 2, "b": 1, "c": 2, "ä": 1}
    assert queries(log.query_tally(first=3, distinct=True)) == {"a": 2, "b": 1, "c": 2, "ä": 1}


def test_clicks_are_taken_by_time_and_rank(log):
    assert clicks(log.click_tally()) == {"a a": 1, "a y": 1, "a z": 1, "b b": 1, "c c": 2, "ä c": 1}
    assert clicks(log.click_tally(first=1)) == {"a a": 1, "c c": 1, "ä c": 1}
    assert clicks(log.click_tally(first=2)) == {"a a": 1, "a y": 1, "c c": 1, "ä c": 1}
    assert clicks(log.click_tally(first=3)) == {"a a": 1, "a y": 1, "a z": 1, "c c": 1, "ä c": 1}


def test_statistics_of_figure_8(log):
    found = log.statistics()
    assert (found.bytes, found.lines, found.users) == (len(AOL.encode()), 10, 3)
    assert (found.queries, found.urls, found.records, found.malformed) == (4, 5, 6, 1)


def test_keeping_lines_changes_nothing_else(log, tmp_path: Path):
    with read(tmp_path / "log") as other:
        assert other.summary == log.summary
        assert counts_of(other.split(optin_fraction=1e-9)[1].tally()) == counts_of(
            log.split(optin_fraction=1e-9)[1].tally()
        )
        for ask in (other.statistics, other.query_tally, other.click_tally):
            with pytest.raises(InvalidParameter, match="keep_lines"):
                ask()


@pytest.mark.parametrize(
    "times", [["9", "10", "100"], ["2006-03-01", "2006-03-02", "2006-04-01"], ["9.5", "1e1", "99"]]
)
def test_times_are_compared_as_numbers_or_as_texts(times, tmp_path: Path):
    names = ["first", "second", "third"]
    rows = [f"1\t{name}\tu\t{time}" for name, time in zip(names, times, strict=True)]
    (tmp_path / "log").write_text("\n".join(["user\tquery\turl\ttime", *rows[::-1]]) + "\n")
    with read(tmp_path / "log", keep_lines=True) as log:
        for n in (1, 2, 3):
            assert set(queries(log.query_tally(first=n))) == set(names[:n])


def test_a_log_without_times_counts_every_line(tmp_path: Path):
    rows = [("1", "a")] * 3 + [("1", "b"), ("2", "a")]
    (tmp_path / "log").write_text("user\tquery\n" + "".join(f"{user}\t{query}\n" for user, query in rows))
    with read(tmp_path / "log", keep_lines=True) as log:
        assert queries(log.query_tally()) == {"a": 4, "b": 1}
        assert queries(log.query_tally(first=3)) == {"a": 4}
        assert queries(log.query_tally(distinct=True)) == {"a": 2, "b": 1}
        assert counts_of(log.click_tally()) == Counter()
        assert log.statistics().urls == 0


def test_a_whole_log_against_a_count_in_python(tmp_path: Path):
    rows = [(str(i * i % 41), f"q{i * 7 % 13}", f"http://{i % 3}.example", f"{i * 31 % 997:04d}") for i in range(900)]
    (tmp_path / "log").write_text("user\tquery\turl\ttime\n" + "".join("\t".join(row) + "\n" for row in rows))
    of_user = defaultdict(list)
    for user, query, url, time in sorted(set(rows), key=lambda row: (row[3], row[1], row[2])):
        of_user[user].append((query, url, time))
    expected = Counter(Record(q, u) for events in of_user.values() for q, u, _ in events[:5])
    with read(tmp_path / "log", keep_lines=True) as log:
        assert len(set(rows)) == len(rows)
        assert counts_of(log.click_tally(first=5)) == expected
        with pytest.raises(InvalidParameter):
            log.click_tally(first=0)
