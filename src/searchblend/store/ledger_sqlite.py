"""The ledger's tables in one SQLite file, and all SQL that there is.

The statements are plain SQL with ``?`` for values; the schema's triggers are the one part that another database words
differently.

Durable: a rollback journal with ``synchronous = EXTRA``. A commit returns only after the file, and the directory from
which the journal was removed, are on disk: FULL alone may bring the journal, and with it the state before the commit,
back after a loss of power, and the debit of a release that was seen would be gone.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from searchblend.core.errors import UsageError, listed
from searchblend.store.ledger_errors import LedgerError

READ_ROWS: Final = "SELECT position, kind, release_id, body, previous, hash FROM ledger ORDER BY position"
APPEND_ROW: Final = "INSERT INTO ledger (position, kind, release_id, body, previous, hash) VALUES (?, ?, ?, ?, ?, ?)"
READ_FILES: Final = "SELECT name, content FROM release_files WHERE release_id = ? ORDER BY name"
ADD_FILE: Final = "INSERT INTO release_files (release_id, name, content) VALUES (?, ?, ?)"
READ_FILE_NAMES: Final = "SELECT release_id, name FROM release_files ORDER BY release_id, name"

_APPLICATION_ID: Final = 0x53424C47  # "SBLG"
_SCHEMA_VERSION: Final = 1
_BUSY_SECONDS: Final = 60.0
_SCHEMA: Final = (
    """
    CREATE TABLE ledger (
        position INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        release_id TEXT,
        body TEXT NOT NULL,
        previous TEXT NOT NULL UNIQUE,
        hash TEXT NOT NULL UNIQUE,
        UNIQUE (kind, release_id)
    )
    """,
    """
    CREATE TABLE release_files (
        release_id TEXT NOT NULL,
        name TEXT NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (release_id, name)
    )
    """,
    *(
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for table in ("ledger", "release_files")
        for verb in ("UPDATE", "DELETE")
    ),
    # INSERT OR REPLACE removes rows without firing the triggers above.
    """
    CREATE TRIGGER ledger_append BEFORE INSERT ON ledger
    WHEN NEW.position IS NOT (SELECT COALESCE(MAX(position), 0) + 1 FROM ledger)
        OR EXISTS (SELECT 1 FROM ledger WHERE hash = NEW.hash OR previous = NEW.previous
                   OR (kind = NEW.kind AND release_id = NEW.release_id))
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
    """
    CREATE TRIGGER release_files_append BEFORE INSERT ON release_files
    WHEN EXISTS (SELECT 1 FROM release_files WHERE release_id = NEW.release_id AND name = NEW.name)
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
)


class LedgerDatabase(Protocol):
    """What a ledger needs of a database."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and fetch everything it gives."""
        ...

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """Nobody else writes meanwhile; everything or nothing; on disk when the block is left."""
        ...

    def close(self) -> None: ...


class SqliteDatabase:
    """A connection to one ledger file."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self._path = path
        if not path.exists() and not create:
            raise UsageError(f"{path}: no such ledger")
        with self._errors():
            mode = "rwc" if create else "rw"
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=_BUSY_SECONDS
            )
        try:
            self._prepare(create=create)
        except BaseException:
            self._connection.close()
            raise

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._connection.execute(statement, values).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.rollback()
            raise

    def close(self) -> None:
        self._connection.close()

    def _prepare(self, *, create: bool) -> None:
        for pragma in ("journal_mode = DELETE", "synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF"):
            self.execute(f"PRAGMA {pragma}")
        if create and not self._number("schema_version"):
            with self.transaction():
                self._make_tables()
            _sync_folder(self._path.parent)
        if self._number("application_id") != _APPLICATION_ID:
            raise LedgerError(f"{self._path}: not a ledger")
        if self._number("user_version") != _SCHEMA_VERSION:
            raise LedgerError(f"{self._path}: a ledger of another version")

    def _make_tables(self) -> None:
        """Within a transaction; whoever waited for it may find them made."""
        if self._number("schema_version"):
            return
        for statement in _SCHEMA:
            self.execute(statement)
        self.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        self.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def _number(self, pragma: str) -> int:
        return int(self.execute(f"PRAGMA {pragma}")[0][0])

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise LedgerError(f"{self._path}: not a ledger, or damaged: {listed([error])}") from error
            raise LedgerError(f"{self._path}: {listed([error])}") from error
        except UnicodeDecodeError as error:  # SQLite quotes a damaged schema, and it is no text any more
            raise LedgerError(f"{self._path}: not a ledger, or damaged") from error


def _sync_folder(folder: Path) -> None:
    """So that the new file's name survives a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
