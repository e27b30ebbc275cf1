"""The service's database as one SQLite file.

Write-ahead log with ``synchronous = FULL``: a commit returns after the log is on disk. ``secure_delete`` overwrites
what is deleted, and temporary tables stay in memory, so that nothing is left in files of the operating system.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from searchblend.files.durable import create_private, sync
from searchblend.files.sqlite import IN_MEMORY, Problem, SqliteFile
from searchblend.store.errors import StoreError, StoreUnavailable, UnsafeDatabase

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


class SqliteStore(SqliteFile):
    """The service's file; made if it is not there."""

    def __init__(self, path: Path, *, create: bool = True, busy_seconds: float = 30.0) -> None:
        if not create and not path.exists():
            raise StoreError(f"{path}: no such database")
        is_new = not path.exists() and str(path) != IN_MEMORY
        if is_new:
            try:
                create_private(path)  # SQLite gives the log beside it the same rights
            except OSError as error:
                raise StoreUnavailable(f"{path}: cannot be made: {error.strerror}") from error
        super().__init__(path, _problem_of(path), pragmas=_PRAGMAS, busy_seconds=busy_seconds, any_thread=True)
        try:
            self._refuse_unsafe()
            if not self.claim(APPLICATION_ID):
                raise _not_ours(path)
        except BaseException:
            self.close()
            raise
        if is_new:
            sync(path.parent)

    def _refuse_unsafe(self) -> None:
        mode, level = self.execute("PRAGMA journal_mode")[0][0], self.number("synchronous")
        if mode != "wal" or level < _FULL:
            raise UnsafeDatabase(
                f"{self.path}: expected journal_mode wal and synchronous full; the file system refuses"
            )


def open_to_read(path: Path) -> SqliteFile:
    """A file of the service that is read and left as it is."""
    opened = SqliteFile(path, _problem_of(path), read_only=True)
    try:
        if not opened.is_claimed(APPLICATION_ID):
            raise _not_ours(path)
    except BaseException:
        opened.close()
        raise
    return opened


def _not_ours(path: Path) -> StoreError:
    return StoreError(f"{path}: not a database of this service")


def _problem_of(path: Path) -> Problem:
    def problem(error: sqlite3.Error | UnicodeDecodeError, code: int) -> StoreError:
        if isinstance(error, UnicodeDecodeError):
            return StoreError(f"{path.name}: damaged")
        kind = StoreUnavailable if code in _AGAIN else StoreError
        return kind(f"{path.name}: {type(error).__name__} ({code})")

    return problem
