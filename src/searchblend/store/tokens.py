"""Credentials, stored as hashes: admin tokens with a role, enrolment codes of opt-in users, sessions of the console.

People may also sign in at an issuer of their organisation: of them a hash of issuer and subject is kept, with the name
and the role that the issuer stated last.
"""

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
SSO_USER: Final = "sso:"
"""how it names whoever signed in at an issuer; no token can be named like that"""
SIGNED_IN: Final = "signed in"
"""what the audit log says of an opened session"""
_USE_SECONDS: Final = 300
"""how exactly the last use is known: not every page that is read is a write"""
_AROUND_SECONDS: Final = 90 * 86_400
"""whoever has not signed in at the issuer for so long is not counted on"""
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
    expires: int | None
    """None: never"""
    used: int | None


@dataclass(frozen=True)
class SsoPerson:
    """Who has signed in at an issuer, with the role that was stated then."""

    name: str
    role: str
    created: int
    used: int | None


class Tokens:
    """Hashes of credentials in a database. They are random 256-bit strings, so a plain hash is enough."""

    def __init__(self, database: Database, audit: AuditLog) -> None:
        self._database, self._audit = database, audit

    def add_admin(self, name: str, role: str, *, actor: str, now: int, expires: int | None = None) -> str:
        """A new token, shown once; without ``expires`` it holds until it is revoked."""
        if role not in ROLES:
            raise InvalidParameter("role", f"expected one of {', '.join(ROLES)}")
        if not name or len(name) > 100 or not name.isprintable():
            raise InvalidParameter("name", "expected 1 to 100 printable characters")
        if name.startswith((OS_USER, SSO_USER)) or name in _ACTORS:
            raise InvalidParameter(
                "name", "expected a person's name; in the audit log this one stands for something else"
            )
        token = _TOKEN_PREFIX + secrets.token_urlsafe(32)
        with self._database.transaction():
            if self._database.execute("SELECT 1 FROM admin_tokens WHERE name = ?", (name,)):
                raise StoreError("a token with this name already exists")
            self._database.execute(
                "INSERT INTO admin_tokens (token_hash, name, role, created, expires) VALUES (?, ?, ?, ?, ?)",
                (_hash(token), name, role, now, expires),
            )
            self._audit.append(actor, "admin token made", now, {"name": name, "role": role, "expires": expires})
        return token

    def revoke_admin(self, name: str, *, actor: str, now: int) -> bool:
        with self._database.transaction():
            rows = self._database.execute(
                "UPDATE admin_tokens SET revoked = 1 WHERE name = ? AND revoked = 0 RETURNING 1", (name,)
            )
            if rows:
                self._audit.append(actor, "admin token revoked", now, {"name": name})
        return bool(rows)

    def admin(self, token: str, now: int) -> Admin | None:
        """Whose token it is, if it still holds."""
        rows = self._database.execute(
            "SELECT name, role, used FROM admin_tokens WHERE token_hash = ? AND revoked = 0 "
            "AND (expires IS NULL OR expires > ?)",
            (_hash(token), now),
        )
        if not rows:
            return None
        name, role, used = rows[0]
        note_use(self._database, name, used, now)
        return Admin(name, role)

    def admins(self) -> list[AdminToken]:
        rows = self._database.execute(
            "SELECT name, role, created, revoked, expires, used FROM admin_tokens ORDER BY name"
        )
        return [
            AdminToken(name, role, created, bool(revoked), expires, used)
            for name, role, created, revoked, expires, used in rows
        ]

    def holders(self, role: str, now: int, *, with_sso: bool = True) -> list[str]:
        """Who may act in a role now: by a token that holds, or at an issuer in the last months."""
        rows = self._database.execute(
            "SELECT name FROM admin_tokens WHERE role = ? AND revoked = 0 AND (expires IS NULL OR expires > ?)",
            (role, now),
        )
        if with_sso:
            rows += self._database.execute(
                "SELECT name FROM people WHERE role = ? AND used > ?", (role, now - _AROUND_SECONDS)
            )
        return [name for (name,) in rows]

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
    """Signed-in people: a random string in a cookie, and its hash here beside whose it is.

    That is the hash of the token they signed in with, or their identity at an issuer. A session ends when its time is
    over, by signing out, with its token, or when all sessions of a person are ended.
    """

    def __init__(self, database: Database, audit: AuditLog, tokens: Tokens) -> None:
        self._database, self._audit, self._tokens = database, audit, tokens

    def open(self, token: str, *, now: int, seconds: int) -> tuple[str, Admin] | None:
        """A new session for the holder of this token, or nothing; what is out of date goes."""
        admin = self._tokens.admin(token, now)
        if admin is None:
            return None
        with self._database.transaction():
            return self._begin(admin, _hash(token), now, seconds), admin

    def open_sso(self, issuer: str, subject: str, admin: Admin, *, now: int, seconds: int) -> str:
        """A new session for whom an issuer vouches.

        The first account that comes with a name has it for good: another one that states the same name is refused, or
        it could act in the audit log as someone else.
        """
        identity = _hash(f"{issuer}\0{subject}")
        with self._database.transaction():
            held = self._database.execute(
                "SELECT name FROM people WHERE identity = ? OR name = ?", (identity, admin.name)
            )
            if held and held != [(admin.name,)]:
                raise StoreError("this account was known by another name here; ask an operator")
            if held:
                known = self._database.execute(
                    "UPDATE people SET role = ?, used = ? WHERE identity = ? RETURNING 1", (admin.role, now, identity)
                )
                if not known:
                    raise StoreError("another account of the issuer has this name here; ask an operator")
            else:
                self._database.execute(
                    "INSERT INTO people (identity, name, role, created, used) VALUES (?, ?, ?, ?, ?)",
                    (identity, admin.name, admin.role, now, now),
                )
            return self._begin(admin, identity, now, seconds)

    def _begin(self, admin: Admin, holder: str, now: int, seconds: int) -> str:
        secret = secrets.token_urlsafe(32)
        self._database.execute("DELETE FROM sessions WHERE expires <= ?", (now,))
        self._database.execute(
            "INSERT INTO sessions (session_hash, token_hash, expires) VALUES (?, ?, ?)",
            (_hash(secret), holder, now + seconds),
        )
        self._audit.append(admin.name, SIGNED_IN, now, {"role": admin.role})
        return secret

    def admin(self, secret: str, now: int) -> Admin | None:
        """Who it is, if the session and what it was opened with still hold."""
        rows = self._database.execute(
            "SELECT name, role, used FROM sessions JOIN ("
            "SELECT token_hash AS holder, name, role, used FROM admin_tokens "
            "WHERE revoked = 0 AND (expires IS NULL OR expires > ?) "
            "UNION ALL SELECT identity, name, role, used FROM people"
            ") AS holders ON holder = token_hash WHERE session_hash = ? AND sessions.expires > ?",
            (now, _hash(secret), now),
        )
        if not rows:
            return None
        name, role, used = rows[0]
        note_use(self._database, name, used, now)
        return Admin(name, role)

    def people(self) -> list[SsoPerson]:
        rows = self._database.execute("SELECT name, role, created, used FROM people ORDER BY name")
        return [SsoPerson(*row) for row in rows]

    def end_all(self, name: str, *, actor: str, now: int) -> bool:
        """End every session of a person who signs in at an issuer; whether there is such a person."""
        with self._database.transaction():
            rows = self._database.execute("SELECT identity FROM people WHERE name = ?", (name,))
            if rows:
                self._database.execute("DELETE FROM sessions WHERE token_hash = ?", rows[0])
                self._audit.append(actor, "sessions ended", now, {"name": name})
        return bool(rows)

    def close(self, secret: str) -> None:
        self._database.execute("DELETE FROM sessions WHERE session_hash = ?", (_hash(secret),))


def person_of(actor: str) -> str:
    """One name is one person, whether a token, an account of this machine or one of an issuer bears it."""
    return actor.removeprefix(OS_USER).removeprefix(SSO_USER)


def note_use(database: Database, name: str, used: int | None, now: int) -> None:
    """When a credential was last used, to some minutes."""
    if used is None or not 0 <= now - used < _USE_SECONDS:
        table = "people" if name.startswith(SSO_USER) else "admin_tokens"
        database.execute(f"UPDATE {table} SET used = ? WHERE name = ?", (now, name))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
