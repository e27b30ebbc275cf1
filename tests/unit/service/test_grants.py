"""Each role of the service works with exactly its grants: whole rounds, no grant too many, no right too much."""

from __future__ import annotations

import contextlib
import re

import numpy as np
import psycopg
import pytest
from starlette.testclient import TestClient

from console_person import Person
from relay_parts import ask_sealed
from restricted_roles import RestrictedRoles
from searchblend.accounting.totals import BudgetCap
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.service.api.app import build_app
from searchblend.service.arrivals import ArrivalLog
from searchblend.service.caps import ask_for_cap
from searchblend.service.console.sign_in import console_table
from searchblend.service.http.connections import Connections
from searchblend.service.readiness import health_app
from searchblend.service.round_model import sealing_context, shape_of
from searchblend.service.serve import gateway_keys
from searchblend.service.services import Services
from searchblend.service.telemetry import Logbook
from searchblend.store.backup import write_backup
from searchblend.store.jobs import LeasedJob
from searchblend.store.reports import Arrivals
from searchblend.store.schema import GRANTS
from searchblend.store.states import State
from searchblend.store.tokens import ROLES, Admin
from searchblend.wire.report_batch import decode_reports
from searchblend.wire.sealed import seal_records
from service_parts import SMALL, people

pytestmark = pytest.mark.database_server
HTTP = ("collector", "intake", "gateway", "publisher", "admin")


class Played:
    """Rounds of one task, each step under the role whose it is."""

    def __init__(self, roles: RestrictedRoles, clients, tokens) -> None:
        self.roles, self.clients, self.tokens = roles, clients, tokens
        self.task = self.admin("POST", "/tasks", json={**SMALL, "repeat_seconds": 10_000}).json()["task"]

    def admin(self, method, path, role="operator", **arguments):
        headers = {"authorization": f"Bearer {self.tokens[role]}"}
        answer = self.clients["admin"].request(method, f"/admin/v1{path}", headers=headers, **arguments)
        assert answer.status_code == 200, (path, answer.text, self.roles.log.getvalue()[-2000:])
        return answer

    @property
    def current(self):
        with self.roles.parts("owner") as parts:
            return parts.store.rounds.rounds(self.task)[-1]

    @property
    def at(self):
        return f"/tasks/{self.task}/rounds/{self.current.number}"

    def reach(self, state):
        assert self.current.state is state, self.roles.log.getvalue()[-3000:]

    def open(self):
        self.admin("POST", f"/tasks/{self.task}/rounds")
        self.admin("POST", f"{self.at}/open")
        self.roles.work("curator", "publisher")
        self.reach(State.OPTIN_OPEN)

    def contribute(self, n=300):
        found, now = self.current, self.roles.clock.now()
        context, sealed = sealing_context(found), {}
        with self.roles.parts("owner") as owner:
            for i, record in enumerate(people(n, seed=1)):
                tag = context.tag_of(owner.code_of(found.task, i))
                sealed[tag] = seal_records([record], context, tag, found.public_key)
        # Whoever can write to the database can write rubbish; the curator counts it as refused.
        sealed[b"rubbish" + b"-" * 9] = b"rubbish" * 90
        with self.roles.parts("intake") as intake, intake.store.database.transaction(exclusive=False):
            for tag, message in sealed.items():
                assert intake.store.contributions.add(found.key, tag, message, now) == "taken"

    def close_by(self, role):
        """The clock closes the opt-in window, in the worker of this role."""
        self.roles.clock.time = self.current.optin_closes
        self.roles.work(role, "curator")
        self.reach(State.SHREDDED)

    def report(self, n=100):
        found = self.current
        with self.roles.parts("owner") as owner:
            messages = owner.messages(found, people(n, seed=2))
        for role, part in (("collector", messages[:-10]), ("gateway", messages[-10:])):
            with self.roles.parts(role) as collector:
                collector.count(found, part)
                batch = decode_reports(part[0], shape_of(found))
                paid = Arrivals(found.key, batch.ids, batch.counters, part[0][-32:])
                collector.store.reports.add([paid], self.roles.clock.now())
        at = f"/v1/tasks/{self.task}/rounds/{found.number}/reports"
        kind = {"content-type": "application/vnd.searchblend.report"}
        assert self.clients["collector"].post(at, content=messages[0], headers=kind).status_code == 200
        assert self.clients["collector"].post(at, content=b"x", headers=kind).status_code == 400
        assert ask_sealed(self.clients["gateway"], "POST", at, messages[0], kind).status == 200
        assert ask_sealed(self.clients["gateway"], "POST", at, b"x", kind).status == 400

    def finish_by(self, role):
        for _ in range(2):
            self.roles.clock.time = self.current.grace_until or self.current.client_closes
            self.roles.work(role)
        self.roles.work("admin", "publisher")
        self.reach(State.PUBLISHED)

    def next_by(self, role):
        """The schedule opens the next round, in the worker of this role."""
        number = self.current.number
        self.roles.clock.time += 20_000
        self.roles.work(role, "curator", "publisher")
        assert self.current.number == number + 1
        self.reach(State.OPTIN_OPEN)


