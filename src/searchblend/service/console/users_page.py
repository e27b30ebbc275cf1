"""Who may do what, and when each was last heard of: tokens and people of an issuer beside what the audit log says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from searchblend.store.service_store import ServiceStore
from searchblend.store.tokens import OS_USER, SIGNED_IN, AdminToken

MACHINE: Final = "this machine"
"""in place of a role: whoever may run commands there needs no token"""
EXPIRED: Final = "expired"
REVOKED: Final = "revoked"


@dataclass(frozen=True)
class User:
    """A token's holder, who signs in at an issuer, or an account of the machine that has acted without a token."""

    name: str
    role: str
    credential: str
    """``valid``, ``expired``, ``revoked``, ``single sign-on`` or ``none``"""
    created: int | None
    """the token; of a person of an issuer the first sign-in"""
    expires: int | None
    used: int | None
    """the credential, to some minutes"""
    signed_in: int | None
    """last, to the console"""
    acted: int | None
    """the last entry in the audit log, signing in among them"""

    @property
    def may_act(self) -> bool:
        return self.credential not in (EXPIRED, REVOKED)


def read_users(store: ServiceStore, now: int) -> list[User]:
    """Who may act first, then by name."""
    signed_in: dict[str, int] = {}
    acted: dict[str, int] = {}
    for entry in (row.entry for row in store.audit.rows()):
        acted[entry.actor] = entry.when
        if entry.action == SIGNED_IN:
            signed_in[entry.actor] = entry.when
    users = [
        User(
            token.name,
            token.role,
            _state(token, now),
            token.created,
            token.expires,
            token.used,
            signed_in.get(token.name),
            acted.get(token.name),
        )
        for token in store.tokens.admins()
    ]
    users += [
        User(
            person.name,
            person.role,
            "single sign-on",
            person.created,
            None,
            person.used,
            signed_in.get(person.name),
            acted.get(person.name),
        )
        for person in store.sessions.people()
    ]
    users += [
        User(name, MACHINE, "none", None, None, None, None, when)
        for name, when in acted.items()
        if name.startswith(OS_USER)
    ]
    return sorted(users, key=lambda user: (not user.may_act, user.name))


def _state(token: AdminToken, now: int) -> str:
    if token.revoked:
        return REVOKED
    return EXPIRED if token.expires is not None and token.expires <= now else "valid"
