"""Counts by attribute in DuckDB, against plain Python over the same lines; and which columns are refused."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pytest
from made_logs import LISTED, URLS, read, timed_lines
from reference_activity import id_of, moment
from reference_rules import Line

from searchblend.clickgraph.release.click_log import Cap
from searchblend.core.attributes import OF_CLICKS, Attribute
from searchblend.core.errors import InvalidColumns, InvalidParameter
from searchblend.core.normalization import normalize, normalize_url
from searchblend.core.records import Record
from searchblend.logs.read import read_log

COUNTRY = Attribute("country", ("de", "fr"), column="Land")
DEVICE = Attribute("device", ("phone",))
RANK = Attribute("rank", ("0", "1-3"), OF_CLICKS)
ATTRIBUTES = (COUNTRY, DEVICE, RANK)
CAPS = (Cap(3), Cap(2, distinct=False), Cap(100, distinct=False))
PAIRS = [Record(query, normalize_url(url)) for query in LISTED for url in URLS[:3]]
Fields = dict[str, str]
Row = tuple[Line, Fields]
Time = tuple[bool, float, bool, str]


def rows_of(seed: int, times: str) -> list[Row]:
    chance = random.Random(seed)
    return [
        (line, {"country": chance.choice(["DE", " fr", "it", ""]), "device": chance.choice(["phone", "tv"])})
        for line in timed_lines(25, seed, times=times)
    ]


def write(path: Path, rows: Sequence[Row]) -> Path:
    header = "user\ttime\tquery\turl\trank\tLand\tdevice\n"
    lines = ["\t".join([*line, fields["country"], fields["device"]]) for line, fields in rows]
    path.write_text(header + "\n".join(lines) + "\n")
    return path


def time_of(line: Line) -> Time:
    at = moment(line[1])
    return at is None, at or 0.0, at is not None or not line[1], "" if at is not None else line[1]


def numbers(row: Row, attributes: Sequence[Attribute]) -> list[int]:
    (_, _, _, _, rank), fields = row
    return [one.number_of({**fields, "rank": rank}[one.name]) for one in attributes]


def by_user(rows: Sequence[Row]) -> list[list[Row]]:
    users: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        users[row[0][0]].append(row)
    return list(users.values())


def form(row: Row) -> str:
    normal = normalize(row[0][2])
    assert normal is not None
    return normal


def searches_by(rows: Sequence[Row], queries: Sequence[str] | None, attributes: Sequence[Attribute], first: int):
    """Each user's queries at their first time, and the least value of each attribute there."""
    counted: Counter[tuple] = Counter()
    for user in by_user(rows):
        mine = [row for row in user if queries is None or form(row) in queries]
        found = []
        for query in {form(row) for row in mine}:
            at = min(time_of(row[0]) for row in mine if form(row) == query)
            there = [numbers(row, attributes) for row in mine if form(row) == query and time_of(row[0]) == at]
            found.append(((*at, id_of(query)), query, tuple(map(min, zip(*there, strict=True)))))
        counted.update((query, cell) for _, query, cell in sorted(found)[:first])
    return as_array(counted, queries, attributes)


def as_array(counted: Counter[tuple], items: Sequence[object] | None, attributes: Sequence[Attribute]):
    shape = [one.size for one in attributes]
    counts = np.zeros((1 if items is None else len(items), int(np.prod(shape))), dtype=np.int64)
    for (item, cell), n in counted.items():
        counts[0 if items is None else items.index(item), np.ravel_multi_index(cell, shape)] += n
    return counts


@pytest.mark.parametrize("times", ["dates", "mixed"])
def test_searches_are_counted_as_the_rules_say(tmp_path, times):
    rows = rows_of(1, times)
    with read(write(tmp_path / "log.tsv", rows), draws=0, attributes=ATTRIBUTES) as log:
        mine = log.activity()
        for queries in (LISTED, None):
            for attributes in ((COUNTRY,), (DEVICE, COUNTRY)):
                for first in (1, 3):
                    expected = searches_by(rows, queries, attributes, first)
                    assert np.array_equal(mine.searches_by(queries, attributes, Cap(first)), expected)


def test_counts_over_all_values_are_those_without_attributes(tmp_path):
    """By every cap, also of events: the cells of a query add up to its count, and those of a pair to its clicks."""
    with read(write(tmp_path / "log.tsv", rows_of(2, "mixed")), draws=0, attributes=ATTRIBUTES) as log:
        mine = log.activity()
        for cap in CAPS:
            cells = mine.searches_by(LISTED, (COUNTRY, DEVICE), cap)
            assert cells.sum(axis=1).tolist() == list(mine.searches_of(LISTED, cap).values())
            clicks = mine.clicks_by(PAIRS, ATTRIBUTES, cap, within=Cap(3))
            assert clicks.sum(axis=1).tolist() == list(mine.clicks_of(PAIRS, cap, within=Cap(3)).values())


