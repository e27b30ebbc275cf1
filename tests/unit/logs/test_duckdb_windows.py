"""Windows of a month in DuckDB, against people in memory; and what no window has."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from made_logs import LISTED, QUERIES, URLS, counts_of, read
from reference_activity import click_log
from reference_rules import Line, tsv

from searchblend.clickgraph.release.click_log import Cap
from searchblend.clickgraph.release.windows import InMemoryWindowLog
from searchblend.core.errors import InvalidColumns, InvalidParameter
from searchblend.core.normalization import normalize_url
from searchblend.core.records import Record
from searchblend.logs.activity import ActivityRules, account_window
from searchblend.logs.read import read_log

MARCH = 1_141_171_200.0
"""2006-03-01, UTC"""
DAY = 86400.0
PAIRS = [Record(query, normalize_url(url)) for query in LISTED for url in URLS[:3]]


def lines(seed: int) -> list[Line]:
    chance = random.Random(seed)
    days = ("2006-02-28", *(f"2006-03-0{day}" for day in range(1, 10)), "2006-04-01")
    made = []
    for user in range(25):
        for _ in range(chance.randrange(1, 14)):
            time = f"{chance.choice(days)} {chance.choice(('00:00:00', '12:00:00', '23:59:59'))}"
            url = chance.choice(URLS) if chance.random() < 0.7 else ""
            rank = str(chance.randrange(3)) if url else ""
            made.append((f"u{user}", chance.choice([time, time, time, "soon", ""]), chance.choice(QUERIES), url, rank))
    return made


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.tsv"
    path.write_text(tsv(lines(1)))
    return path


@pytest.mark.parametrize(("per", "day"), [("day", 0), ("day", 3), ("week", 0), ("week", 7)])
def test_a_window_counts_as_people_in_memory_do(log, per, day):
    window = account_window(per, MARCH + day * DAY)
    theirs = InMemoryWindowLog(click_log(lines(1))._users, window)
    with read(log, draws=0) as opened:
        mine = opened.activity(ActivityRules(account=window))
        for cap in (Cap(1), Cap(3), Cap(100)):
            assert counts_of(mine.searches(cap)) == counts_of(theirs.searches(cap))
            assert mine.searches_of(LISTED, cap) == theirs.searches_of(LISTED, cap)
            expected = theirs.clicks(LISTED, cap, within=Cap(4))
            assert counts_of(mine.clicks(LISTED, cap, within=Cap(4))) == counts_of(expected)
            assert mine.clicks_of(PAIRS, cap, within=Cap(4)) == theirs.clicks_of(PAIRS, cap, within=Cap(4))


def test_no_one_counts_more_in_all_windows_than_their_cap(log):
    total = 0
    with read(log, draws=0) as opened:
        for day in range(31):
            activity = opened.activity(ActivityRules(account=account_window("day", MARCH + day * DAY)))
            total += sum(n * size for n, size in activity.searches(Cap(2)).sizes().items())
    assert 25 < total <= 2 * 25


def test_lines_without_a_readable_time_are_counted_and_in_no_window(log):
    window = account_window("day", MARCH)
    with read(log, draws=0) as opened:
        without = opened.activity(ActivityRules(account=window)).without_moment()
    assert without == sum(line[1] in ("soon", "") for line in lines(1))


def test_a_log_without_times_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,query\np,a\n")
    with pytest.raises(InvalidColumns, match=r"log\.csv: no column 'time': there are user, query"):
        read_log(path, draws=0, urls=False, timed=True)
    with pytest.raises(InvalidColumns, match="time: the yandex format has no times that belong to a day"):
        read_log(path, draws=0, format="yandex", timed=True)


def test_a_window_begins_with_a_day_or_a_week_of_its_month():
    week = account_window("week", MARCH + 28 * DAY)
    assert (week.name, week.month, week.last) == ("2006-03-29 to 2006-03-31", "2006-03", MARCH + 31 * DAY)
    assert account_window("day", MARCH + 30 * DAY).name == "2006-03-31"
    december = account_window("week", 1_796_083_200.0 + 28 * DAY)  # 2026-12-29
    assert (december.name, december.account) == ("2026-12-29 to 2026-12-31", 1_796_083_200.0)
    for per, moment in (("day", MARCH + 1), ("week", MARCH + DAY), ("week", MARCH + 7 * DAY + 3600)):
        with pytest.raises(InvalidParameter, match=f"from: expected the beginning of a {per}"):
            account_window(per, moment)


def test_rules_have_one_window_alone():
    with pytest.raises(InvalidParameter, match="window: expected no other moments"):
        ActivityRules(first_moment=0.0, account=account_window("day", MARCH))
