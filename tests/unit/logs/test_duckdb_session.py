"""The database: its limits, its directory, its failures."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from made_logs import some_lines
from reference_rules import tsv

from searchblend.core.errors import InputError, InvalidParameter, OutputError, RunError
from searchblend.logs.duckdb import session as duckdb_session
from searchblend.logs.duckdb.session import DuckDBSession, quoted, quoted_name
from searchblend.logs.read import read_log
from searchblend.logs.relational import removal


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log.tsv").write_text(tsv(some_lines(300)))
    return tmp_path / "log.tsv"


def test_nothing_is_left_behind(log: Path, tmp_path: Path):
    temp = tmp_path / "temp"
    temp.mkdir()
    with read_log(log, temp_directory=temp) as opened:
        assert len(list(temp.iterdir())) == 1
        assert opened.summary.users == 300
    assert list(temp.iterdir()) == []
    (tmp_path / "bad.tsv").write_text("user\tquery\n")
    with pytest.raises(InputError):
        read_log(tmp_path / "bad.tsv", temp_directory=temp)
    assert list(temp.iterdir()) == []


def test_a_log_that_is_not_closed_lasts_as_long_as_its_groups_and_leaves_nothing(log: Path, tmp_path: Path):
    temp = tmp_path / "temp"
    temp.mkdir()
    groups = read_log(log, temp_directory=temp).split(optin_fraction=0.5)
    gc.collect()
    assert len(list(temp.iterdir())) == 1
    assert sum(n * size for group in groups for n, size in group.tally().sizes().items()) == 300
    del groups
    gc.collect()
    assert list(temp.iterdir()) == []


def test_a_fork_that_forgets_the_owner_leaves_the_directory(tmp_path: Path, monkeypatch):
    remove = removal(test_a_fork_that_forgets_the_owner_leaves_the_directory, tmp_path)
    with monkeypatch.context() as fork:
        fork.setattr("os.getpid", lambda: -1)
        remove()
    assert tmp_path.exists()


@pytest.mark.parametrize(("option", "value"), [("memory", "lots"), ("threads", 0), ("threads", -1)])
def test_limits_that_are_none(log: Path, option, value):
    with pytest.raises(InvalidParameter) as failed:
        read_log(log, **{option: value})
    assert failed.value.field == option


def test_a_temp_directory_that_is_none(log: Path, tmp_path: Path):
    with pytest.raises(OutputError, match="none"):
        read_log(log, temp_directory=tmp_path / "none")


def test_too_little_memory_is_said(tmp_path: Path):
    session = DuckDBSession("20MB", 1, tmp_path)
    try:
        session.execute("SET max_temp_directory_size = '1MB'")
        with pytest.raises(RunError, match="memory or temporary disk space"):
            session.execute("CREATE TABLE t AS SELECT md5(i::VARCHAR) AS a, i FROM range(3000000) r(i)")
    finally:
        session.close()


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    session = DuckDBSession(None, 1, tmp_path)
    full = duckdb.IOException(f"Could not write file: {os.strerror(errno.ENOSPC)}")

    class Full:
        def execute(self, *arguments):
            raise full

        def close(self):
            pass

    monkeypatch.setattr(session, "_connection", Full())
    with pytest.raises(OutputError, match="no space left"):
        session.execute("SELECT 1")
    session.close()


def test_errors_of_the_database_do_not_quote_data(tmp_path: Path):
    session = DuckDBSession(None, 1, tmp_path)
    with pytest.raises(RunError) as failed:
        session.execute("SELECT CAST('secret search' AS INT)")
    assert "secret" not in str(failed.value)
    session.close()
    with pytest.raises(RunError, match="closed"):
        session.execute("SELECT 1")


def test_quoting():
    assert duckdb.sql(f"SELECT {quoted(chr(39) + ';--')} AS {quoted_name('a' + chr(34) + 'b')}").fetchall() == [
        ("';--",)
    ]


@pytest.mark.thorough
def test_progress_grows_to_the_size_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(duckdb_session, "_POLL_SECONDS", 0.005)
    path = tmp_path / "log.tsv"
    path.write_text(tsv(some_lines(20_000)))
    told: list[tuple[int, int]] = []
    with read_log(path, on_progress=lambda done, total: told.append((done, total))):
        pass
    done = [part for part, _ in told]
    assert done == sorted(set(done))
    assert {total for _, total in told} == {path.stat().st_size}
    assert done[-1] == path.stat().st_size
    assert len(done) > 3


def test_the_database_prints_nothing_at_a_prompt():
    """DuckDB draws a bar on standard output after two seconds where Python runs no file, amid what a user prints."""
    program = """
import duckdb
from searchblend.logs.duckdb.session import DuckDBSession

session = DuckDBSession(None, None, None)
setting = "SELECT current_setting('enable_progress_bar')"
print(duckdb.sql(setting).fetchall(), session.rows(setting))
session.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "[(True,)] [(False,)]\n"
