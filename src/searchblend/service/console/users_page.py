"""Who may do what, and when each was last heard of: tokens beside what the audit log says of their holders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from searchblend.store.service_store import ServiceStore
from searchblend.store.tokens import OS_USER, SIGNED_IN

MACHINE: Final = "this machine"
"""in place of a role: whoever may run commands there needs no token"""


@dataclass(frozen=True)
class User:
    """A token's holder, or an account of the machine that has acted without one."""

    name: str
    role: str
    created: int | None
    revoked: bool
    signed_in: int | None
    """last, to the console"""
    acted: int | None
    """the last entry in the audit log, signing in among them"""


def read_users(store: ServiceStore) -> list[User]:
    """Whose token is valid first, then by name."""
    signed_in: dict[str, int] = {}
    acted: dict[str, int] = {}
    for entry in (row.entry for row in store.audit.rows()):
        acted[entry.actor] = entry.when
        if entry.action == SIGNED_IN:
            signed_in[entry.actor] = entry.when
    users = [
        User(token.name, token.role, token.created, token.revoked, signed_in.get(token.name), acted.get(token.name))
        for token in store.tokens.admins()
    ]
    users += [User(name, MACHINE, None, False, None, when) for name, when in acted.items() if name.startswith(OS_USER)]
    return sorted(users, key=lambda user: (user.revoked, user.name))