def play(played: Played) -> None:
    roles = played.roles
    played.admin("POST", f"/tasks/{played.task}/enrolments", json={"count": 2})
    played.admin("POST", f"/tasks/{played.task}/adjust", json={"settings": {"expected_clients": 600}})
    played.admin("PUT", "/blocklist", "reviewer", json={"words": ["zzz"]})
    # A whole round that the curator's clock moves, and one by the admin's.
    played.open()
    exchange_the_key(played)
    played.contribute()
    intake_requests(played)
    played.close_by("curator")
    played.admin("GET", f"{played.at}/candidate", "reviewer")
    look_at_every_page(played)
    played.admin("POST", f"{played.at}/review", "reviewer")
    roles.work("publisher")
    played.report()
    played.finish_by("curator")
    played.next_by("admin")
    played.contribute()
    played.close_by("admin")
    played.admin("POST", f"{played.at}/review", "reviewer")
    roles.work("publisher")
    played.report()
    played.admin("POST", f"{played.at}/extend", json={"hours": 1})
    with roles.parts("admin") as admin:
        assert ArrivalLog(admin.store, admin.clock).record() == 1
    look_at_every_page(played)
    played.finish_by("admin")
    # Rounds that end early: by a deadline, by people, for want of budget.
    played.next_by("curator")
    roles.clock.time = played.current.shred_by
    roles.work("curator")
    played.reach(State.ABORTED)
    played.next_by("curator")
    roles.clock.time = played.current.shred_by
    roles.work("admin", "curator")
    played.reach(State.ABORTED)
    played.open()
    played.contribute()
    played.close_by("curator")
    played.admin("POST", f"{played.at}/review", "reviewer")
    with roles.parts("owner") as owner:
        owner.store.ledger.set_cap(BudgetCap(None, Budget(0.5, 1e-9)))
    roles.work("publisher")
    played.reach(State.ABORTED)
    with roles.parts("owner") as owner:
        owner.store.ledger.set_cap(BudgetCap(None, Budget(1000, 0.5)))
    with roles.parts("admin") as admin:
        ask_for_cap(admin.store, BudgetCap(None, Budget(900, 0.5)), actor="operator", now=admin.clock.now())
    roles.work("curator")
    with roles.parts("owner") as owner:
        assert owner.store.ledger.book().cap == BudgetCap(None, Budget(900, 0.5))
    played.open()
    played.contribute()
    played.close_by("curator")
    played.admin("POST", f"{played.at}/reject", "reviewer", json={"reason": "other"})
    played.open()
    played.contribute()
    played.close_by("curator")
    played.admin("POST", f"{played.at}/review", "reviewer")
    roles.work("publisher")
    close_with_counts_of_files(played)
    for path in ("", f"/{played.task}", f"/{played.task}/rounds"):
        played.admin("GET", f"/tasks{path}")
    for path in (played.at, "/ledger"):
        played.admin("GET", path)
    played.admin("GET", "/audit", "auditor")
    read_public(played)
    look_at_every_page(played)
    played.admin("POST", f"/tasks/{played.task}/kill")
    roles.work("publisher")
    for role in ("curator", "publisher", "admin"):
        with roles.parts(role) as worker:  # as after a failed attempt
            worker.store.jobs.give_back(LeasedJob(1, "shred", "token", 1), roles.clock.now())
    with roles.parts("backup") as backup:
        backup.store.audit.append("os:t", "backup asked for", roles.clock.now(), {})
        write_backup(backup.store.database, roles.folder / "backup.db")
    with roles.parts("admin") as admin:
        for role in ("viewer", "auditor"):
            ann = Admin("sso:ann", role)
            secret = admin.store.sessions.open_sso("https://i", "1", ann, now=roles.clock.now(), seconds=60)
            assert admin.store.sessions.admin(secret, roles.clock.now()) == ann
    with roles.parts("auditor") as auditor:
        auditor.lifecycle.export_audit("jsonl", actor="os:t")
        auditor.store.audit.verify()
        auditor.store.ledger.check()
    for _ in range(3):  # keys that come and go
        roles.work("gateway", "publisher")
        roles.clock.time += 40 * 86_400


