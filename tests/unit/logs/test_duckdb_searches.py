"""Distinct searches grouped as the log is read, against the same questions asked of people in memory."""

from __future__ import annotations

import random

import duckdb
import pytest
from made_logs import LISTED, counts_of, read, timed_lines
from reference_activity import click_log
from reference_rules import tsv

from searchblend.clickgraph.release.click_log import Cap
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.logs.activity import ActivityRules
from searchblend.logs.duckdb import activity
from searchblend.logs.duckdb.activity import DuckDBActivity, DuckDBSearches, moment_of

CAPS = [Cap(1), Cap(2), Cap(3), Cap(100)]


def searches_of(tmp_path, lines):
    path = tmp_path / "log.tsv"
    path.write_text(tsv(lines))
    return read(path, draws=0, searches_only=True)


def same(mine, theirs) -> None:
    for cap in CAPS:
        assert counts_of(mine.searches(cap)) == counts_of(theirs.searches(cap))
        assert mine.searches_of(LISTED, cap) == theirs.searches_of(LISTED, cap)
        assert mine.weighted_searches_of(LISTED, cap.first, 100) == theirs.weighted_searches_of(LISTED, cap.first, 100)
    for first, units, without in [(1, 100, []), (3, 100, ["google"]), (50, 7, LISTED), (50, 1000, [])]:
        assert counts_of(mine.weighted_searches(first, units, without)) == counts_of(
            theirs.weighted_searches(first, units, without)
        )


@pytest.mark.thorough
@pytest.mark.parametrize("times", ["dates", "numbers"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_answer_is_that_of_the_rules(tmp_path, seed, times):
    lines = timed_lines(40, seed, times=times)  # times tie often, and queries are typed in several ways
    mine = searches_of(tmp_path, lines).activity()
    assert isinstance(mine, DuckDBSearches)
    same(mine, click_log(lines))


@pytest.mark.parametrize("times", ["none", "mixed"])
def test_times_that_are_no_moments_need_the_lines(tmp_path, times):
    lines = timed_lines(40, 5, times=times)
    mine = searches_of(tmp_path, lines).activity()
    assert isinstance(mine, DuckDBActivity)
    same(mine, click_log(lines))


def test_long_lists_are_sorted(tmp_path, monkeypatch):
    monkeypatch.setattr(activity, "_MOST_IN_A_LIST", 1)
    lines = timed_lines(40, 6)
    same(searches_of(tmp_path, lines).activity(), click_log(lines))


def test_a_hard_query_and_its_plain_form_are_one(tmp_path):
    lines = [
        ("u1", "2006-03-01 10:00:05", "ｇｏｏｇｌｅ", "", ""),
        ("u1", "2006-03-01 10:00:03", "Google", "", ""),
        ("u1", "2006-03-01 10:00:04", "weather", "", ""),
        ("u2", "2006-03-01 10:00:02", "ｇｏｏｇｌｅ", "", ""),
        ("u2", "2006-03-01 10:00:03", "google", "", ""),
        ("u2", "2006-03-01 10:00:01", "Straße", "", ""),
        ("u2", "2006-03-01 10:00:01", "STRASSE", "", ""),
    ]
    mine = searches_of(tmp_path, lines).activity()
    same(mine, click_log(lines))
    assert mine.searches_of(["google"], Cap(1)) == {"google": 2}
    assert len(counts_of(mine.searches(Cap(100)))) == 4


def test_what_was_counted_is_the_same_as_with_all_lines(tmp_path):
    path = tmp_path / "log.tsv"
    good = tsv(timed_lines(30, 7))
    bad = ["u1\t2006-03-01 10:00:00", "\t2006-03-01 10:00:00\tq\t\t", "u2\t2006-03-01 10:00:00\t \t\t"]
    bad += ["u3\t2006-03-01 10:00:00\tq\thttp://[bad\t1", "u4\t2006-03-01 10:00:00\tq\thttp://a.example\t1\tmore"] * 2
    path.write_text(good + "\n".join(bad) + "\n")
    with read(path, draws=0) as whole, read(path, draws=0, searches_only=True) as part:
        assert isinstance(part.activity(), DuckDBSearches)
        assert part.summary == whole.summary
        assert sum(kind.count for kind in part.summary.malformed.values()) == len(bad)
        assert part.summary.without_url > 0


def test_other_questions_are_refused(tmp_path):
    log = searches_of(tmp_path, timed_lines(5, 8))
    mine = log.activity()
    for ask in (
        lambda: mine.clicks([], Cap(1), within=Cap(1)),
        lambda: mine.clicks_of([], Cap(1), within=Cap(1)),
        lambda: mine.reformulations([], Cap(1)),
        lambda: mine.searches(Cap(1, distinct=False)),
        lambda: log.activity(ActivityRules(first_moment=0.0)),
    ):
        with pytest.raises(InvalidParameter, match="searches_only"):
            ask()


@pytest.mark.parametrize("more", [{"draws": 1}, {"draws": 0, "keep_lines": True}])
def test_nothing_else_may_be_kept_beside(tmp_path, more):
    path = tmp_path / "log.tsv"
    path.write_text(tsv(timed_lines(3, 9)))
    with pytest.raises(InvalidParameter, match="searches_only"):
        read(path, searches_only=True, **more)


def test_which_releases_need_no_more():
    def needs(**more):
        return ClickGraphDesign.of(ClickGraphParams(Budget(2.3, 1e-5), **more)).searches_only

    assert needs()
    assert needs(algorithm="dp_sips")
    assert not needs(urls="private")
    assert not needs(algorithm="kkmn2009", count_unit="impressions")


def test_a_moment_is_found_without_the_pattern_only_where_the_pattern_agrees():
    chance = random.Random(10)
    texts = [
        "2006-03-01  7:17:12",
        "-006-03-01 07:17:12",
        "2006-03-01 24:00:00",
        "2006-03-01 07:17:1Z",
        "0000-01-01 00:00:00",
    ]
    for _ in range(3000):
        text = list("2006-03-01 07:17:12")
        for _ in range(chance.randrange(3)):
            text[chance.randrange(len(text))] = chance.choice("0123456789 -+:TZ.")
        texts.append("".join(text))
    pattern = moment_of("t").replace("strlen(t) = 19", "false")
    rows = duckdb.execute(
        f"SELECT t, {moment_of('t')}, {pattern} FROM (SELECT unnest(?::VARCHAR[]) AS t)", [texts]
    ).fetchall()
    assert len(rows) == len(texts)
    assert [(t, mine) for t, mine, theirs in rows if mine != theirs] == []
    assert sum(mine is not None for _, mine, _ in rows) > 500
