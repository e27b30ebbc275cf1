"""Everything that the service keeps, over one database connection."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from searchblend.core.errors import UsageError
from searchblend.store.artifacts import Artifacts
from searchblend.store.audit import AuditLog
from searchblend.store.database import Database
from searchblend.store.database_sqlite import APPLICATION_ID, SqliteStore
from searchblend.store.jobs import Jobs
from searchblend.store.ledger import Ledger
from searchblend.store.reports import Contributions, Reports
from searchblend.store.rounds import Rounds
from searchblend.store.schema import require_tables
from searchblend.store.tokens import ConsoleSessions, Tokens
from searchblend.store.transparency_log import TransparencyLog

_HEADER_BYTES: Final = 72
_APPLICATION_ID_AT: Final = 68
"""where the header of a SQLite file names its application"""

PATIENT_SECONDS: Final = 300.0
"""for what a person or a worker waits for: a migration, a backup, an estimate"""
LOCK_SECONDS: Final = 30.0


class ServiceStore(contextlib.AbstractContextManager["ServiceStore"]):
    """The parts of the service's memory. They share the connection, so that one transaction can span them."""

    def __init__(self, database: Database, on_point: Callable[[str], None] = lambda point: None) -> None:
        self.database = database
        self.on_point = on_point
        self.audit = AuditLog(database)
        self.rounds = Rounds(database, self.audit)
        self.reports = Reports(database, on_point)
        self.contributions = Contributions(database)
        self.jobs = Jobs(database)
        self.artifacts = Artifacts(database)
        self.log = TransparencyLog(database)
        self.tokens = Tokens(database, self.audit)
        self.sessions = ConsoleSessions(database, self.audit, self.tokens)
        self.ledger = Ledger(database)

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        return self.database.transaction()

    def close(self) -> None:
        self.database.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def open_database(where: str | Path, *, create: bool = True, seconds: float = PATIENT_SECONDS) -> Database:
    """A PostgreSQL URL, or the path of a SQLite file; ``seconds`` for a statement, or for others to release a lock."""
    address = str(where)
    if address.startswith(("postgresql://", "postgres://")):
        from searchblend.store.database_postgres import PostgresStore  # its driver comes with an extra

        return PostgresStore(address, seconds)
    if "://" in address:
        raise UsageError("database: expected postgresql://… or the path of a file")
    return SqliteStore(Path(where), create=create, busy_seconds=min(seconds, LOCK_SECONDS))


def is_service_database(where: str | Path) -> bool:
    """Whether this is a PostgreSQL URL, or a SQLite file that a service has made: such a file says so in its header."""
    if "://" in str(where):
        return True
    try:
        with Path(where).open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError:
        return False
    return header[_APPLICATION_ID_AT:] == APPLICATION_ID.to_bytes(4, "big")


def open_store(
    where: str | Path, *, create: bool = True, on_point: Callable[[str], None] = lambda point: None
) -> ServiceStore:
    """The store, whose tables are of this version: a new SQLite file gets them, any other database is refused."""
    database = open_database(where, create=create)
    try:
        require_tables(database)
    except BaseException:
        database.close()
        raise
    return ServiceStore(database, on_point)
