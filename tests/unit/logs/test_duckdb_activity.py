"""Limited activity in DuckDB against the same questions asked of people in memory."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_logs import LISTED, QUERIES, URLS, counts_of, read, timed_lines
from reference_activity import click_log
from reference_rules import Line, tsv

from searchblend.clickgraph.release.click_log import Cap
from searchblend.core.errors import InputError, InvalidColumns, InvalidParameter
from searchblend.core.records import Record
from searchblend.logs.activity import ActivityRules
from searchblend_lab.zipf_log import ZipfLog

pytestmark = pytest.mark.thorough

CAPS = [
    Cap(1),
    Cap(3),
    Cap(100),
    Cap(2, distinct=False),
    Cap(100, distinct=False),
]
TIMES = [
    "",
    "5",
    "5.0",
    "2000",
    "2006-03-01 10:00:00",
    "2006-02-30 10:00:00",
    "2006-03-01 24:00:00",
    "2006/03/01 10:00:00",
    "1141200000.12345678",
    "1e999",
    "soon",
]
WITHIN = [Cap(2), Cap(3, distinct=False)]


def activity_of(tmp_path: Path, lines: list[Line], rules: ActivityRules | None = None):
    path = tmp_path / "log.tsv"
    path.write_text(tsv(lines))
    return read(path, draws=0).activity(rules)


def same(mine, theirs) -> None:
    for cap in CAPS:
        assert counts_of(mine.searches(cap)) == counts_of(theirs.searches(cap))
        assert mine.searches_of(LISTED, cap) == theirs.searches_of(LISTED, cap)
        assert counts_of(mine.reformulations(LISTED, cap)) == counts_of(theirs.reformulations(LISTED, cap))
        for within in WITHIN:
            assert counts_of(mine.clicks(LISTED, cap, within=within)) == counts_of(
                theirs.clicks(LISTED, cap, within=within)
            )
    for first, units, without in [(1, 100, []), (3, 100, ["google"]), (50, 7, LISTED), (50, 1000, [])]:
        assert counts_of(mine.weighted_searches(first, units, without)) == counts_of(
            theirs.weighted_searches(first, units, without)
        )


def test_searches_by_number_are_counted_like_those_by_name(tmp_path):
    mine = activity_of(tmp_path, timed_lines(25, 1, times="numbers"))
    user, query, moment = mine.numbered_searches()
    assert len(moment) == len(user)
    numbered = ZipfLog(user, query)
    for cap in CAPS:
        assert sorted(counts_of(numbered.searches(cap)).values()) == sorted(counts_of(mine.searches(cap)).values())


@pytest.mark.parametrize("times", ["dates", "numbers", "none", "mixed"])
def test_every_answer_is_that_of_the_rules(tmp_path, times):
    lines = timed_lines(50, 1, times=times)
    same(activity_of(tmp_path, lines), click_log(lines))


@pytest.mark.parametrize("restrict_first", [True, False])
def test_clicks_on_named_records(tmp_path, restrict_first):
    lines = timed_lines(40, 3)
    mine, theirs = activity_of(tmp_path, lines), click_log(lines)
    records = [
        Record("google", "http://a.example"),
        Record("null", "/only/a/path"),
        Record("nobody", "http://x.example"),
    ]
    for cap in CAPS:
        for within in WITHIN:
            asked = {"cap": cap, "within": within, "restrict_first": restrict_first}
            assert mine.clicks_of(records, **asked) == theirs.clicks_of(records, **asked)


def test_synonyms_and_a_window(tmp_path):
    lines = timed_lines(30, 4)
    synonyms = {"null": "google", "ünïcode": "Unicode!"}
    window = (1141196400.0, 1141196400.0 + 1300)
    rules = ActivityRules(*window, synonyms)
    mine, theirs = activity_of(tmp_path, lines, rules), click_log(lines, synonyms, window)
    same(mine, theirs)
    assert Record("Unicode!") in counts_of(mine.searches(Cap(100)))
    assert mine.searches(Cap(5)).of_queries(["google"])[Record("google")] > 0


def test_the_common_and_the_rare_agree_with_the_sizes(tmp_path):
    tally = activity_of(tmp_path, timed_lines(60, 5)).clicks(LISTED, Cap(20), within=Cap(20))
    counts = counts_of(tally)
    common = tally.at_least(3)
    assert {record: n for n, records in common.items() for record in records} == {
        record: n for record, n in counts.items() if n >= 3
    }


def test_a_log_without_urls_has_no_clicks(tmp_path):
    path = tmp_path / "queries.tsv"
    path.write_text("user\tquery\nu1\ta\nu1\tb\nu2\ta\n")
    activity = read(path, draws=0).activity()
    assert counts_of(activity.searches(Cap(5))) == {Record("a"): 2, Record("b"): 1}
    assert counts_of(activity.clicks(["a", "b"], Cap(5), within=Cap(5))) == {}


def test_one_log_can_be_asked_under_several_rules(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text("user\tquery\turl\nu1\tä\tHTTP://A.example\nu2\tb\thttp://b.example\n")
    with read(path, draws=0) as log:
        for meant in ("x", "y"):
            activity = log.activity(ActivityRules(synonyms={"ä": meant}))
            assert counts_of(activity.searches(Cap(5))) == {Record(meant): 1, Record("b"): 1}
            assert counts_of(activity.clicks([meant], Cap(5), within=Cap(5))) == {Record(meant, "http://a.example"): 1}


def test_an_empty_window_is_empty(tmp_path):
    activity = activity_of(tmp_path, timed_lines(5, 6), ActivityRules(0.0, 1.0))
    assert activity.searches(Cap(5)).sizes() == {}
    with pytest.raises(InvalidParameter, match="window"):
        ActivityRules(2.0, 1.0)


def test_drawing_is_needed_for_groups_and_lines_for_activity(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text(tsv(timed_lines(5, 7)))
    with pytest.raises(InvalidParameter, match="draws"):
        read(path).activity()
    with pytest.raises(InvalidParameter, match="draws"):
        read(path, draws=0).split(optin_fraction=0.5)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from(TIMES),
            st.sampled_from(QUERIES),
            st.sampled_from(["", *URLS]),
            st.sampled_from(["", "1", "2", "10", "x"]),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_any_few_lines(tmp_path, lines):
    if not any(line[3] for line in lines):
        return
    mine, theirs = activity_of(tmp_path, lines), click_log(lines)
    for cap in (Cap(2), Cap(100, distinct=False)):
        assert counts_of(mine.searches(cap)) == counts_of(theirs.searches(cap))
        assert counts_of(mine.clicks(LISTED, Cap(9), within=cap)) == counts_of(
            theirs.clicks(LISTED, Cap(9), within=cap)
        )


AOL = """AnonID\tQuery\tQueryTime\tItemRank\tClickURL
1\tb\t2006-03-01 00:00:03\t1\thttp://b.example
1\ta\t2006-03-01 00:00:01\t1\thttp://a.example
1\tA \t2006-03-01 00:00:01\t10\thttp://z.example
1\ta\t2006-03-01 00:00:01\t2\thttp://y.example
1\tb\t2006-03-01 00:00:02\t\t
1\tc\t2006-03-01 00:00:09\t1\thttp://c.example
2\ta\t2006-03-01 00:00:01
2\tc\t2006-03-01 00:00:02\t1\thttp://c.example
2\t-\t2006-03-01 00:00:01\t\t
3\tÄ\t2006-03-01 00:00:01\t1\thttp://c.example/
"""


@pytest.fixture
def by_hand(tmp_path: Path):
    """User 1 searched a at 1 s (three clicks), b at 2 s and 3 s, c at 9 s; user 2 a and c; user 3 ä."""
    (tmp_path / "log").write_text(AOL)
    with read(tmp_path / "log", draws=0) as log:
        yield log.activity()


@pytest.mark.parametrize(
    ("cap", "expected"),
    [
        (Cap(1, distinct=False), {"a": 2, "ä": 1}),
        (Cap(2, distinct=False), {"a": 2, "b": 1, "c": 1, "ä": 1}),
        (Cap(3, distinct=False), {"a": 2, "b": 2, "c": 1, "ä": 1}),
        (Cap(9, distinct=False), {"a": 2, "b": 2, "c": 2, "ä": 1}),
        (Cap(2), {"a": 2, "b": 1, "c": 1, "ä": 1}),
        (Cap(3), {"a": 2, "b": 1, "c": 2, "ä": 1}),
    ],
)
def test_the_first_searches_of_a_log_counted_by_hand(by_hand, cap, expected):
    assert {str(record.query): n for record, n in counts_of(by_hand.searches(cap)).items()} == expected


@pytest.mark.parametrize(
    ("first", "expected"), [(1, "aa cc äc"), (2, "aa ay cc äc"), (3, "aa ay az cc äc"), (9, "aa ay az bb cc cc äc")]
)
def test_clicks_are_taken_by_time_and_rank(by_hand, first, expected):
    tally = by_hand.clicks(["a", "b", "c", "ä"], Cap(first, distinct=False), within=Cap(9))
    found = sorted(f"{record.query}{str(record.url)[7]}" for record in counts_of(tally).elements())
    assert " ".join(found) == expected


@pytest.mark.parametrize(
    "times", [["9", "10", "100"], ["2006-03-01", "2006-03-02", "2006-04-01"], ["9.5", "1e1", "99"]]
)
def test_times_are_compared_as_numbers_or_as_texts(times, tmp_path: Path):
    names = ["first", "second", "third"]
    rows = [f"1\t{name}\tu\t{time}" for name, time in zip(names, times, strict=True)]
    (tmp_path / "log").write_text("\n".join(["user\tquery\turl\ttime", *rows[::-1]]) + "\n")
    with read(tmp_path / "log", draws=0) as log:
        for n in (1, 2, 3):
            assert {record.query for record in counts_of(log.activity().searches(Cap(n)))} == set(names[:n])


def test_a_log_without_times_counts_every_line(tmp_path: Path):
    rows = [("1", "a")] * 3 + [("1", "b"), ("2", "a")]
    (tmp_path / "log").write_text("user\tquery\n" + "".join(f"{user}\t{query}\n" for user, query in rows))
    with read(tmp_path / "log", draws=0) as log:
        counts = [counts_of(log.activity().searches(cap)) for cap in (Cap(9, distinct=False), Cap(9))]
    assert counts == [{Record("a"): 4, Record("b"): 1}, {Record("a"): 2, Record("b"): 1}]


def test_ties_do_not_depend_on_the_order_of_the_lines(tmp_path: Path):
    lines = timed_lines(30, 8, times="mixed")
    found = []
    for seed in range(3):
        random.Random(seed).shuffle(lines)
        activity = activity_of(tmp_path, lines)
        within = Cap(2, distinct=False)
        found.append((counts_of(activity.searches(Cap(2))), counts_of(activity.clicks(LISTED, within, within=within))))
    assert found[0] == found[1] == found[2]


YANDEX = """0\tM\t3\t77
0\t0\tQ\t0\t5\t1\t10,1\t20,2
0\t4\tC\t0\t20
0\t9\tC\t0\t10
0\t9\tT\t1\t6\t1\t10,1
0\t20\tQ\t2\t5\t1\t10,1
1\tM\t2\t77
1\t0\tQ\t0\t7\t1\t10,1
8\t0\tQ\t0\t5\t1\t10,1
8\t1\tC\t0\t10
9\t0\tQ\t0\t5\t1\t10,1
"""


def test_yandex_queries_without_a_click_are_searches_too(tmp_path: Path):
    """User 77 searched 7 on day 2, on day 3 then 5 (clicks on 20 and 10), 6 and 5; sessions 8 and 9 are nobody's."""
    (tmp_path / "train").write_text(YANDEX)
    path = tmp_path / "train"
    with read(path, format="yandex", draws=0) as log, read(path, format="yandex") as drawn:
        activity = log.activity()
        searches = [counts_of(activity.searches(Cap(n, distinct=False))) for n in (1, 2, 3, 9)]
        clicks = [
            counts_of(activity.clicks(["5", "6", "7"], Cap(cap), within=Cap(within, distinct=False)))
            for cap, within in ((1, 2), (9, 1), (9, 9))
        ]
        assert (log.summary.users, drawn.summary.users) == (1, 1)
        assert log.summary.as_json() == drawn.summary.as_json()
        assert log.summary.without_url == 4
        assert counts_of(activity.reformulations(["5", "6", "7"], Cap(9))) == {}
    five, six, seven = Record("5"), Record("6"), Record("7")
    assert searches == [{seven: 1}, {seven: 1, five: 1}, {seven: 1, five: 1, six: 1}, {seven: 1, five: 2, six: 1}]
    assert clicks == [{Record("5", "20"): 1}, {}, {Record("5", "20"): 1, Record("5", "10"): 1}]


