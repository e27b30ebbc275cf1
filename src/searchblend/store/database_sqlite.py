"""The service's database as one SQLite file.

Write-ahead log with ``synchronous = FULL``: a commit returns after the log is on disk. ``secure_delete`` overwrites
what is deleted, and temporary tables stay in memory, so that nothing is left in files of the operating system.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from searchblend.store.database import Rows
from searchblend.store.store_errors import StoreError, StoreUnavailable, UnsafeDatabase

APPLICATION_ID: Final = 0x53425356  # "SBSV"
_PRAGMAS: Final = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "fullfsync = ON",
    "secure_delete = ON",
    "temp_store = MEMORY",
    "trusted_schema = OFF",
    "cache_size = -4096",  # KiB; the operating system caches the file as well
    "wal_autocheckpoint = 2000",
)
_FULL: Final = 2
_AGAIN: Final = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
}


class SqliteStore:
    """A connection to one file; made if it is not there."""

    dialect = "sqlite"

    def __init__(self, path: Path, *, create: bool = True, busy_seconds: float = 30.0) -> None:
        self.path = path
        if not create and not path.exists():
            raise StoreError(f"{path}: no such database")
        self._depth = 0
        is_new = not path.exists() and str(path) != ":memory:"
        if is_new:
            _create_private(path)
        with self._errors():
            self._connection = sqlite3.connect(
                path, isolation_level=None, timeout=busy_seconds, check_same_thread=False, cached_statements=256
            )
        try:
            for pragma in _PRAGMAS:
                self.execute(f"PRAGMA {pragma}")
            self._refuse_unsafe()
            self._claim()
        except BaseException:
            self._connection.close()
            raise
        if is_new:
            _sync_folder(path.parent)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        with self._errors():
            return self._connection.execute(statement, values).fetchall()

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._errors():
            self._connection.executemany(statement, rows)

    def pages(self, statement: str, rows: int) -> Iterator[Rows]:
        return _pages(self._connection, self.path, statement, rows)

    @contextlib.contextmanager
    def transaction(self, *, exclusive: bool = True) -> Iterator[None]:
        if self._depth:
            yield
            return
        self.execute("BEGIN IMMEDIATE")
        self._depth = 1
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.rollback()
            raise
        finally:
            self._depth = 0

    def close(self) -> None:
        self._connection.close()

    def backup_to(self, path: Path) -> None:
        """A consistent copy while others write."""
        target = sqlite3.connect(path)
        try:
            with self._errors():
                self._connection.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
        finally:
            target.close()

    def _refuse_unsafe(self) -> None:
        mode, level = self.execute("PRAGMA journal_mode")[0][0], self.execute("PRAGMA synchronous")[0][0]
        if mode != "wal" or level < _FULL:
            raise UnsafeDatabase(
                f"{self.path}: expected journal_mode wal and synchronous full; the file system refuses"
            )

    def _claim(self) -> None:
        """Mark a new file; refuse one that is something else."""
        found = self.execute("PRAGMA application_id")[0][0]
        if found == 0 and not self.execute("SELECT 1 FROM sqlite_master LIMIT 1"):
            self.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        elif found != APPLICATION_ID:
            raise StoreError(f"{self.path}: not a database of this service")

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        return _errors_of(self.path)


class SqliteFile:
    """A file of the service that is read and left as it is: no byte of it changes, and nothing appears beside it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # A file that somebody writes has a log with changes beside it; without one nothing else needs to be looked at.
        logs = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
        is_written = any(log.exists() and log.stat().st_size for log in logs)
        place = f"{path.resolve().as_uri()}?mode=ro{'' if is_written else '&immutable=1'}"
        with _errors_of(path):
            self._connection = sqlite3.connect(place, uri=True, isolation_level=None)
        try:
            if self.execute("PRAGMA application_id")[0][0] != APPLICATION_ID:
                raise StoreError(f"{path}: not a database of this service")
        except BaseException:
            self._connection.close()
            raise

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        with _errors_of(self._path):
            return self._connection.execute(statement, values).fetchall()

    def pages(self, statement: str, rows: int) -> Iterator[Rows]:
        return _pages(self._connection, self._path, statement, rows)

    def close(self) -> None:
        self._connection.close()


def _pages(connection: sqlite3.Connection, path: Path, statement: str, rows: int) -> Iterator[Rows]:
    with _errors_of(path), contextlib.closing(connection.execute(statement)) as cursor:
        while found := cursor.fetchmany(rows):
            yield found


@contextlib.contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        kind = StoreUnavailable if code in _AGAIN else StoreError
        raise kind(f"{path.name}: {type(error).__name__} ({code})") from None
    except UnicodeDecodeError:  # SQLite quotes a damaged schema, and it is no text any more
        raise StoreError(f"{path.name}: damaged") from None


def _create_private(path: Path) -> None:
    """An empty file for its owner alone; SQLite gives the log beside it the same rights."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreUnavailable(f"{path}: cannot be made: {error.strerror}") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
