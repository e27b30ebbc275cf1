"""Credentials, stored as hashes: admin tokens with a role, enrolment codes of opt-in users, sessions of the console."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Final

from searchblend.core.errors import InvalidParameter
from searchblend.store.audit import AuditLog
from searchblend.store.database import Database
from searchblend.store.errors import StoreError

ROLES: Final = ("viewer", "operator", "reviewer", "auditor")
OS_USER: Final = "os:"
"""how the audit log names whoever used a command without a token: by the account on that machine"""
SIGNED_IN: Final = "signed in"
"""what the audit log says of an opened session"""
_ACTORS: Final = ("clock", "curator", "estimator", "publisher", "schedule", "unknown", "worker")
_TOKEN_PREFIX: Final = "sba_"  # noqa: S105  # what tokens look like, not one of them
_CODE_PREFIX: Final = "sbe_"


@dataclass(frozen=True)
class Admin:
    """A person who called with a token."""

    name: str
    role: str


@dataclass(frozen=True)
class AdminToken:
    """What is kept of a token beside its hash."""

    name: str
    role: str
    created: int
    revoked: bool


class Tokens:
    """Hashes of credentials in a database. They are random 256-bit strings, so a plain hash is enough."""

    def __init__(self, database: Database, audit: AuditLog) -> None:
        self._database, self._audit = database, audit

    def add_admin(self, name: str, role: str, *, actor: str, now: int) -> str:
        """A new token, shown once."""
        if role not in ROLES:
            raise InvalidParameter("role", f"expected one of {', '.join(ROLES)}")
        if not name or len(name) > 100 or not name.isprintable():
            raise InvalidParameter("name", "expected 1 to 100 printable characters")
        if name.startswith(OS_USER) or name in _ACTORS:
            raise InvalidParameter(
                "name", "expected a person's name; in the audit log this one stands for something else"
            )
        token = _TOKEN_PREFIX + secrets.token_urlsafe(32)
        with self._database.transaction():
            if self._database.execute("SELECT 1 FROM admin_tokens WHERE name = ?", (name,)):
                raise StoreError("a token with this name already exists")
            self._database.execute(
                "INSERT INTO admin_tokens (token_hash, name, role, created) VALUES (?, ?, ?, ?)",
                (_hash(token), name, role, now),
            )
            self._audit.append(actor, "admin token made", now, {"name": name, "role": role})
        return token

    def revoke_admin(self, name: str, *, actor: str, now: int) -> bool:
        with self._database.transaction():
            rows = self._database.execute(
                "UPDATE admin_tokens SET revoked = 1 WHERE name = ? AND revoked = 0 RETURNING 1", (name,)
            )
            if rows:
                self._audit.append(actor, "admin token revoked", now, {"name": name})
        return bool(rows)

    def admin(self, token: str) -> Admin | None:
        rows = self._database.execute(
            "SELECT name, role FROM admin_tokens WHERE token_hash = ? AND revoked = 0", (_hash(token),)
        )
        return Admin(*rows[0]) if rows else None

    def admins(self) -> list[AdminToken]:
        rows = self._database.execute("SELECT name, role, created, revoked FROM admin_tokens ORDER BY name")
        return [AdminToken(name, role, created, bool(revoked)) for name, role, created, revoked in rows]

    def enrol(self, task: str, n: int, *, actor: str, now: int) -> list[str]:
        """New enrolment codes of a task, shown once."""
        codes = [_CODE_PREFIX + secrets.token_urlsafe(16) for _ in range(n)]
        with self._database.transaction():
            self._database.execute_many(
                "INSERT INTO enrolments (task, code_hash, created) VALUES (?, ?, ?)",
                [(task, _hash(code), now) for code in codes],
            )
            self._audit.append(actor, "enrolment codes made", now, {"task": task, "codes": n})
        return codes

    def enrolled(self, task: str) -> list[bytes]:
        """The hashes of a task's enrolment codes."""
        rows = self._database.execute("SELECT code_hash FROM enrolments WHERE task = ?", (task,))
        return [bytes.fromhex(code_hash) for (code_hash,) in rows]

    def is_enrolled(self, task: str, code: str) -> bool:
        return bool(
            self._database.execute("SELECT 1 FROM enrolments WHERE task = ? AND code_hash = ?", (task, _hash(code)))
        )


class ConsoleSessions:
    """Signed-in people: a random string in a cookie, and its hash here beside that of the token they signed in with.

    A session ends when its time is over, by signing out, or with its token.
    """

    def __init__(self, database: Database, audit: AuditLog, tokens: Tokens) -> None:
        self._database, self._audit, self._tokens = database, audit, tokens

    def open(self, token: str, *, now: int, seconds: int) -> tuple[str, Admin] | None:
        """A new session for the holder of this token, or nothing; what is out of date goes."""
        admin = self._tokens.admin(token)
        if admin is None:
            return None
        secret = secrets.token_urlsafe(32)
        with self._database.transaction():
            self._database.execute("DELETE FROM sessions WHERE expires <= ?", (now,))
            self._database.execute(
                "INSERT INTO sessions (session_hash, token_hash, expires) VALUES (?, ?, ?)",
                (_hash(secret), _hash(token), now + seconds),
            )
            self._audit.append(admin.name, SIGNED_IN, now, {"role": admin.role})
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