def exchange_the_key(played: Played) -> None:
    """By the owner of the tables: the publisher refuses it and says so, until it is the curator's own again."""
    found = played.current
    with played.roles.parts("owner") as owner:
        for key in (b"x" * 32, found.public_key):
            owner.store.database.execute("UPDATE rounds SET public_key = ? WHERE round_key = ?", (key, found.key))
            played.roles.work("publisher")


def intake_requests(played: Played) -> None:
    found = played.current
    at = f"/v1/tasks/{played.task}/rounds/{found.number}/contributions"
    code, other = played.admin("POST", f"/tasks/{played.task}/enrolments", json={"count": 2}).json()["codes"]
    kind = {"content-type": "application/vnd.searchblend.sealed", "authorization": f"Bearer {code}"}
    intake = played.clients["intake"]
    assert intake.post(at, content=b"x", headers=kind).status_code == 400
    assert intake.delete(at, headers=kind).status_code == 204
    assert intake.delete(at, headers={**kind, "authorization": "Bearer sbe_wrong-wrong-wrong"}).status_code == 401
    gateway, fields = played.clients["gateway"], {**kind, "authorization": f"Bearer {other}"}
    context = sealing_context(found)
    sealed = seal_records([Record("x", "http://x.example")], context, context.tag_of(other), found.public_key)
    assert ask_sealed(gateway, "POST", at, b"x", fields).status == 400
    assert ask_sealed(gateway, "POST", at, sealed, fields).status == 200
    assert ask_sealed(gateway, "DELETE", at, b"", fields).status == 204


def close_with_counts_of_files(played: Played) -> None:
    """What `round load-counts` does, on a database user of the admin role."""
    found = played.current
    with played.roles.parts("admin") as admin:
        graced = admin.lifecycle.close_clients(found, actor="os:t")
        admin.store.reports.load(found.key, np.ones(2, dtype=np.int64))
        admin.lifecycle.abort(graced, actor="os:t", reason="operator")


def read_public(played: Played) -> None:
    publisher = played.clients["publisher"]
    for path in (f"/v1/tasks/{played.task}/manifest", f"/v1/tasks/{played.task}/trends", f"/trends/{played.task}"):
        assert publisher.get(path).status_code == 200
    files = publisher.get(f"/v1/tasks/{played.task}/rounds/1/files").json()["files"]
    assert publisher.get(f"/v1/artifacts/{files['result.json']}").status_code == 200
    manifest, result = f"/v1/tasks/{played.task}/manifest", f"/v1/artifacts/{files['result.json']}"
    for path in (manifest, result, "/v1/log/checkpoint", "/v1/log/tile/0/000.p/1"):
        assert ask_sealed(played.clients["gateway"], "GET", path).status == 200
    for role in HTTP:
        assert played.health[role].get("/readyz").status_code == 200, role
        assert played.health[role].get("/metrics").status_code == 200, role


def look_at_every_page(played: Played) -> None:
    """Whoever may, sees every page of the console."""

    class Admin:
        client, tokens = played.clients["admin"], played.tokens

    Admin.client.get(f"/trends/{played.task}")
    for role in ("operator", "reviewer", "auditor"):
        person = Person(Admin, role)
        for row in console_table(played.services):
            if row.method == "GET" and role in row.roles:
                path = row.path.replace("{task}", played.task).replace("{round}", str(played.current.number))
                assert person.get(path).status_code < 500, path
        assert person.post("/console/sign-out").status_code == 303


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("roles")
    roles = RestrictedRoles(folder)
    with roles.parts("owner") as owner:
        tokens = {role: owner.store.tokens.add_admin(role, role, actor="t", now=1) for role in ROLES}
    try:
        with contextlib.ExitStack() as stack, roles.recording():
            clients, health = {}, {}
            for role in HTTP:
                services = Services(roles.urls[role], clock=roles.clock, logbook=Logbook(roles.log))
                if role == "gateway":
                    services.gateway_keys = gateway_keys(roles.settings(role))
                    services.gateway_keys.make_first(roles.clock.now())
                clients[role] = stack.enter_context(TestClient(build_app(services, role)))
                with_rounds = role == "admin"
                watched = health_app(services, Connections(10, 10), with_rounds=with_rounds)
                health[role] = stack.enter_context(TestClient(watched))
            found = Played(roles, clients, tokens)
            found.services, found.health = services, health
            play(found)
        yield found
    finally:
        roles.drop()


def test_whole_rounds_with_a_database_user_for_each_role(played):
    assert "InsufficientPrivilege" not in played.roles.log.getvalue()
    with played.roles.parts("owner") as owner:
        states = [round_.state for round_ in owner.store.rounds.rounds(played.task)]
        assert states.count(State.PUBLISHED) == 2
        owner.store.audit.verify()


