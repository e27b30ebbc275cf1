"""Tables of counts without users: read where a row is declared to be the unit, and the promise says so everywhere."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from input_worlds import KEY
from searchblend.cli.main import main
from searchblend.core.errors import InvalidColumns, InvalidParameter
from searchblend.core.privacy import ROW_UNIT, Budget
from searchblend.logs.read import read_log
from searchblend.releases.select_values import select_values

ROWS = [
    ("green tea", 400, "http://a.example/"),
    ("coffee", 350, "http://b.example/"),
    ("my name", 1, "http://c.example/"),
]
BAD = [f"tea,{count},http://a.example/" for count in ("-1", "1.5", "+3", "", "1e3", "007")]
TERMS = {"query": "term"}
FLAGS = ["--unit", "row", "--epsilon", "4", "--delta", "1e-6"]


def table(folder: Path, rows: list[tuple[str, int, str]] = ROWS, bad: tuple[str, ...] = ()) -> Path:
    lines = ["term,count,url", *(f"{term},{n},{url}" for term, n, url in rows), *bad]
    (folder / "terms.csv").write_text("\n".join(lines) + "\n")
    return folder / "terms.csv"


def held(path: Path, **options: Any) -> Counter[tuple[str, str]]:
    """person → record, of all people of both groups."""
    with read_log(path, unit="row", key=KEY, **{"columns": TERMS, **options}) as log:
        rows = log._engine._session.rows("SELECT person, query, url FROM drawn")  # type: ignore[attr-defined]
        return Counter(dict.fromkeys(rows, 1))


def by_record(path: Path, **options: Any) -> dict[str, int]:
    return dict(Counter(query for _, query, _ in held(path, **options)))


def test_a_count_is_so_many_users_and_lines_of_one_record_add_up(tmp_path: Path):
    rows = [*ROWS, ("coffee", 50, "http://b.example/"), ("nothing", 0, "http://d.example/")]
    path = table(tmp_path, rows, tuple(BAD))
    assert by_record(path) == {"green tea": 400, "coffee": 400, "my name": 1}
    with read_log(path, unit="row", columns=TERMS, key=KEY) as log:
        assert (log.summary.users, log.summary.lines, log.summary.used) == (801, 11, 5)
        assert {reason: kind.count for reason, kind in log.summary.malformed.items()} == {"bad_count": 6}
        assert [place.line for place in log.summary.malformed["bad_count"].first] == [7, 8, 9, 10, 11]
        assert log.decided["unit"] == "row"
        assert "in_folders" not in log.decided
        groups = log.split(optin_fraction=0.25)
        assert sum(group.n_users for group in groups) == 801
        assert {group.unit for group in groups} == {ROW_UNIT}


def test_every_format_of_tables_is_read_alike(tmp_path: Path):
    path = table(tmp_path)
    wanted = by_record(path)
    duckdb.sql(f"COPY (FROM '{path}') TO '{tmp_path}/terms.parquet'")
    lines = [json.dumps({"term": term, "count": n, "url": url}) for term, n, url in ROWS]
    (tmp_path / "terms.jsonl").write_text("\n".join(lines))
    lines = ["\t".join((term, url)) for term, n, url in ROWS for _ in range(n)]
    (tmp_path / "searches.tsv").write_text("\n".join(lines))  # a search in a line, without a count
    named = {"query": "term", "count": "count"}
    assert by_record(tmp_path / "terms.parquet") == wanted
    assert by_record(tmp_path / "terms.jsonl", columns=named) == wanted
    assert by_record(tmp_path / "searches.tsv", columns={"query": "#1", "url": "#2"}) == wanted


def test_one_row_more_changes_the_draw_of_no_other(tmp_path: Path):
    """Wherever its line stands, and however the lines of a record are cut."""
    before = held(table(tmp_path))
    another = ("coffee", 1, "http://b.example/")
    for rows in ([another, *ROWS], [*ROWS, another], [ROWS[0], ("coffee", 351, "http://b.example/"), ROWS[2]]):
        after = held(table(tmp_path, rows))
        assert not before - after
        assert len(after - before) == 1
    malformed = held(table(tmp_path, ROWS, ("coffee,x,http://b.example/", 'a"b,1,http://b.example/')))
    assert malformed == before


def test_the_values_of_a_table_of_counts_are_selected(tmp_path: Path, capsys):
    path = table(tmp_path, ROWS, ("tea,-1,http://a.example/",))
    chosen = select_values(path, Budget(4, 1e-6), value="term", unit="row")
    assert list(chosen.counts) == ["green tea", "coffee"]
    assert abs(chosen.counts["green tea"] - 400) < 30
    assert chosen.guarantee.unit == ROW_UNIT
    out = tmp_path / "out"
    assert main(["select", str(path), "-o", str(out), "--columns", "value=term", *FLAGS]) == 0
    printed = capsys.readouterr()
    assert "for each counted row, not for a person" in printed.out
    assert "1 of 4 lines were left out" in printed.err
    statement = json.loads((out / "statement.json").read_text())
    assert statement["guarantee"]["unit"] == ROW_UNIT
    assert statement["parameters"]["table"]["unit"] == "row"
    assert any("declared a row to be the unit" in caveat for caveat in statement["caveats"])
    assert not any("one user id" in caveat for caveat in statement["caveats"])
    assert main(["release", "verify", str(out)]) == 0
    duckdb.sql(f"COPY (FROM read_csv('{path}', ignore_errors = true)) TO '{tmp_path}/terms.parquet'")
    assert set(select_values(tmp_path / "terms.parquet", Budget(4, 1e-6), value="term", unit="row").counts) == {
        "green tea",
        "coffee",
    }
    with pytest.raises(InvalidParameter, match="a row has one value"):
        select_values(path, Budget(4, 1e-6), value="term", unit="row", values_per_user=2)


@pytest.mark.parametrize("kind", ["run", "release run"])
def test_a_release_says_that_nothing_is_promised_to_a_person(kind: str, tmp_path: Path, capsys):
    out, ledger = tmp_path / "out", tmp_path / "budget.ledger"
    options = ["--opt-in", "0.5"] if kind == "run" else ["--users", "751", "--urls", "private"]
    paid = ["--ledger", str(ledger), "--release-id", "a", "--html"]
    words = [*kind.split(), str(table(tmp_path)), "-o", str(out), "--columns", "query=term", *FLAGS, *options, *paid]
    assert main(words) == 0
    assert "for each counted row, not for a person" in capsys.readouterr().out
    statement = json.loads((out / "statement.json").read_text())
    assert statement["guarantee"]["unit"] == ROW_UNIT
    assert any("Nothing is promised to a person" in caveat for caveat in statement["caveats"])
    texts = [*statement["caveats"], *(file.read_text() for file in out.glob("statement.txt"))]
    assert not [text for text in texts if "one user id" in text.lower()]
    assert "one counted row, which is one search and not one person" in (out / "index.html").read_text()
    assert main(["release", "verify", str(out)]) == 0
    assert main(["ledger", "show", str(ledger), "--json"]) == 0
    assert "unit: row" in capsys.readouterr().out


def test_what_has_users_is_not_read_so(tmp_path: Path, capsys):
    (tmp_path / "log.tsv").write_text("User\tquery\nann\ttea\n")
    with pytest.raises(InvalidColumns, match="has a column of users"):
        read_log(tmp_path / "log.tsv", unit="row")
    (tmp_path / "aol.txt").write_text("AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n1\ttea\t\t\t\n")
    with pytest.raises(InvalidParameter, match="only of a table without users"):
        read_log(tmp_path / "aol.txt", unit="row")
    with pytest.raises(InvalidParameter, match="only of a table without users"):
        read_log(tmp_path / "aol.txt", unit="row", format="yandex")


def test_what_means_nothing_is_one_line(tmp_path: Path, capsys):
    path = table(tmp_path)
    wrong: list[tuple[list[str], int, str]] = [
        (["--columns", "query=term"], 2, "--unit row promises to each counted search, and not to a person"),
        (["--columns", "user=term,query=url,count=count"], 2, "only where a row is the unit"),
        (["--unit", "row", "--columns", "query=term,user=url"], 2, "where a row is the unit no column is user"),
        (["--unit", "row", "--columns", "query=term", "--opt-in-column", "url"], 2, "no column of who opts in"),
        (["--unit", "row", "--columns", "query=term", "--engine", "spark"], 2, "only with the engine duckdb"),
        (["--unit", "row"], 2, "name them with --columns query=NAME,count=NAME"),
    ]
    for options, code, words in wrong:
        assert main(["run", str(path), "-o", str(tmp_path / "out"), *options]) == code, options
        error = capsys.readouterr().err
        assert words in error, error
        assert error.count("\n") <= 2
        assert not (tmp_path / "out").exists()