SUGGESTED = [
    ["user", "query", "url", "time", "offered"],
    ["1", "a", "", "1", "B "],
    ["1", "a", "http://x.example", "1", ""],
    ["1", "b", "", "2", ""],
    ["2", "a", "http://x.example", "1", "c"],
    ["2", "c", "", "2", "   "],
    ["3", "ä", "", "1", "Ünï  x"],
    ["3", "b", "", "2", "\u0378"],
    ["4", "b", "", "1", "x" * 3000],
]
"""User 2 clicked a URL and not its suggestion; the last lines of users 2, 3 and 4 suggest nothing usable."""


def write_suggested(path: Path) -> Path:
    header, *rows = SUGGESTED
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        columns = ", ".join(f"unnest(?) AS {name}" for name in header)
        with duckdb.connect() as connection:
            connection.execute(
                f"CREATE TABLE t AS SELECT {columns}", [list(column) for column in zip(*rows, strict=True)]
            )
            connection.execute(f"COPY t TO '{path}'")
    else:
        text = io.StringIO()
        csv.writer(text, delimiter="\t" if path.suffix == ".tsv" else ",", lineterminator="\n").writerows(SUGGESTED)
        path.write_text(text.getvalue())
    return path


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl", "parquet"])
def test_a_click_on_a_suggestion_is_a_click(tmp_path: Path, suffix):
    path = write_suggested(tmp_path / f"log.{suffix}")
    queries = ["a", "b", "c", "ä"]
    with read(path, draws=0, columns={"suggestion": "offered"}) as log:
        activity, renamed = log.activity(), log.activity(ActivityRules(synonyms={"b": "z"}))
        assert counts_of(activity.searches(Cap(9))) == {
            Record("a"): 2,
            Record("b"): 3,
            Record("c"): 1,
            Record("ä"): 1,
        }
        assert counts_of(activity.clicks(queries, Cap(9), within=Cap(9))) == {
            Record("a", "http://x.example"): 2,
            Record("a", "suggestion:b"): 1,
            Record("ä", "suggestion:ünï x"): 1,
        }
        assert sum(counts_of(activity.clicks(queries, Cap(1), within=Cap(9))).values()) == 3
        assert activity.clicks_of([Record("a", "suggestion:b")], Cap(9), within=Cap(9)) == {
            Record("a", "suggestion:b"): 1
        }
        assert Record("a", "suggestion:z") in counts_of(renamed.clicks(queries, Cap(9), within=Cap(9)))