def test_a_click_has_the_values_of_its_own_line(tmp_path):
    rows: list[Row] = [
        (("p", "5", "a", "http://u.example", "2"), {"country": "de", "device": "tv"}),
        (("p", "5", "a", "http://v.example", "9"), {"country": "fr", "device": "phone"}),
        (("p", "9", "a", "http://u.example", "0"), {"country": "fr", "device": "phone"}),
        (("q", "1", "a", "", ""), {"country": "fr", "device": "phone"}),
    ]
    pairs = [Record("a", "http://u.example"), Record("a", "http://v.example"), Record("b", "http://u.example")]
    with read(write(tmp_path / "log.tsv", rows), draws=0, attributes=ATTRIBUTES) as log:
        mine = log.activity()
        assert mine.clicks_by(pairs, (COUNTRY,), Cap(2), within=Cap(2)).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
        every = mine.clicks_by(pairs, (RANK,), Cap(9, distinct=False), within=Cap(9, distinct=False))
        assert every.tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]
        assert mine.clicks_by(None, (COUNTRY,), Cap(1), within=Cap(2)).tolist() == [[1, 0, 0]]
        assert mine.searches_by(["a", "b"], (COUNTRY,), Cap(2)).tolist() == [[1, 1, 0], [0, 0, 0]]
        assert mine.searches_by([], (COUNTRY,), Cap(2)).shape == (0, 3)
        with pytest.raises(InvalidParameter, match="expected a log that was read with the same attributes"):
            mine.searches_by(["a"], (Attribute("country", ("it",)),), Cap(1))


LINES = [("p", "a", "DE", "true"), ("q", "a", "at", "false")]


def in_json(folder: Path) -> Path:
    lines = [{"user": u, "query": q, "country": c, "app": b == "true"} for u, q, c, b in LINES]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return folder / "log.jsonl"


def in_parquet(folder: Path) -> Path:
    values = ", ".join(f"('{u}', '{q}', '{c}', {b})" for u, q, c, b in LINES)
    select = f'SELECT * FROM (VALUES {values}) AS t("user", query, "Country", app)'
    duckdb.sql(f"COPY ({select}) TO '{folder}/log.parquet' (FORMAT parquet)")
    return folder / "log.parquet"


def in_csv(folder: Path) -> Path:
    (folder / "log.csv").write_text("user,query,country,app\n" + "".join(",".join(line) + "\n" for line in LINES))
    return folder / "log.csv"


def in_folders(folder: Path) -> Path:
    for user, query, country, app in LINES:
        part = folder / "log" / f"country={country}" / "part.csv"
        part.parent.mkdir(parents=True)
        part.write_text(f"user,query,app\n{user},{query},{app}\n")
    return folder / "log"


@pytest.mark.parametrize("make", [in_json, in_parquet, in_csv, in_folders])
def test_attributes_are_read_from_every_format_with_columns(tmp_path, make):
    attributes = (Attribute("country", ("de",)), Attribute("app", ("true", "false")))
    with read_log(make(tmp_path), draws=0, urls=False, attributes=attributes) as log:
        assert log.activity().searches_by(["a"], attributes, Cap(1)).tolist() == [[1, 0, 0, 0, 1, 0]]


def test_columns_without_names_have_numbers(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("p,a,DE\nq,a,at\n")
    attribute = Attribute("country", ("de",), column="#3")
    columns = {"user": "#1", "query": "#2"}
    with read_log(path, draws=0, columns=columns, attributes=[attribute]) as log:
        assert log.activity().searches_by(["a"], [attribute], Cap(1)).tolist() == [[1, 1]]
    with pytest.raises(InvalidColumns, match="either all by name or all by number"):
        read_log(path, draws=0, columns=columns, attributes=[Attribute("country", ("de",))])


def test_an_attribute_without_its_column_is_refused(tmp_path):
    path = in_csv(tmp_path)
    with pytest.raises(
        InvalidColumns,
        match=r"log\.csv: no column 'device' for an attribute: there are user, query",
    ):
        read_log(path, draws=0, attributes=[DEVICE])
    with pytest.raises(InvalidColumns, match="the attribute country and something else are given the same column"):
        read_log(path, draws=0, attributes=[Attribute("country", ("a",), column="query")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "yandex"}, "attributes: the yandex format has no columns for them"),
        ({"format": "excite"}, "attributes: the excite format has no columns for them"),
        ({"format": "combined", "query_parameter": "q", "columns": {"user": "address"}}, "the combined format has no"),
        ({"engine": "spark"}, "attributes: only with the engine duckdb"),
        ({"draws": 1}, "attributes: expected with draws=0"),
        ({"searches_only": True}, "attributes: expected with draws=0, and without searches_only"),
    ],
)
def test_attributes_are_refused_where_they_cannot_be(tmp_path, options, message):
    with pytest.raises((InvalidColumns, InvalidParameter), match=message):
        read_log(in_csv(tmp_path), **{"draws": 0, "attributes": [DEVICE], **options})


def test_the_rank_of_the_aol_log_is_an_attribute_and_nothing_else_is(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n1\ta\t2006-03-01 07:17:12\t2\thttp://u.example\n")
    with read_log(path, draws=0, attributes=[RANK]) as log:
        pair = Record("a", "http://u.example")
        assert log.activity().clicks_by([pair], [RANK], Cap(1), within=Cap(1)).tolist() == [[0, 1, 0]]
    with pytest.raises(InvalidColumns, match="the aol format has no columns for them"):
        read_log(path, draws=0, attributes=[DEVICE])
