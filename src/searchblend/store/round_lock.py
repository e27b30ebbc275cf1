"""Who takes a report and who closes its round, one after the other.

SQLite has one writer at a time. In PostgreSQL it is a lock by the round's key and not by its row: locking a row needs
the right to change it, and whoever takes reports has no business with that.
"""

from __future__ import annotations

from typing import Final

from searchblend.store.database import Database

_KIND: Final = 60042404
"""apart from other users of advisory locks"""


def hold_open(database: Database, round_key: int) -> None:
    """The round's state stays as it is until this transaction ends; any number may hold it open at once."""
    if database.dialect == "postgresql":
        database.execute(f"SELECT pg_advisory_xact_lock_shared({_KIND}, CAST(? AS integer))", (round_key,))


def hold_alone(database: Database, round_key: int) -> None:
    """Wait for everybody who holds the round open; nobody else does until this transaction ends."""
    if database.dialect == "postgresql":
        database.execute(f"SELECT pg_advisory_xact_lock({_KIND}, CAST(? AS integer))", (round_key,))
