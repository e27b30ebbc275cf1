"""What each process of the service may do in PostgreSQL: the one place where it is written down.

A process needs these rights and no others; ``searchblend database grants`` prints them as SQL. Tables belong to
a user as whom no process logs in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from searchblend.core.errors import InvalidParameter
from searchblend.store.backup import TABLES

Privileges = Mapping[str, Sequence[str]]
"""by table: ``SELECT``, or ``UPDATE (column, column)``"""

_READ: Final = ("SELECT",)
_APPEND: Final = ("SELECT", "INSERT")
_COUNT: Final = ("SELECT", "INSERT", "UPDATE (n)")
_JOBS: Final = ("SELECT", "INSERT", "UPDATE (lease_token, lease_until, due, attempts)", "DELETE")
_DOCUMENTS: Final = ("SELECT", "INSERT", "UPDATE (content)", "DELETE")
_FORGET: Final = ("SELECT (round_key)", "DELETE")
_SHRED: Final = ("SELECT (round_key, withdrawn)", "DELETE")
_MOVED: Final = "state, version, changed"
_ALL: Final[Privileges] = {"schema_version": _READ, "tasks": _READ, "rounds": _READ}
_ENDS_ROUNDS: Final[Privileges] = {
    "audit": _APPEND,
    "contributions": _SHRED,
    "counts": _FORGET,
    "documents": _DOCUMENTS,
    "jobs": _JOBS,
    "seen": _FORGET,
    "spent_tokens": _FORGET,
}
GRANTS: Final[Mapping[str, Privileges]] = {
    "collector": {
        **_ALL,
        "counts": _COUNT,
        "refusals": _COUNT,
        "seen": _APPEND,
        "spent_tokens": _APPEND,
    },
    "intake": {
        **_ALL,
        "contributions": ("SELECT", "INSERT", "UPDATE (sealed, withdrawn)"),
        "enrolments": _READ,
        "refusals": _COUNT,
    },
    "curator": {
        **_ALL,
        **_ENDS_ROUNDS,
        "contributions": ("SELECT", "DELETE"),
        "enrolments": _READ,
        "ledger": _APPEND,
        "refusals": _COUNT,
        "rounds": (
            "SELECT",
            "INSERT",
            f"UPDATE ({_MOVED}, reports, budget_window, opened_by, public_key, key_signature, optin_closes, shred_by, "
            "client_closes, grace_until)",
        ),
    },
    "publisher": {
        **_ALL,
        **_ENDS_ROUNDS,
        "artifacts": _APPEND,
        "ledger": _APPEND,
        "manifests": _APPEND,
        "release_files": ("INSERT",),
        "round_artifacts": _APPEND,
        "rounds": ("SELECT", f"UPDATE ({_MOVED}, reports, budget_window, client_opens, client_closes, grace_until)"),
        "trends": _APPEND,
    },
    "admin": {
        **_ALL,
        **_ENDS_ROUNDS,
        "admin_tokens": _READ,
        "artifacts": _READ,
        "counts": ("SELECT", "INSERT", "DELETE"),
        "enrolments": ("INSERT",),
        "ledger": _READ,
        "manifests": _READ,
        "refusals": _READ,
        "round_artifacts": _READ,
        "rounds": ("SELECT", "INSERT", f"UPDATE ({_MOVED}, reports, shape, client_closes, grace_until)"),
        "sessions": ("SELECT", "INSERT", "DELETE"),
        "tasks": ("SELECT", "INSERT", "UPDATE (killed)"),
        "trends": _READ,
    },
    "backup": {"schema_version": _READ, **dict.fromkeys(TABLES, _READ), "audit": _APPEND},
    "auditor": {"schema_version": _READ, "audit": _READ, "ledger": _READ, "release_files": _READ},
}


def grant_statements(role: str, user: str, schema: str = "public") -> list[str]:
    """SQL that gives a database user the rights of a role, and takes away all others that it had on these tables."""
    if role not in GRANTS:
        raise InvalidParameter("role", f"expected one of {', '.join(GRANTS)}")
    to, where = _name("user", user), _name("schema", schema)
    return [
        f"REVOKE ALL ON ALL TABLES IN SCHEMA {where} FROM {to};",
        f"GRANT USAGE ON SCHEMA {where} TO {to};",
        *(
            f"GRANT {', '.join(privileges)} ON {where}.{table} TO {to};"
            for table, privileges in sorted(GRANTS[role].items())
        ),
    ]


def _name(field: str, name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,62}", name):
        raise InvalidParameter(field, "expected a name of letters, digits, - and _")
    return f'"{name}"'
