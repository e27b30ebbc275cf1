"""Limited activity: both engines answer every question with the same counts, to the last record."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from both_engines import counts_of, read_with_both
from odd_logs import HEADER, QUERIES, odd_rows

from searchblend.clickgraph.release.click_log import Cap, ClickLog
from searchblend.clickgraph.release.release_data import release_data
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.logs.activity import ActivityRules
from searchblend.logs.read import read_log

pytestmark = pytest.mark.usefixtures("cluster")

LISTED = ["google", "日本語", "äöü strasse", "nan", "double blank", "it's", "nobody's"]
RECORDS = [Record("google", "http://a.com"), Record("日本語", "page title"), Record("nan", "http://nobody.example")]
TIMES = [
    "", "7", "1141200000.25", "1141200001", "1141200001.0", "1141200000500", "1141200000000001", "2006-03-01 08:00:00",
    "2006-03-01T08:00:01", "2006-02-30 08:00:00", "2006-03-01 24:00:00", "2006/03/01 08:00:00", "1e999", "soon",
    "später",
]  # fmt: skip
RANKS = ["", "1", "2", "2.0", "10", "x", "nan", " 3"]


def timed_rows(n: int, seed: int) -> list[list[str]]:
    """Odd rows with times of every kind that tie often; clicks without a time too."""
    chance = random.Random(seed)
    rows = odd_rows(n, seed)
    for row in rows:
        row[1] = chance.choice(LISTED[:4]) if chance.random() < 0.5 else row[1]
        row[3:] = [chance.choice(TIMES), chance.choice(RANKS)]
    return rows


def write(path: Path, rows: list[list[str]], header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *("\t".join(row) for row in rows)]) + "\n")
    return path


def same(mine: ClickLog, theirs: ClickLog) -> None:
    for cap in (Cap(2), Cap(4, distinct=False)):
        assert counts_of(mine.searches(cap)) == counts_of(theirs.searches(cap))
        assert mine.searches_of(LISTED, cap) == theirs.searches_of(LISTED, cap)
        typed = counts_of(mine.reformulations(LISTED, cap))
        assert typed == counts_of(theirs.reformulations(LISTED, cap))
        assert typed
    for cap, within in (
        (Cap(2), Cap(3)),
        (Cap(3, distinct=False), Cap(5, distinct=False)),
    ):
        clicks = counts_of(mine.clicks(LISTED, cap, within=within))
        assert clicks == counts_of(theirs.clicks(LISTED, cap, within=within))
        assert clicks
        for restrict_first in (True, False):
            asked = {"cap": cap, "within": within, "restrict_first": restrict_first}
            assert mine.clicks_of(RECORDS, **asked) == theirs.clicks_of(RECORDS, **asked)
    weighted = counts_of(mine.weighted_searches(3, 100, ["google"]))
    assert weighted == counts_of(theirs.weighted_searches(3, 100, ["google"]))
    assert set(weighted.values()) - {100}
    assert mine.weighted_searches_of(LISTED, 3, 100) == theirs.weighted_searches_of(LISTED, 3, 100)


def test_every_question_about_times_of_every_kind(tmp_path: Path):
    with read_with_both(write(tmp_path / "log.tsv", timed_rows(900, seed=11)), draws=0) as (one, other):
        same(one.activity(), other.activity())


def test_a_window_and_synonyms_and_suggestions_and_hosts_only(tmp_path: Path):
    chance = random.Random(14)
    rows = [[*row, chance.choice([*LISTED[:3], *QUERIES])] for row in timed_rows(400, seed=12)]
    for row in rows[::2]:
        row[2] = ""
    log = write(tmp_path / "log.tsv", rows, f"{HEADER}\toffered")
    rules = ActivityRules(1141200000.3, 1141200001.5, {"google": "search", "日本語": "search"})
    with read_with_both(log, draws=0, host_only=True, columns={"suggestion": "offered"}) as (one, other):
        mine, theirs = one.activity(rules), other.activity(rules)
        searches = counts_of(mine.searches(Cap(3)))
        assert searches == counts_of(theirs.searches(Cap(3)))
        assert searches[Record("search")] > 1
        clicks = counts_of(mine.clicks(["search"], Cap(3), within=Cap(3)))
        assert clicks == counts_of(theirs.clicks(["search"], Cap(3), within=Cap(3)))
        suggested = {str(record.url) for record in clicks if str(record.url).startswith("suggestion:")}
        assert "suggestion:search" in suggested
        assert not all(map(str.isascii, suggested))


def test_a_click_graph_is_released_and_picks_agree_with_sizes(tmp_path: Path):
    common = [[f"p{i}", "google", "http://a.com", f"{i}", "1"] for i in range(300)]
    log = write(tmp_path / "log.tsv", timed_rows(120, seed=13) + common)
    with read_log(log, engine="spark", draws=0) as opened:
        assert opened._engine.drawn is None  # type: ignore[attr-defined]
        with pytest.raises(InvalidParameter, match="draws"):
            opened.split(optin_fraction=0.5)
        activity = opened.activity()
        released = release_data(activity, ClickGraphParams(budget=Budget(4.0, 1e-5), urls="private"))
        tally = activity.searches(Cap(3))
        sizes = tally.sizes()
        picked = tally.pick_each({n: np.arange(size) for n, size in sizes.items()})
        assert picked == tally.at_least(1)
    assert [row.query for row in released.queries] == ["google"]
    assert [(row.query, row.url) for row in released.clicks] == [("google", "http://a.com")]