def test_to_a_hybrid_run_a_click_on_a_suggestion_is_a_line_without_url(tmp_path: Path):
    path = write_suggested(tmp_path / "log.tsv")
    with read(path, columns={"suggestion": "offered"}) as log, read(path) as other:
        assert log.summary.as_json() == other.summary.as_json()
        assert (log.summary.used, log.summary.without_url, log.summary.users) == (2, 6, 2)


def test_suggestions_are_clicks_in_a_log_without_urls_too(tmp_path: Path):
    (tmp_path / "log.tsv").write_text("user\tquery\toffered\n1\ta\tb\n1\tb\t\n")
    with read(tmp_path / "log.tsv", draws=0, columns={"suggestion": "offered"}) as log:
        assert counts_of(log.activity().clicks(["a", "b"], Cap(9), within=Cap(9))) == {Record("a", "suggestion:b"): 1}


def test_a_column_called_suggestion_is_none_unless_it_is_named(tmp_path: Path):
    (tmp_path / "log.jsonl").write_text('{"user": 1, "query": "a", "url": "u", "suggestion": ["b", "c"]}\n')
    with read(tmp_path / "log.jsonl", draws=0) as log:
        assert (log.summary.used, log.summary.malformed) == (1, {})
    (tmp_path / "log.tsv").write_text("user\tquery\tsuggestion\n1\ta\tb\n")
    with pytest.raises(InvalidColumns, match="no column 'offered'"):
        read(tmp_path / "log.tsv", columns={"suggestion": "offered"})


def test_a_log_of_searches_without_a_click(tmp_path: Path):
    (tmp_path / "log.tsv").write_text("user\tquery\turl\n1\ta\t\n2\ta\t\n")
    with read(tmp_path / "log.tsv", draws=0) as log:
        assert log.summary.users == 2
        assert counts_of(log.activity().searches(Cap(9))) == {Record("a"): 2}
    with pytest.raises(InputError, match="no line of the log can be used"):
        read(tmp_path / "log.tsv")