def single_privileges():
    """Every grant by itself, columns apart."""
    for role, tables in GRANTS.items():
        for table, privileges in tables.items():
            for privilege in privileges:
                verb, _, columns = privilege.partition(" ")
                for column in re.findall(r"\w+", columns) or [""]:
                    yield role, table, f"{verb} ({column})" if column else verb


def test_every_grant_is_needed(played):
    """Without it one of the statements that the role has sent is refused."""
    unneeded = []
    with psycopg.connect(played.roles.owner, autocommit=True) as connection:
        for role, table, privilege in single_privileges():
            user, statements = played.roles.users[role], played.roles.statements[role]
            with connection.transaction(force_rollback=True):
                connection.execute(f"REVOKE {privilege} ON {table} FROM {user}")
                connection.execute(f"SET LOCAL ROLE {user}")
                if not any(is_refused(connection, text, statements[text]) for text in statements if table in text):
                    unneeded.append(f"{role}: {privilege} ON {table}")
    assert not unneeded, "\n".join(unneeded)


def is_refused(connection, statement, values) -> bool:
    try:
        with connection.transaction(force_rollback=True):
            connection.execute("EXPLAIN " + statement.replace("?", "%s"), values or None)
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


READ_SEALED = "SELECT sealed FROM contributions"
SWAP_KEY = "UPDATE rounds SET public_key = '\\x00'"
FORGED_MANIFEST = "INSERT INTO manifests (task, sequence, expires, content) VALUES ('t', 1, 1, '')"
NEW_TOKEN = "INSERT INTO admin_tokens (token_hash, name, role, created) VALUES ('h', 'n', 'reviewer', 1)"
FORGED_DEBIT = "INSERT INTO ledger (position, kind, body, previous, hash) VALUES (1, 'k', 'b', 'p', 'h')"
PUBLISHED_FILE = "INSERT INTO artifacts (sha256, media_type, content) VALUES ('s', 'm', '')"
MUST_NOT = [
    *((role, READ_SEALED) for role in ("collector", "publisher", "admin", "backup", "auditor")),
    *((role, SWAP_KEY) for role in GRANTS if role != "curator"),
    *((role, FORGED_MANIFEST) for role in GRANTS if role != "publisher"),
    *((role, NEW_TOKEN) for role in GRANTS),
    *((role, FORGED_DEBIT) for role in GRANTS if role not in ("curator", "publisher")),
    *((role, PUBLISHED_FILE) for role in GRANTS if role != "publisher"),
    *((role, f"UPDATE {table} SET {column} = ''") for role in GRANTS for table, column in (
        ("ledger", "body"), ("audit", "body"), ("release_files", "name"), ("manifests", "content"),
        ("artifacts", "content"), ("trends", "query"), ("tasks", "settings"), ("rounds", "settings"),
        ("log_entries", "content"),
    )),
    *((role, f"DELETE FROM {table}") for role in GRANTS for table in (
        "ledger", "audit", "release_files", "manifests", "artifacts", "trends", "tasks", "rounds", "admin_tokens",
        "log_entries", "log_checkpoint",
    )),
    *((role, f"TRUNCATE {table}") for role in GRANTS for table in ("ledger", "audit", "contributions")),
    *((role, statement) for role in GRANTS for statement in (
        "CREATE TABLE x (y INTEGER)", "ALTER TABLE audit DISABLE TRIGGER USER", "DROP TABLE tasks",
        "UPDATE schema_version SET version = 0",
    )),
    *((role, "SELECT content FROM documents") for role in ("collector", "intake", "gateway", "auditor")),
    *((role, statement) for role in GRANTS if role != "publisher" for statement in (
        "INSERT INTO log_entries (position, content) VALUES (9, '')", "UPDATE log_checkpoint SET content = ''",
    )),
    ("collector", "SELECT code_hash FROM enrolments"),
    ("collector", "UPDATE rounds SET changed = 1"),
    ("intake", "UPDATE rounds SET changed = 1"),
    ("collector", "INSERT INTO audit (position, body, previous, hash) VALUES (1, 'b', 'p', 'h')"),
]  # fmt: skip


def test_no_role_may_do_what_is_not_its_business(played):
    allowed = []
    with psycopg.connect(played.roles.owner, autocommit=True) as connection:
        for role, statement in MUST_NOT:
            with connection.transaction(force_rollback=True):
                connection.execute(f"SET LOCAL ROLE {played.roles.users[role]}")
                try:
                    with connection.transaction(force_rollback=True):
                        connection.execute(statement)
                except psycopg.errors.InsufficientPrivilege:
                    continue
                allowed.append(f"{role}: {statement}")
    assert not allowed, "\n".join(allowed)
