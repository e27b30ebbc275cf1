"""The ledger in a SQLite file of its own.

Durable: a rollback journal with ``synchronous = EXTRA``. A commit returns only after the file, and the directory from
which the journal was removed, are on disk: FULL alone may bring the journal, and with it the state before the commit,
back after a loss of power, and the debit of a release that was seen would be gone.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from searchblend.core.errors import UsageError, listed
from searchblend.files.durable import sync
from searchblend.files.sqlite import Problem, SqliteFile
from searchblend.store.errors import LedgerError
from searchblend.store.schema import LEDGER_TABLES, append_only_triggers

_APPLICATION_ID: Final = 0x53424C47  # "SBLG"
_SCHEMA_VERSION: Final = 1
_BUSY_SECONDS: Final = 60.0
_PRAGMAS: Final = ("journal_mode = DELETE", "synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF")
_DAMAGED: Final = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
_SCHEMA: Final = (
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


class LedgerFile(SqliteFile):
    """A connection to one ledger file."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        if not path.exists() and not create:
            raise UsageError(f"{path}: no such ledger")
        super().__init__(path, _problem_of(path), pragmas=_PRAGMAS, busy_seconds=_BUSY_SECONDS)
        try:
            if create and not self.number("schema_version"):
                self.claim(_APPLICATION_ID, version=_SCHEMA_VERSION, tables=_SCHEMA)
                sync(path.parent)
            if self.number("application_id") != _APPLICATION_ID:
                raise LedgerError(f"{path}: not a ledger")
            if self.number("user_version") != _SCHEMA_VERSION:
                raise LedgerError(f"{path}: a ledger of another version")
        except BaseException:
            self.close()
            raise


def _problem_of(path: Path) -> Problem:
    def problem(error: sqlite3.Error | UnicodeDecodeError, code: int) -> LedgerError:
        if isinstance(error, UnicodeDecodeError):
            return LedgerError(f"{path}: not a ledger, or damaged")
        damaged = "not a ledger, or damaged: " if code in _DAMAGED else ""
        return LedgerError(f"{path}: {damaged}{listed([error])}")

    return problem
