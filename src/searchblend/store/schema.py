"""The tables, how a database of an earlier version becomes one of this, and what each process may do to them.

Migrations only ever go forward. Only a new SQLite file gets its tables by itself. Everything else is ``searchblend
database migrate``, run by a user who may change tables and as whom no process logs in. A process needs the rights of
its role (``GRANTS``) and no others; ``searchblend database grants`` prints them as SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from searchblend.core.errors import InvalidParameter
from searchblend.store.database import Database
from searchblend.store.errors import WrongSchema

_WORDS: Final = {
    "sqlite": {"blob": "BLOB", "clustered": " WITHOUT ROWID", "position": "BIGINT", "real": "REAL"},
    "postgresql": {"blob": "BYTEA", "clustered": "", "position": "BIGINT", "real": "DOUBLE PRECISION"},
}
_APPEND_ONLY: Final = {1: ("ledger", "release_files", "audit"), 10: ("log_entries",)}
"""by the version that made them"""
LEDGER_TABLES: Final = (
    """
    CREATE TABLE ledger (
        position {position} PRIMARY KEY, kind TEXT NOT NULL, release_id TEXT, body TEXT NOT NULL,
        previous TEXT NOT NULL UNIQUE, hash TEXT NOT NULL UNIQUE, UNIQUE (kind, release_id)
    )
    """,
    """
    CREATE TABLE release_files (
        release_id TEXT NOT NULL, name TEXT NOT NULL, content {blob} NOT NULL, PRIMARY KEY (release_id, name)
    )
    """,
)
"""Also those of a ledger in a file of its own, where ``position`` is an INTEGER."""
_VERSION_1: Final = (
    """
    CREATE TABLE tasks (
        task TEXT PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        settings TEXT NOT NULL,
        killed INTEGER NOT NULL DEFAULT 0,
        created BIGINT NOT NULL
    )
    """,
    """
    CREATE TABLE rounds (
        round_key BIGINT PRIMARY KEY,
        task TEXT NOT NULL REFERENCES tasks (task),
        number INTEGER NOT NULL,
        state TEXT NOT NULL,
        version INTEGER NOT NULL,
        settings TEXT NOT NULL,
        budget_window TEXT NOT NULL,
        opened_by TEXT,
        public_key {blob},
        tag_key {blob},
        optin_closes BIGINT,
        shred_by BIGINT,
        client_opens BIGINT,
        client_closes BIGINT,
        grace_until BIGINT,
        shape TEXT,
        reports BIGINT,
        changed BIGINT NOT NULL,
        UNIQUE (task, number)
    )
    """,
    "CREATE TABLE seen (round_key BIGINT NOT NULL, report_id {blob} NOT NULL, PRIMARY KEY (round_key, report_id))"
    "{clustered}",
    """
    CREATE TABLE counts (
        round_key BIGINT NOT NULL, shard INTEGER NOT NULL, cell INTEGER NOT NULL, n BIGINT NOT NULL,
        PRIMARY KEY (round_key, shard, cell)
    ){clustered}
    """,
    """
    CREATE TABLE refusals (
        round_key BIGINT NOT NULL, reason TEXT NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (round_key, reason)
    ){clustered}
    """,
    """
    CREATE TABLE contributions (
        round_key BIGINT NOT NULL, tag {blob} NOT NULL, sealed {blob} NOT NULL, PRIMARY KEY (round_key, tag)
    )
    """,
    """
    CREATE TABLE documents (
        round_key BIGINT NOT NULL, name TEXT NOT NULL, content {blob} NOT NULL, PRIMARY KEY (round_key, name)
    )
    """,
    "CREATE TABLE artifacts (sha256 TEXT PRIMARY KEY, media_type TEXT NOT NULL, content {blob} NOT NULL)",
    """
    CREATE TABLE round_artifacts (
        round_key BIGINT NOT NULL, name TEXT NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (round_key, name)
    )
    """,
    """
    CREATE TABLE manifests (
        task TEXT NOT NULL, sequence BIGINT NOT NULL, expires BIGINT NOT NULL, content {blob} NOT NULL,
        PRIMARY KEY (task, sequence)
    )
    """,
    """
    CREATE TABLE jobs (
        round_key BIGINT NOT NULL, kind TEXT NOT NULL, due BIGINT NOT NULL, lease_token TEXT,
        lease_until BIGINT NOT NULL, attempts INTEGER NOT NULL, PRIMARY KEY (round_key, kind)
    )
    """,
    """
    CREATE TABLE audit (
        position BIGINT PRIMARY KEY, body TEXT NOT NULL, previous TEXT NOT NULL UNIQUE, hash TEXT NOT NULL UNIQUE
    )
    """,
    *LEDGER_TABLES,
    """
    CREATE TABLE admin_tokens (
        token_hash TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL, created BIGINT NOT NULL,
        revoked INTEGER NOT NULL DEFAULT 0
    )
    """,
    """
    CREATE TABLE enrolments (
        task TEXT NOT NULL, code_hash TEXT NOT NULL, created BIGINT NOT NULL, PRIMARY KEY (task, code_hash)
    )
    """,
)
_VERSION_2: Final = (
    """
    CREATE TABLE trends (
        round_key BIGINT NOT NULL, place INTEGER NOT NULL, query TEXT, probability {real}, low {real}, high {real},
        variance {real}, optin {real}, client {real}, optin_weight {real}, influence {real},
        PRIMARY KEY (round_key, place)
    )
    """,
    "CREATE INDEX jobs_due ON jobs (due)",
)
_VERSION_3: Final = (
    """
    CREATE TABLE spent_tokens (
        round_key BIGINT NOT NULL, nonce {blob} NOT NULL, report_id {blob} NOT NULL, PRIMARY KEY (round_key, nonce)
    ){clustered}
    """,
)
_VERSION_4: Final = (
    """
    CREATE TABLE sessions (
        session_hash TEXT PRIMARY KEY, token_hash TEXT NOT NULL, expires BIGINT NOT NULL
    )
    """,
)
_VERSION_5: Final = (
    "ALTER TABLE rounds DROP COLUMN tag_key",
    "ALTER TABLE rounds ADD COLUMN key_signature TEXT",
    "ALTER TABLE contributions ADD COLUMN withdrawn INTEGER NOT NULL DEFAULT 0",
)
_VERSION_6: Final = (
    # The curator asks for them every second, among many that were not withdrawn.
    "CREATE INDEX contributions_withdrawn ON contributions (round_key, tag) WHERE withdrawn = 1",
)
_VERSION_7: Final = (
    "ALTER TABLE admin_tokens ADD COLUMN expires BIGINT",
    "ALTER TABLE admin_tokens ADD COLUMN used BIGINT",
    # People who sign in at an issuer; their sessions name the identity where others name the token's hash.
    """
    CREATE TABLE people (
        identity TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL, created BIGINT NOT NULL, used BIGINT
    )
    """,
)
_VERSION_8: Final = ("ALTER TABLE rounds ADD COLUMN tokens TEXT",)
_VERSION_9: Final = ("CREATE TABLE gateway_keys (configuration {blob} PRIMARY KEY, ends BIGINT NOT NULL)",)
_VERSION_10: Final = (
    # The public log, apart from the inner documents of rounds: who serves it to devices reads no list under review.
    "CREATE TABLE log_entries (position {position} PRIMARY KEY, content {blob} NOT NULL)",
    "CREATE TABLE log_checkpoint (place INTEGER PRIMARY KEY CHECK (place = 0), content {blob} NOT NULL)",
    "INSERT INTO log_entries (position, content) SELECT CAST(substr(name, 11) AS BIGINT), content FROM documents "
    "WHERE round_key = 0 AND substr(name, 1, 10) = 'log entry '",
    "INSERT INTO log_checkpoint (place, content) SELECT 0, content FROM documents "
    "WHERE round_key = 0 AND name = 'log checkpoint'",
    "DELETE FROM documents WHERE round_key = 0 AND (substr(name, 1, 10) = 'log entry ' OR name = 'log checkpoint')",
)
MIGRATIONS: Final = (
    _VERSION_1,
    _VERSION_2,
    _VERSION_3,
    _VERSION_4,
    _VERSION_5,
    _VERSION_6,
    _VERSION_7,
    _VERSION_8,
    _VERSION_9,
    _VERSION_10,
)
SCHEMA_VERSION: Final = len(MIGRATIONS)
_HAS_TABLES: Final = {
    "sqlite": "SELECT COUNT(*) FROM sqlite_master WHERE name = 'schema_version'",
    "postgresql": "SELECT to_regclass('schema_version') IS NOT NULL",
}
BACKED_UP: Final = (
    "tasks",
    "rounds",
    "seen",
    "counts",
    "refusals",
    "spent_tokens",
    "documents",
    "log_entries",
    "log_checkpoint",
    "artifacts",
    "round_artifacts",
    "manifests",
    "jobs",
    "audit",
    "ledger",
    "release_files",
    "admin_tokens",
    "enrolments",
    "people",
    "trends",
)
"""what a backup holds: all but sealed records, who is signed in, and keys that their holder puts on record again"""
_LATER: Final = "the database was made by a later version of searchblend"


def migrate(database: Database, *, to: int = SCHEMA_VERSION) -> None:
    """Bring the database to a version; each step is one transaction. A newer database is refused."""
    with database.transaction():
        database.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
    if schema_version(database) > SCHEMA_VERSION:
        raise WrongSchema(_LATER)
    for version in range(1, to + 1):
        with database.transaction():
            if schema_version(database) < version:
                _apply(database, version)


def require_tables(database: Database) -> None:
    """Refuse a database whose tables are not those of this version; a new SQLite file is given them."""
    version = schema_version(database)
    if not version and database.dialect == "sqlite":
        with database.transaction():  # all steps or none: a crash leaves a new file, not a half-made one
            migrate(database)
    elif version > SCHEMA_VERSION:
        raise WrongSchema(_LATER)
    elif version < SCHEMA_VERSION:
        state = f"has version {version}" if version else "is not there, or not for this user to see"
        raise WrongSchema(
            f"the database: expected tables of version {SCHEMA_VERSION}; its schema {state}. "
            "Run `searchblend database migrate` as the owner of its tables"
        )


def schema_version(database: Database) -> int:
    """The version that the tables have; 0 if there are none."""
    if not database.execute(_HAS_TABLES[database.dialect])[0][0]:
        return 0
    rows = database.execute("SELECT version FROM schema_version")
    return int(rows[0][0]) if rows else 0


def _apply(database: Database, version: int) -> None:
    for statement in MIGRATIONS[version - 1]:
        database.execute(statement.format(**_WORDS[database.dialect]))
    for statement in append_only_triggers(database.dialect, _APPEND_ONLY.get(version, ())):
        database.execute(statement)
    if version == 1:
        database.execute("INSERT INTO schema_version (version) VALUES (1)")
    else:
        database.execute("UPDATE schema_version SET version = ?", (version,))


def append_only_triggers(dialect: str, tables: Sequence[str]) -> Sequence[str]:
    """Rows of these tables are never changed or removed, not even by mistake."""
    if dialect == "sqlite":
        return [
            f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            for table in tables
            for verb in ("UPDATE", "DELETE")
        ]
    return [
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'append-only table'; END $$",
        *(
            f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
            for table in tables
        ),
    ]


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
_COLLECTOR: Final[Privileges] = {
    **_ALL,
    "counts": _COUNT,
    "refusals": _COUNT,
    "seen": _APPEND,
    "spent_tokens": _APPEND,
}
_INTAKE: Final[Privileges] = {
    **_ALL,
    "contributions": ("SELECT", "INSERT", "UPDATE (sealed, withdrawn)"),
    "enrolments": _READ,
    "refusals": _COUNT,
}
GRANTS: Final[Mapping[str, Privileges]] = {
    "collector": _COLLECTOR,
    "intake": _INTAKE,
    "gateway": {
        **_COLLECTOR,
        **_INTAKE,
        "artifacts": _READ,
        "gateway_keys": ("SELECT", "INSERT", "DELETE"),
        "log_checkpoint": _READ,
        "log_entries": _READ,
        "manifests": _READ,
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
        "gateway_keys": _READ,
        "ledger": _APPEND,
        "log_checkpoint": ("SELECT", "INSERT", "UPDATE (content)"),
        "log_entries": _APPEND,
        "manifests": _APPEND,
        "release_files": ("INSERT",),
        "round_artifacts": _APPEND,
        "rounds": (
            "SELECT",
            f"UPDATE ({_MOVED}, reports, budget_window, client_opens, client_closes, grace_until, tokens)",
        ),
        "trends": _APPEND,
    },
    "admin": {
        **_ALL,
        **_ENDS_ROUNDS,
        "admin_tokens": ("SELECT", "UPDATE (used)"),
        "artifacts": _READ,
        "counts": ("SELECT", "INSERT", "DELETE"),
        "enrolments": ("INSERT",),
        "ledger": _READ,
        "manifests": _READ,
        "people": ("SELECT", "INSERT", "UPDATE (role, used)"),
        "refusals": _READ,
        "round_artifacts": _READ,
        "rounds": ("SELECT", "INSERT", f"UPDATE ({_MOVED}, reports, shape, client_closes, grace_until)"),
        "sessions": ("SELECT", "INSERT", "DELETE"),
        "tasks": ("SELECT", "INSERT", "UPDATE (killed)"),
        "trends": _READ,
    },
    "backup": {"schema_version": _READ, **dict.fromkeys(BACKED_UP, _READ), "audit": _APPEND},
    "auditor": {"schema_version": _READ, "audit": _APPEND, "ledger": _READ, "release_files": _READ},
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
