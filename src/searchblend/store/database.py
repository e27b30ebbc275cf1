"""What the service needs of a database: statements, transactions, and that a commit is on disk when it returns.

All SQL is written once, with ``?`` for values, in words that SQLite and PostgreSQL share. A connection belongs to one
thread at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence, Sized
from typing import Any, Protocol

Rows = list[tuple[Any, ...]]


class Database(Protocol):
    """One connection."""

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``"""
        ...

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """Run one statement and fetch everything it gives."""
        ...

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None: ...

    def pages(self, statement: str, rows: int) -> Iterator[Rows]:
        """The rows of a statement, at most this many at a time in memory; inside a transaction."""
        ...

    def transaction(self, *, exclusive: bool = True) -> contextlib.AbstractContextManager[None]:
        """Everything or nothing; on disk when the outermost block is left. A block within a block joins it.

        ``exclusive``: no other exclusive transaction runs meanwhile. SQLite has no others.
        """
        ...

    def close(self) -> None: ...


def marks(values: Sized) -> str:
    """``?, ?, ?``: a place in ``IN (…)`` for each of these; nothing is in an empty one."""
    return ", ".join("?" * len(values)) or "NULL"
