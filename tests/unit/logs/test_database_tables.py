"""Tables of PostgreSQL and SQLite are read as the same rows in a file, read-only, and without a word of credentials."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from made_tables import ROWS, found, parquet, refused

from databases import fresh_schema, postgres_server
from input_worlds import KEY
from searchblend.cli.main import main
from searchblend.core.errors import InputError, InvalidColumns, InvalidParameter, SearchblendError, UsageError
from searchblend.logs.read import read_log
from searchblend.logs.tables.stored import in_pages
from searchblend.logs.tables.urls import shown_log
from searchblend.releases.make_release import remember_release

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
SECRET = "hunter2"


def sqlite_table(folder: Path, *, encoding: str = "UTF-8") -> str:
    path = folder / "a log.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA encoding = '{encoding}'")
        database.execute('CREATE TABLE "my searches" (user, query TEXT, url, "time" VARCHAR, unused BLOB)')
        database.executemany('INSERT INTO "my searches" VALUES (?, ?, ?, ?, NULL)', ROWS)
        database.commit()
    return f"sqlite:///{quote(str(path))}?table={quote('my searches')}"


def postgresql_table(rows: list[tuple[Any, ...]] = ROWS, kinds: str = "") -> str:
    where = fresh_schema(postgres_server())
    kinds = kinds or '"user" text, query varchar(99), url text, "time" bpchar, unused jsonb'
    with psycopg.connect(where, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f'CREATE TABLE "Searches" ({kinds})')
        cursor.executemany('INSERT INTO "Searches" VALUES (%s, %s, %s, %s, NULL)', rows)
    return f"{where}&table=Searches"


def test_sqlite_is_read_as_the_same_parquet_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number, encoding in enumerate(("UTF-8", "UTF-16le", "UTF-16be")):
        folder = tmp_path / str(number)
        folder.mkdir()
        url = sqlite_table(folder, encoding=encoding)
        for draws in (0, 1):
            assert found(url, draws=draws) == found(parquet(folder), draws=draws)
        assert [path.name for path in folder.iterdir() if "a log.db" in path.name] == ["a log.db"]
    monkeypatch.chdir(folder)
    with read_log("sqlite:///a%20log.db?table=my%20searches") as log:
        assert log.decided["format"] == "sqlite"


def test_what_is_no_text_in_sqlite_is_missing_and_changes_no_other_row(tmp_path: Path):
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (user INTEGER, query TEXT, time)")
        rows = [(7, "q", 1141171200), ("u", "q", 1.5), (b"\xff\xfe", "q", None), (None, "q", None), ("x" * 9, b"q", "")]
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        database.execute("INSERT INTO t VALUES ('v', CAST(x'ff41' AS TEXT), NULL)")
        database.execute("CREATE VIEW w AS SELECT user, query FROM t WHERE user = 7")
        database.commit()
    with read_log(f"sqlite:///{path}?table=t", keep_lines=True) as log:
        kept = log._engine._session.rows("SELECT user, query FROM lines WHERE problem = 0")  # type: ignore[attr-defined]
        assert sorted(kept) == [("7", "q"), ("u", "q")]
        assert {reason: kind.count for reason, kind in log.summary.malformed.items()} == {
            "missing_user": 2,
            "unusable_query": 2,
        }
    with read_log(f"sqlite:///{path}?table=w") as log:
        assert log.summary.lines == 1


LONG = 1 << 20
"""bytes, the most of a string that is read"""


def long_rows() -> list[tuple[Any, ...]]:
    """One person's rows of very long strings among those of others; a letter of two bytes counts as two."""
    a_url = "http://a.example"
    own = [
        ("x" * (LONG + 1), "q", a_url, None),
        ("w", "é" * (LONG // 2 + 1), a_url, None),
        ("w", "q", "u" * 3000, None),
    ]
    return [("u", "q", a_url, None), *own * 9, ("v", "q", a_url, None)]


def found_among_long_ones(url: str) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
    with read_log(url, keep_lines=True, memory="300MB") as log:
        kept = log._engine._session.rows('SELECT "user", query FROM lines WHERE problem = 0 ORDER BY 1')  # type: ignore[attr-defined]
        return kept, {reason: kind.count for reason, kind in log.summary.malformed.items()}


def test_very_long_strings_of_one_person_are_missing_and_change_no_other_row(tmp_path: Path):
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute('CREATE TABLE t ("user", query, url, time)')
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", long_rows())
        database.commit()
    kept, malformed = found_among_long_ones(f"sqlite:///{path}?table=t")
    assert kept == [("u", "q"), ("v", "q")]
    assert malformed == {"missing_user": 9, "unusable_query": 9, "unusable_url": 9}


def test_a_page_of_rows_is_bounded_by_their_bytes():
    rows = [("u", "x" * (1 << 20))] * 40 + [("u", None, 5)] * 20_000
    pages = list(in_pages(iter(rows)))
    assert [row for page in pages for row in page] == rows
    assert max(sum(len(value or "") for _, value, *_ in page) for page in pages) <= 17 << 20
    assert [len(page) for page in pages] == [16, 16, 8192, 8192, 3624]


def test_a_sqlite_file_that_is_written_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from searchblend.files.sqlite import SqliteFile

    url = sqlite_table(tmp_path)
    pages = SqliteFile.pages

    def while_written(self: SqliteFile, statement: str, rows: int) -> Any:
        yield from pages(self, statement, rows)
        with closing(sqlite3.connect(tmp_path / "a log.db")) as database:
            database.execute("CREATE TABLE other (a)")

    monkeypatch.setattr(SqliteFile, "pages", while_written)
    with pytest.raises(InputError, match="was written to while it was read"):
        read_log(url)


def test_a_damaged_sqlite_file_is_one_line(tmp_path: Path, capsys):
    url = sqlite_table(tmp_path)
    path = tmp_path / "a log.db"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    code, line = refused(capsys, tmp_path, url)
    assert (code, "cannot be read: damaged" in line) == (1, True)
    path.write_bytes(b"user,query\n" * 99)
    assert refused(capsys, tmp_path, url)[0] == 1


WRONG: dict[str, tuple[Callable[[str], str], int, str]] = {
    "table": (lambda url: url.replace("my%20searches", "nothing"), 1, "no such table"),
    "file": (lambda url: url.replace("log.db", "other.db"), 1, "no such file"),
    "no table": (lambda url: url.partition("?")[0], 2, "expected one ?table=NAME"),
    "no path": (lambda url: "sqlite://?table=t", 2, "expected sqlite:///PATH"),
    "no name": (lambda url: "sqlite:///a%00b?table=t", 1, "found a NUL byte in it"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_not_there_is_one_line(what: str, tmp_path: Path, capsys):
    change, code, words = WRONG[what]
    found_code, line = refused(capsys, tmp_path, change(sqlite_table(tmp_path)))
    assert (found_code, words in line) == (code, True), line


def test_a_table_of_a_database_has_no_options_of_files(tmp_path: Path):
    url = sqlite_table(tmp_path)
    with pytest.raises(UsageError, match="a log by itself"):
        read_log([url, url])
    with pytest.raises(InvalidParameter, match="format"):
        read_log(url, format="csv")
    with pytest.raises(UsageError, match="only with --engine duckdb"):
        read_log(url, engine="spark")


def test_no_name_that_is_shown_or_kept_has_credentials_in_it(tmp_path: Path):
    url = f"postgres://ann:{SECRET}@db.example:5433/logs?sslmode=require&password={SECRET}&table=public.searches"
    assert shown_log(url) == "postgresql://db.example:5433/logs?table=public.searches"
    for log in (url, url.replace(SECRET, "another")):
        from searchblend.accounting.spend import Spend
        from searchblend.core.privacy import Budget, Neighbors

        spent = remember_release(
            tmp_path / "out", log, Spend.generic(Budget(1, 1e-6), Neighbors.REPLACE_ONE, "x"), created="2026"
        )
    assert spent.releases == 2
    [line, _] = (tmp_path / ".searchblend-releases.jsonl").read_text().splitlines()
    assert hashlib.sha256(shown_log(url).encode()).hexdigest() in line


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere.invalid"])
def test_a_server_that_does_not_answer_is_one_line_without_credentials(address: str, tmp_path: Path, capsys):
    code, line = refused(capsys, tmp_path, f"postgresql://ann:{SECRET}@{address}/logs?table=searches")
    assert (code, "was not reached" in line) == (1, True)
    assert SECRET not in line
    assert "ann" not in line


def test_a_missing_driver_is_named(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    for module in ("postgresql_table", "sqlite_table"):  # which other tests have loaded
        monkeypatch.delitem(sys.modules, f"searchblend.logs.tables.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    code, line = refused(capsys, tmp_path, f"postgresql://ann:{SECRET}@nowhere.invalid/logs?table=searches")
    assert (code, "pip install searchblend[postgresql]" in line, SECRET in line) == (2, True, False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, line = refused(capsys, tmp_path, sqlite_table(tmp_path))
    assert (code, "pip install searchblend[arrow]" in line) == (2, True)


@pytest.mark.database_server
def test_postgresql_is_read_as_the_same_parquet_file(tmp_path: Path, capsys):
    url = postgresql_table()
    for draws in (0, 1):
        assert found(url, draws=draws) == found(parquet(tmp_path), draws=draws)
    assert main(["stats", url]) == 0
    assert "options=" not in capsys.readouterr().out


@pytest.mark.database_server
def test_types_of_postgresql():
    kinds = '"user" numeric, query uuid, url text, "time" timestamptz, unused jsonb'
    uuid = "12345678-1234-1234-1234-123456789012"
    times = ["2006-03-01 00:00:00+00", "infinity", "-infinity", "294270-01-01", "0044-03-15 BC", None]
    url = postgresql_table([(10**20 + i, uuid, "http://a.example", time) for i, time in enumerate(times)], kinds)
    with read_log(url, key=KEY, draws=0) as log:
        rows = log._engine._session.rows('SELECT "user", query, moment FROM lines ORDER BY 1')  # type: ignore[attr-defined]
        assert [(user, query) for user, query, _ in rows] == [(str(10**20 + i), uuid) for i in range(6)]
        assert [moment for *_, moment in rows][:4] == [1141171200.0, None, None, None]
    with pytest.raises(InvalidColumns, match="'time' has type TIMESTAMP"):
        read_log(url, columns={"user": "time"})
    with pytest.raises(InvalidColumns, match="'unused' has type BLOB"):
        read_log(url, columns={"query": "unused"})


@pytest.mark.database_server
def test_very_long_strings_of_one_person_in_postgresql():
    kept, malformed = found_among_long_ones(
        postgresql_table(long_rows(), '"user" text, query text, url text, "time" text, unused jsonb')
    )
    assert kept == [("u", "q"), ("v", "q")]
    assert malformed == {"missing_user": 9, "unusable_query": 9, "unusable_url": 9}


@pytest.mark.database_server
def test_letters_that_utf_8_has_not_are_missing_and_change_no_other_row():
    """A server that is asked for UTF-8 would refuse all rows because of one."""
    server, name = postgres_server(), f"latin_{uuid4().hex[:12]}"
    place = server.partition("?")
    where = f"{place[0].rpartition('/')[0]}/{name}{place[1]}{place[2]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING 'WIN1252' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    try:
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute('CREATE TABLE t ("user" text, query text)')
            connection.execute(
                "INSERT INTO t VALUES ('ann', 'tee ' || chr(252)), ('bob', 'tee ' || chr(129)), ('cy', 'tee')"
            )
        with read_log(f"{where}{'&' if '?' in where else '?'}table=t", keep_lines=True) as log:
            rows = log._engine._session.rows('SELECT "user", query FROM lines WHERE problem = 0 ORDER BY 1')  # type: ignore[attr-defined]
            assert rows == [("ann", "tee ü"), ("cy", "tee")]
            assert log.summary.malformed["unusable_query"].count == 1
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.database_server
def test_nothing_can_be_written_through_a_view():
    url = postgresql_table()
    where = url.partition("&table=")[0]
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute("CREATE TABLE seen (a int)")
        connection.execute(
            "CREATE FUNCTION note() RETURNS text LANGUAGE sql VOLATILE AS 'INSERT INTO seen VALUES (1); SELECT ''q'''"
        )
        connection.execute('CREATE VIEW v AS SELECT "user", note() AS query FROM "Searches"')
        with pytest.raises(InputError, match="PostgreSQL says 25006"):  # a read-only transaction
            read_log(f"{where}&table=v")
        assert connection.execute("SELECT count(*) FROM seen").fetchone() == (0,)


@pytest.mark.database_server
def test_what_postgresql_refuses_is_one_line(tmp_path: Path, capsys):
    url = postgresql_table()
    where = url.partition("&table=")[0]
    role = f"reader_{hashlib.sha256(url.encode()).hexdigest()[:8]}"
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{SECRET}'")
        schema = connection.execute("SELECT current_schema()").fetchone()
        assert schema is not None
        connection.execute(f"GRANT USAGE ON SCHEMA {schema[0]} TO {role}")
    try:
        assert refused(capsys, tmp_path, url.replace("=Searches", "=searches"))[1].endswith("no such table")
        assert refused(capsys, tmp_path, f"{where}&table=nowhere.searches")[1].endswith("no such table")
        assert refused(capsys, tmp_path, f"{url}&user={role}")[1].endswith("this role may not read the table")
        code, line = refused(capsys, tmp_path, f"{url}&user=no_such_role&password={SECRET}")
        assert (code, "refuses to let us in" in line, SECRET in line) == (1, True, False)
    finally:
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")


@pytest.mark.database_server
def test_a_log_of_many_pages_is_streamed():
    url = postgresql_table([(f"u{i % 99}", f"q{i % 7}", "http://a.example", None) for i in range(30_000)])
    with read_log(f"{url.replace('=Searches', '=')}{schema_of(url)}.Searches") as log:
        assert (log.summary.lines, log.summary.users) == (30_000, 99)


def schema_of(url: str) -> str:
    return url.partition("search_path%3D")[2].partition("&")[0]


def test_an_error_of_a_url_is_ours():
    for url in ("postgresql://h/d?table=a&table=b", "postgresql://h/d?table=", "postgresql://[::1/d?table=a"):
        with pytest.raises(SearchblendError):
            read_log(url)
