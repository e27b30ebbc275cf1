"""The service's database in PostgreSQL 14 or later. Several server processes may share it.

Start-up refuses a server that would acknowledge before its log is on disk. An exclusive transaction holds one advisory
lock, so that chains (ledger, audit) and state changes are made one after another; reports do not wait for it.

No statement waits without end: the server ends one that takes too long, and where the server itself is frozen or out of
reach, this side ends the connection.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus

from searchblend.store.database import Rows
from searchblend.store.errors import StoreError, StoreUnavailable, UnsafeDatabase

_OLDEST: Final = 140000
_CONNECT_SECONDS: Final = (2, 60)
"""at least, at most; fewer are not taken by the driver, and a busy server that has just recovered needs over ten"""
_EXCLUSIVE: Final = "SELECT pg_advisory_xact_lock(6004240411)"
_LATER: Final = 2.0
"""how many seconds the server is given to end a statement by itself"""
_MUST_BE_ON: Final = ("fsync", "full_page_writes")
_AGAIN: Final = (
    psycopg.OperationalError,
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.QueryCanceled,
    psycopg.errors.IdleInTransactionSessionTimeout,
)
_LIMITS: Final = "54"
"""the class of codes for what is beyond a limit of the server: no later attempt gets further"""


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """Gives up on a server that does not answer; psycopg would wait for ever."""

    answer_seconds: float | None = None

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        try:
            return super().wait(gen, interval, self.answer_seconds if timeout is None else timeout)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()  # the answer would be taken for that of the next statement
            raise


class PostgresStore:
    """A connection, made anew when it was lost."""

    dialect = "postgresql"

    def __init__(self, url: str, statement_seconds: float) -> None:
        self._url, self._statement_seconds = url, statement_seconds
        least, most = _CONNECT_SECONDS
        self._connect_seconds = int(min(max(statement_seconds, least), most))
        self._depth = 0
        self._connection = self._connect()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        with self._errors():
            cursor = self._live().execute(_translated(statement), values or None)
            return cursor.fetchall() if cursor.description else []

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._errors(), self._live().cursor() as cursor:
            cursor.executemany(_translated(statement), rows)

    def pages(self, statement: str, rows: int) -> Iterator[Rows]:
        with self._errors(), self._live().cursor("pages") as cursor:
            cursor.execute(_translated(statement))
            while page := cursor.fetchmany(rows):
                yield page

    @contextlib.contextmanager
    def transaction(self, *, exclusive: bool = True) -> Iterator[None]:
        if self._depth:
            yield
            return
        with self._errors():
            self._live().execute("BEGIN")
        self._depth = 1
        try:
            if exclusive:
                self.execute(_EXCLUSIVE)
            yield
            with self._errors():
                self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(psycopg.Error):
                self._connection.execute("ROLLBACK")
            raise
        finally:
            self._depth = 0

    def close(self) -> None:
        self._connection.close()

    def _live(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection.closed and not self._depth:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        with self._errors():
            connection = _Connection.connect(self._url, autocommit=True, connect_timeout=self._connect_seconds)
        try:
            with self._errors():
                connection.answer_seconds = self._statement_seconds + _LATER
                _refuse_unsafe(connection)
                connection.execute("SET client_min_messages = warning")
                for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
                    connection.execute(f"SET {name} = {int(1000 * self._statement_seconds)}".encode())
        except BaseException:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """The database's own words may quote values: only the kind of error is passed on."""
        try:
            yield
        except psycopg.Error as error:
            again = isinstance(error, _AGAIN) and not (error.sqlstate or "").startswith(_LIMITS)
            kind = StoreUnavailable if again else StoreError
            raise kind(f"postgresql: {type(error).__name__} ({error.sqlstate or 'no code'})") from None


def _refuse_unsafe(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    if connection.info.server_version < _OLDEST:
        raise UnsafeDatabase("postgresql: expected version 14 or later")
    for setting in _MUST_BE_ON:
        if _setting(connection, setting) != "on":
            raise UnsafeDatabase(f"postgresql: {setting} is off: what was acknowledged could be lost")
    if _setting(connection, "synchronous_commit") == "off":
        raise UnsafeDatabase("postgresql: synchronous_commit is off: what was acknowledged could be lost")


def _setting(connection: psycopg.Connection[tuple[Any, ...]], name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    return str(row[0]) if row else ""


@lru_cache(maxsize=512)
def _translated(statement: str) -> bytes:
    """Bytes, since only a literal may be a string here; every statement is made of constants of this package."""
    return statement.replace("?", "%s").encode()
