"""Restricted roles: each process logs in to PostgreSQL with the documented rights alone. A round needs no more, and an
intruder who has a process's password reaches nothing that is another's."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import psycopg
import pytest

from attack_fleet import Fleet
from attack_service import COMMON, SECONDS
from databases import fresh_schema

HONEST = COMMON * 20
ROLES = ("collector", "intake", "gateway", "curator", "publisher", "admin")
NOBODY = (
    "CREATE TABLE intruder (a integer)",
    "CREATE FUNCTION intruder() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "ALTER TABLE rounds ADD COLUMN intruder integer",
    "ALTER TABLE audit DISABLE TRIGGER ALL",
    "DROP TRIGGER audit_no_change ON audit",
    "DROP TABLE seen",
    "TRUNCATE audit",
    "TRUNCATE contributions",
    "UPDATE audit SET body = 'x'",
    "DELETE FROM audit",
    "UPDATE ledger SET body = 'x'",
    "DELETE FROM ledger",
    "UPDATE log_entries SET content = '\\x00'",
    "DELETE FROM log_entries",
    "UPDATE schema_version SET version = 1",
    "UPDATE tasks SET settings = 'x'",
    "UPDATE rounds SET settings = 'x'",
    "UPDATE admin_tokens SET revoked = 0",
    "INSERT INTO admin_tokens (token_hash, name, role, created) VALUES ('a', 'a', 'operator', 1)",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "SELECT pg_read_file('postgresql.conf')",
    "SET ROLE postgres",
)
"""for no process at all"""
SWAP = "UPDATE rounds SET public_key = '\\x00'"
READ_SEALED = "SELECT sealed FROM contributions"
MANIFEST = "INSERT INTO manifests (task, sequence, expires, content) VALUES ('a', 1, 1, '\\x00')"
CANDIDATES = "SELECT content FROM documents"
TOKENS = "SELECT token_hash FROM admin_tokens"
ENROLMENT = "INSERT INTO enrolments (task, code_hash, created) VALUES ('a', 'a', 1)"
RECORD = "INSERT INTO contributions (round_key, tag, sealed) VALUES (1, '\\x00', '\\x00')"
DEBIT = "INSERT INTO ledger (position, kind, release_id, body, previous, hash) VALUES (9, 'x', 'x', 'x', 'x', 'x')"
COUNT = "UPDATE counts SET n = n + 1000"
JOB = "INSERT INTO jobs (round_key, kind, due, lease_until, attempts) VALUES (1, 'open', 1, 0, 0)"
LOG = "INSERT INTO log_entries (position, content) VALUES (9, '\\x00')"
CHECKPOINT = "UPDATE log_checkpoint SET content = '\\x00'"
ARTIFACT = "INSERT INTO artifacts VALUES ('a', 'a', '\\x00')"
FORBIDDEN = {
    "collector": (SWAP, READ_SEALED, MANIFEST, CANDIDATES, TOKENS, ENROLMENT, RECORD, DEBIT, JOB, "DELETE FROM seen"),
    "intake": (SWAP, MANIFEST, CANDIDATES, TOKENS, ENROLMENT, DEBIT, JOB, COUNT, "DELETE FROM seen"),
    "gateway": (SWAP, MANIFEST, CANDIDATES, TOKENS, ENROLMENT, DEBIT, JOB, LOG, CHECKPOINT, "DELETE FROM seen"),
    "curator": (MANIFEST, LOG, CHECKPOINT, TOKENS, ENROLMENT, RECORD, COUNT, ARTIFACT),
    "publisher": (SWAP, READ_SEALED, TOKENS, ENROLMENT, RECORD, COUNT),
    "admin": (SWAP, READ_SEALED, LOG, CHECKPOINT, MANIFEST, RECORD, DEBIT, ARTIFACT),
}


def command(*arguments):
    ended = subprocess.run(
        [sys.executable, "-m", "searchblend.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def cluster():
    from postgres_cluster import postgres_cluster

    with postgres_cluster() as made:
        yield made


@pytest.fixture(scope="module")
def users(cluster):
    """A fresh schema with tables that its owner made, and a database user for each role, as the documentation says."""
    where = fresh_schema(cluster.url())
    schema = where.rpartition("%3D")[2]
    command("database", "migrate", "--database", where)
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        for role in ROLES:
            connection.execute(f"CREATE ROLE sb_{role} LOGIN")
            connection.execute(command("database", "grants", role, "--user", f"sb_{role}", "--schema", schema))
    return {"owner": where, **{role: cluster.url(user=f"sb_{role}", schema=schema) for role in ROLES}}


def test_a_whole_round_needs_the_documented_rights_alone(users, tmp_path):
    with contextlib.ExitStack() as stack:
        fleet = Fleet(stack, tmp_path, users["owner"], users)
        service = fleet.service(collectors=3)
        fleet.curator()
        task = service.task()
        manifest = service.open_round(task)
        codes = service.codes(task, len(HONEST) + 1)
        service.contribute(manifest, HONEST, codes[:-1])
        withdrawn = service.seal(manifest, HONEST[:1], codes[-1])
        assert service.send_sealed(manifest, withdrawn, codes[-1]).status_code == 200
        assert service.send_sealed(manifest, b"", codes[-1], method="DELETE").status_code == 204
        _, drawn = service.draw(task)
        assert drawn["records"] == len(HONEST)
        assert "result.json" in service.finish(task)
        second = service.task()
        service.open_round(second)
        service.act(second, "abort")
        service.done("POST", f"/tasks/{second}/kill")
        for log in tmp_path.glob("*.log"):
            assert "InsufficientPrivilege" not in log.read_text(), log.name


@pytest.mark.parametrize("role", ROLES)
def test_the_password_of_a_process_opens_nothing_of_anothers(users, role):
    allowed = []
    for statement in (*NOBODY, *FORBIDDEN[role]):
        with psycopg.connect(users[role]) as connection:
            try:
                connection.execute(statement)
            except psycopg.Error as error:
                if not isinstance(error, psycopg.errors.InsufficientPrivilege):
                    allowed.append(f"{statement}: {type(error).__name__}")
            else:
                allowed.append(statement)
            connection.rollback()
    assert allowed == []
