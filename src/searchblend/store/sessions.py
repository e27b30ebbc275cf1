"""Signed-in people: a random text in a cookie, its hash here, beside the hash of the token that they signed in with."""

from __future__ import annotations

import hashlib
import secrets

from searchblend.store.audit import AuditLog
from searchblend.store.database import Database
from searchblend.store.tokens import Admin, Tokens

_SECRET_BYTES = 32


class ConsoleSessions:
    """ConsoleSessions in a database. A session ends when its time is over, by signing out, or with its token."""

    def __init__(self, database: Database, audit: AuditLog) -> None:
        self._database, self._audit = database, audit
        self._tokens = Tokens(database, audit)

    def open(self, token: str, *, now: int, seconds: int) -> tuple[str, Admin] | None:
        """A new session for somebody with this token, or nothing; what is out of date goes."""
        admin = self._tokens.admin(token)
        if admin is None:
            return None
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        with self._database.transaction():
            self._database.execute("DELETE FROM sessions WHERE expires <= ?", (now,))
            self._database.execute(
                "INSERT INTO sessions (session_hash, token_hash, expires) VALUES (?, ?, ?)",
                (_hash(secret), _hash(token), now + seconds),
            )
            self._audit.append(admin.name, "signed in", now, {"role": admin.role})
        return secret, admin

    def admin(self, secret: str, now: int) -> Admin | None:
        """Who it is, if the session and its token still hold."""
        rows = self._database.execute(
            "SELECT name, role FROM sessions JOIN admin_tokens ON admin_tokens.token_hash = sessions.token_hash "
            "WHERE session_hash = ? AND expires > ? AND revoked = 0",
            (_hash(secret), now),
        )
        return Admin(*rows[0]) if rows else None

    def close(self, secret: str) -> None:
        self._database.execute("DELETE FROM sessions WHERE session_hash = ?", (_hash(secret),))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
