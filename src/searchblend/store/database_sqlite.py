"""Two kinds of SQLite files: the service's database, and a ledger of its own.

The service's has a write-ahead log with ``synchronous = FULL``: a commit returns after the log is on disk.
``secure_delete`` overwrites what is deleted, and temporary tables stay in memory, so that nothing is left in files of
the operating system.

A ledger has a rollback journal with ``synchronous = EXTRA``. A commit returns only after the file, and the directory
from which the journal was removed, are on disk: FULL alone may bring the journal, and with it the state before the
commit, back after a loss of power, and the debit of a release that was seen would be gone.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from searchblend.core.errors import UsageError, listed
from searchblend.files.durable import create_private, sync
from searchblend.files.sqlite import DURABLE, IN_MEMORY, Problem, SqliteFile
from searchblend.store.errors import LedgerError, StoreError, StoreUnavailable, UnsafeDatabase
from searchblend.store.schema import LEDGER_TABLES, append_only_triggers

APPLICATION_ID: Final = 0x53425356  # "SBSV"
_PRAGMAS: Final = (
    *DURABLE,
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

_LEDGER_ID: Final = 0x53424C47  # "SBLG"
_LEDGER_VERSION: Final = 1
_LEDGER_BUSY_SECONDS: Final = 60.0
_LEDGER_PRAGMAS: Final = ("journal_mode = DELETE", "synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF")
_DAMAGED: Final = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
_LEDGER_SCHEMA: Final = (
    *(table.format(position="INTEGER", blob="BLOB") for table in LEDGER_TABLES),
    *append_only_triggers("sqlite", ("ledger", "release_files")),
    # INSERT OR REPLACE removes rows without firing the triggers above.
    """
    CREATE TRIGGER ledger_append BEFORE INSERT ON ledger
    WHEN NEW.position IS NOT (SELECT COALESCE(MAX(position), 0) + 1 FROM ledger)
        OR EXISTS (SELECT 1 FROM ledger WHERE hash = NEW.hash OR previous = NEW.previous
                   OR (kind = NEW.kind AND release_id = NEW.release_id))
    BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END
    """,
    """
    CREATE TRIGGER release_files_append BEFORE INSERT ON release_files
    WHEN EXISTS (SELECT 1 FROM release_files WHERE release_id = NEW.release_id AND name = NEW.name)
    BEGIN SELECT RAISE(ABORT, 'release_files is append-only'); END
    """,
)


class SqliteStore(SqliteFile):
    """The service's file; made if it is not there."""

    def __init__(self, path: Path, *, create: bool = True, busy_seconds: float = 30.0) -> None:
        if not create and not path.exists():
            raise StoreError(f"{path}: no such database; --data-dir or --database says where it is")
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


class LedgerFile(SqliteFile):
    """A connection to one ledger file."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        if not path.exists() and not create:
            raise UsageError(f"{path}: no such ledger")
        super().__init__(path, _ledger_problem_of(path), pragmas=_LEDGER_PRAGMAS, busy_seconds=_LEDGER_BUSY_SECONDS)
        try:
            if create and not self.number("schema_version"):
                self.claim(_LEDGER_ID, version=_LEDGER_VERSION, tables=_LEDGER_SCHEMA)
                sync(path.parent)
            if self.number("application_id") != _LEDGER_ID:
                raise LedgerError(f"{path}: not a ledger")
            if self.number("user_version") != _LEDGER_VERSION:
                raise LedgerError(f"{path}: a ledger of another version")
        except BaseException:
            self.close()
            raise


def _ledger_problem_of(path: Path) -> Problem:
    def problem(error: sqlite3.Error | UnicodeDecodeError, code: int) -> LedgerError:
        if isinstance(error, UnicodeDecodeError):
            return LedgerError(f"{path}: not a ledger, or damaged")
        damaged = "not a ledger, or damaged: " if code in _DAMAGED else ""
        return LedgerError(f"{path}: {damaged}{listed([error])}")

    return problem
