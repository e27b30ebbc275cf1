"""Columns that the names of folders hold, as Hive lays tables out: read where an option names them, and only there."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from made_logs import counts_of, read

import searchblend as sb
from searchblend.core.errors import InputError, InvalidColumns
from searchblend.core.records import Record

ROWS = {"yes": [("ann", "weather"), ("bob", "news"), ("cyd", "maps")], "no": [("bob", "weather"), ("dee", "news")]}
FORMATS: dict[str, dict[str, Any]] = {
    "part.csv": {},
    "part.tsv.gz": {},
    "part.jsonl": {"urls": False},
    "part.parquet": {},
    "headerless.csv": {"columns": {"user": "#1", "query": "#2"}},
    "excite.txt": {"format": "excite"},
}


def write(path: Path, rows: list[tuple[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        values = ", ".join(f"('{user}', '{query}')" for user, query in rows)
        duckdb.sql(f"COPY (SELECT * FROM (VALUES {values}) AS t(user, query)) TO '{path}'")
        return
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"user": user, "query": query}) + "\n" for user, query in rows))
        return
    mark = "," if path.suffix == ".csv" else "\t"
    lines = [] if path.stem in ("headerless", "excite") else [mark.join(["user", "query"])]
    time = "970916001949\t" if path.stem == "excite" else ""
    text = "".join(f"{line}\n" for line in [*lines, *(f"{user}{mark}{time}{query}" for user, query in rows)])
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@pytest.mark.parametrize("name", FORMATS)
def test_people_opt_in_by_the_folder_of_their_lines(name: str, tmp_path: Path):
    """Only those whose every line is in a folder that says yes."""
    for answer, rows in ROWS.items():
        write(tmp_path / f"Consent={answer}" / "day=1" / name, rows)
    with read(tmp_path, optin_column="consent", **FORMATS[name]) as log:
        optin, clients = log.split()
        assert (optin.n_users, clients.n_users) == (2, 2)
        assert set(counts_of(optin.tally())) == {Record("weather"), Record("maps")}
        assert (log.summary.malformed, log.decided["in_folders"]) == ({}, "optin")


@pytest.mark.parametrize("name", ["part.csv", "part.jsonl", "part.parquet"])
def test_a_folder_names_what_an_option_asks_of_it_and_nothing_else(name: str, tmp_path: Path):
    """Not a letter of its value is read otherwise than in a line: case, escapes, other letters than ASCII."""
    for value in ("Z%C3%BCrich%2Fnews", "__HIVE_DEFAULT_PARTITION__", "maps"):
        write(tmp_path / "user=nobody" / f"topic={value}" / name, [("ann", "q"), ("bob", "q")])
    with read(tmp_path, columns={"query": "topic"}, urls=False, keep_lines=True) as log:
        assert set(counts_of(log.split(optin_fraction=1e-9)[1].tally())) <= {Record("zürich/news"), Record("maps")}
        statistics = log.statistics()
        assert (statistics.users, statistics.queries, log.summary.used) == (2, 2, 4)
        assert {reason: kind.count for reason, kind in log.summary.malformed.items()} == {"unusable_query": 2}
        if name != "part.parquet":
            assert [place.line for place in log.summary.malformed["unusable_query"].first] == (
                [1, 2] if name == "part.jsonl" else [2, 3]
            )
    with read(tmp_path, urls=False) as log:  # unless an option names them
        assert (log.summary.users, "in_folders" in log.decided) == (2, False)


def test_a_folder_wins_over_a_column_of_the_file(tmp_path: Path):
    write(tmp_path / "query=weather" / "part.csv", [("ann", "q")])
    with read(tmp_path, columns={"query": "QUERY"}) as log:
        assert set(counts_of(log.split(optin_fraction=1e-9)[1].tally())) == {Record("weather")}


@pytest.mark.parametrize("name", ["part.csv", "part.parquet"])
def test_values_of_users_may_be_names_of_folders(name: str, tmp_path: Path):
    write(tmp_path / "country=ch" / name, [(f"u{i}", "q") for i in range(500)])
    write(tmp_path / "country=__HIVE_DEFAULT_PARTITION__" / name, [("x", "q")])
    budget = sb.Budget(epsilon=4.0, delta=1e-5)
    heavy = sb.select_values(tmp_path, budget, value="country")
    assert list(heavy.counts) == ["ch"]


def test_what_no_file_can_say(tmp_path: Path):
    write(tmp_path / "consent=yes" / "a.csv", ROWS["yes"])
    write(tmp_path / "b.csv", ROWS["no"])
    with pytest.raises(InvalidColumns, match=r"b\.csv: no column 'consent': there are user, query"):
        read(tmp_path, optin_column="consent")
    with pytest.raises(InputError, match="no line of the log can be used"):
        write(tmp_path / "answer=maybe" / "a.csv", ROWS["yes"])
        read(tmp_path / "answer=maybe", optin_column="answer")
    with pytest.raises(InvalidColumns, match="user and query are both in the names of folders"):
        write(tmp_path / "who=1" / "what=2" / "a.csv", ROWS["yes"])
        read(tmp_path / "who=1", columns={"user": "who", "query": "what"})
    with pytest.raises(InvalidColumns, match="yandex format has none"):
        read(tmp_path / "consent=yes", format="yandex", optin_column="consent")
