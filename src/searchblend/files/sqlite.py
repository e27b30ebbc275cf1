"""One SQLite file: how it is opened, claimed and read, and whose errors its owner raises.

No other module calls ``sqlite3.connect``. Who owns a file chooses its pragmas, that is how durable a commit is.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

Rows = list[tuple[Any, ...]]
Problem = Callable[[sqlite3.Error | UnicodeDecodeError, int], Exception]
"""The owner's error for one of SQLite's, whose primary code is the second argument (0 for a damaged schema)."""
IN_MEMORY: Final = ":memory:"
DURABLE: Final = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "fullfsync = ON",
    "secure_delete = ON",
    "temp_store = MEMORY",
    "trusted_schema = OFF",
)
"""pragmas of a file whose commits survive a loss of power and whose deleted rows are overwritten"""


class SqliteFile:
    """A connection to one file."""

    dialect = "sqlite"

    def __init__(
        self,
        path: Path,
        problem: Problem,
        *,
        pragmas: Sequence[str] = (),
        busy_seconds: float = 30.0,
        any_thread: bool = False,
        read_only: bool = False,
    ) -> None:
        """Open a file, and make an empty one if there is none.

        Args:
            path: the file, or ``IN_MEMORY``.
            problem: turns an error of SQLite into the owner's, without quoting values.
            pragmas: set in this order before anything else.
            busy_seconds: how long to wait for another process to release its lock.
            any_thread: the connection is handed from thread to thread, one at a time.
            read_only: no byte of the file changes, and nothing appears beside it.
        """
        self.path, self._problem, self._depth = path, problem, 0
        with self._errors():
            self._connection = sqlite3.connect(
                _read_only_place(path) if read_only else path,
                uri=read_only,
                isolation_level=None,
                timeout=busy_seconds,
                check_same_thread=not any_thread,
                cached_statements=256,
            )
        try:
            for pragma in pragmas:
                self.execute(f"PRAGMA {pragma}")
        except BaseException:
            self._connection.close()
            raise

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """Run one statement and fetch everything it gives."""
        with self._errors():
            return self._connection.execute(statement, values).fetchall()

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._errors():
            self._connection.executemany(statement, rows)

    def pages(self, statement: str, rows: int) -> Iterator[Rows]:
        """What a statement gives, so many rows at a time."""
        with self._errors(), contextlib.closing(self._connection.execute(statement)) as cursor:
            while page := cursor.fetchmany(rows):
                yield page

    @contextlib.contextmanager
    def transaction(self, *, exclusive: bool = True) -> Iterator[None]:
        """All or nothing, and no other process writes meanwhile. A block within a block joins it."""
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

    def number(self, pragma: str) -> int:
        return int(self.execute(f"PRAGMA {pragma}")[0][0])

    @property
    def changes(self) -> int:
        """Rows changed on this connection so far."""
        return self._connection.total_changes

    def claim(self, application_id: int, *, version: int = 0, tables: Sequence[str] = ()) -> bool:
        """Mark an empty file as ours and make its tables; whether the file is ours, and of this version, then.

        In one transaction: whoever waited for it finds the tables made, and a crash leaves an empty file.
        """
        if not self.number("application_id"):
            with self.transaction():
                if not self.number("application_id") and not self.execute("SELECT 1 FROM sqlite_master LIMIT 1"):
                    for statement in tables:
                        self.execute(statement)
                    self.execute(f"PRAGMA application_id = {application_id}")
                    self.execute(f"PRAGMA user_version = {version}")
        return self.is_claimed(application_id, version=version)

    def is_claimed(self, application_id: int, *, version: int = 0) -> bool:
        return (self.number("application_id"), self.number("user_version")) == (application_id, version)

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._problem(error, getattr(error, "sqlite_errorcode", 0) & 0xFF) from None
        except UnicodeDecodeError as error:  # SQLite quotes a damaged schema, and it is not UTF-8 any more
            raise self._problem(error, 0) from None


def _read_only_place(path: Path) -> str:
    """A file that another process writes has a log with changes beside it; without one the file alone is enough."""
    logs = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    is_written = any(log.exists() and log.stat().st_size for log in logs)
    return f"{path.resolve().as_uri()}?mode=ro{'' if is_written else '&immutable=1'}"
