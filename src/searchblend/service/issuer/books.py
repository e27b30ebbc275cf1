"""The issuer's books, in one SQLite file: accounts by the hash of their secret, and what each was given this week.

Of a request the hash is kept, so that the same bytes again get the same answer and cost nothing more. It is the hash of
a blinded message, which says nothing of the token; when its week is over it goes too.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from searchblend.core.errors import InvalidParameter, RunError, UsageError
from searchblend.files.durable import create_private
from searchblend.files.sqlite import DURABLE, SqliteFile
from searchblend.service.clock import DAY

FILE: Final = "issuer.db"
WEEK: Final = 7 * DAY
_APPLICATION_ID: Final = 0x53424953  # "SBIS"
_PREFIX: Final = "sbi_"
_LONGEST_NAME: Final = 100
_TABLES: Final = (
    """CREATE TABLE accounts (
        account INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, secret_hash BLOB NOT NULL UNIQUE,
        created INTEGER NOT NULL, ended INTEGER)""",
    """CREATE TABLE issued (
        account INTEGER NOT NULL REFERENCES accounts (account), week INTEGER NOT NULL, request BLOB NOT NULL,
        PRIMARY KEY (account, week, request)) WITHOUT ROWID""",
)


class Issuance(StrEnum):
    """What the books say to a request."""

    GRANTED = "granted"
    UNKNOWN = "unknown"
    LIMIT = "limit"


@dataclass(frozen=True)
class Account:
    """One device, or whatever else may have so many tokens a week."""

    name: str
    created: int
    ended: bool
    issued: int
    """this week"""


class BooksError(RunError):
    """The issuer's file cannot be used."""


class IssuerBooks(SqliteFile):
    """A commit is on disk before its token leaves: no crash makes an account's week begin anew."""

    def __init__(self, folder: Path) -> None:
        path = folder / FILE
        try:
            create_private(path)
        except OSError as error:
            raise BooksError(f"{path}: cannot be opened: {error.strerror}") from None
        super().__init__(path, self._error_of, pragmas=(*DURABLE, "foreign_keys = ON"), any_thread=True)
        try:
            if not self.claim(_APPLICATION_ID, version=1, tables=_TABLES):
                raise BooksError(f"{path}: not the books of an issuer of this version")
        except BaseException:
            self.close()
            raise
        self._tidied = -1

    def add(self, names: Sequence[str], *, now: int) -> list[str]:
        """A secret for each new account, shown once; all of them or none."""
        new_secrets = [_PREFIX + secrets.token_urlsafe(32) for _ in names]
        with self.transaction():
            for name, secret in zip(names, new_secrets, strict=True):
                _check_name(name)
                if self.execute("SELECT 1 FROM accounts WHERE name = ?", (name,)):
                    raise UsageError("an account of this name exists already; end it first, or choose another")
                self.execute(
                    "INSERT INTO accounts (name, secret_hash, created) VALUES (?, ?, ?)", (name, _hash(secret), now)
                )
        return new_secrets

    def end(self, name: str, *, now: int) -> bool:
        """No more tokens for it; whether there was such an account. Those that it has stay good."""
        return bool(
            self.execute("UPDATE accounts SET ended = ? WHERE name = ? AND ended IS NULL RETURNING 1", (now, name))
        )

    def accounts(self, *, now: int) -> list[Account]:
        rows = self.execute(
            "SELECT name, created, ended IS NOT NULL, "
            "(SELECT count(*) FROM issued WHERE issued.account = accounts.account AND week = ?) "
            "FROM accounts ORDER BY name",
            (now // WEEK,),
        )
        return [Account(name, created, bool(ended), issued) for name, created, ended, issued in rows]

    def take(self, secret: str, request: bytes, *, per_week: int, now: int) -> Issuance:
        """Count a request on its account, once, if that has any left this week."""
        week = now // WEEK
        with self.transaction():
            self._tidy(week)
            rows = self.execute(
                "SELECT account FROM accounts WHERE secret_hash = ? AND ended IS NULL", (_hash(secret),)
            )
            if not rows:
                return Issuance.UNKNOWN
            of_week, digest = (rows[0][0], week), hashlib.sha256(request).digest()
            if self.execute("SELECT 1 FROM issued WHERE account = ? AND week = ? AND request = ?", (*of_week, digest)):
                return Issuance.GRANTED
            if self.execute("SELECT count(*) FROM issued WHERE account = ? AND week = ?", of_week)[0][0] >= per_week:
                return Issuance.LIMIT
            self.execute("INSERT INTO issued (account, week, request) VALUES (?, ?, ?)", (*of_week, digest))
        return Issuance.GRANTED

    def _tidy(self, week: int) -> None:
        if week != self._tidied:
            self.execute("DELETE FROM issued WHERE week < ?", (week,))
            self._tidied = week

    def _error_of(self, error: sqlite3.Error | UnicodeDecodeError, code: int) -> BooksError:
        return BooksError(f"{self.path}: {type(error).__name__} ({code})")


def _check_name(name: str) -> None:
    if not name or len(name) > _LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise InvalidParameter("name", f"expected 1 to {_LONGEST_NAME} printable characters, no space at either end")


def _hash(secret: str) -> bytes:
    """Secrets are 256 random bits: a plain hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
