"""Poisoned rows: one damaged row is its own task's trouble. The other tasks go on, and no key outlives its deadline."""

from __future__ import annotations

import contextlib
import json
import time

import pytest

from attack_service import COMMON, attacked, wait_for
from databases import DATABASES, fresh_database
from service_process import ServerProcess, running

HONEST = COMMON * 20
DAMAGE = {
    "no JSON": '{"name": "bro',
    "another kind": "[1, 2]",
    "a number": "17",
    "unknown fields": '{"name": "a", "from a later version": 1}',
    "wrong types": '{"name": 7, "epsilon": "much"}',
    "no number": '{"name": "a", "epsilon": NaN}',
    "huge number": '{"name": "a", "epsilon": ' + "9" * 5000 + "}",
    "an infinite number": '{"name": "a", "epsilon": 1e999}',
    "half a character": '{"name": "\\ud800"}',
    "deep": "[" * 100_000,
    "empty": "",
}


def keys_of(service, task):
    return list((service.folder / "keys").glob(f"{task}-*.key"))


@pytest.mark.parametrize("table", ["tasks", "rounds"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_settings_stop_no_other_task(service, table, damage):
    victim, other = service.task(), service.task()
    service.open_round(victim)
    service.sql(f"UPDATE {table} SET settings = ? WHERE task = ?", DAMAGE[damage], victim)
    _, drawn = service.play_optin(other, HONEST)
    assert drawn["records"] == len(HONEST)
    assert keys_of(service, other) == []
    assert service.raw_manifest(other).status_code == 200


@pytest.mark.parametrize("state", ["NONSENSE", "", "optin_open"])
def test_a_round_in_an_unknown_state_stops_no_other_task(service, state):
    victim, other = service.task(), service.task()
    manifest, codes = service.open_round(victim), service.codes(victim, 2)
    service.contribute(manifest, HONEST[:1], codes[:1])
    service.sql("UPDATE rounds SET state = ? WHERE task = ?", state, victim)
    late = service.seal(manifest, HONEST[:1], codes[1])
    assert 400 <= service.send_sealed(manifest, late, codes[1]).status_code < 500
    files = whole_round(service, other)
    assert "result.json" in files
    assert service.raw_manifest(victim).status_code < 500


PAGES = ("", "/new-task", "/review", "/trends", "/search", "/budget", "/planner", "/refusals")


def test_every_page_answers_beside_damaged_rows(own_service):
    """What is said about the damaged task may be an error; the pages that list others too must answer."""
    service = own_service
    good = service.task()
    service.play_optin(good, HONEST)
    for damage in DAMAGE.values():
        for table in ("tasks", "rounds"):
            victim = service.task()
            service.open_round(victim)
            service.sql(f"UPDATE {table} SET settings = ? WHERE task = ?", damage, victim)
    victim = service.task()
    service.open_round(victim)
    service.sql("UPDATE rounds SET state = 'NONSENSE' WHERE task = ?", victim)
    failed = []
    for path in ("/tasks", "/ledger", f"/tasks/{good}", f"/tasks/{good}/rounds", f"/tasks/{good}/rounds/1"):
        failed += [path] * (service.admin("GET", path).status_code != 200)
    for path in ("/metrics", "/healthz"):
        failed += [path] * (service.health(path).status_code != 200)
    with contextlib.closing(service.console()) as browser:
        for page in (*(f"/console{page}" for page in PAGES), f"/console/tasks/{good}", f"/trends/{good}"):
            failed += [page] * (browser.get(page).status_code != 200)
    assert failed == []
    code, text = service.doctor()
    assert code == 1
    assert "Traceback" not in text


def whole_round(service, task):
    service.play_optin(task, HONEST)
    return service.finish(task)


@pytest.mark.parametrize("name", ["candidate", "reviewed", "opened_by"])
def test_damaged_documents_stop_no_other_task(service, name):
    victim, other = service.task(), service.task()
    service.play_optin(victim, HONEST)
    if name == "reviewed":
        service.act(victim, "review", "reviewer")
        service.wait_state(victim, "CLIENT_OPEN")
    service.sql(
        "UPDATE documents SET content = ? WHERE round_key = ? AND name = ?", b"\xff{", key(service, victim), name
    )
    assert "result.json" in whole_round(service, other)


def key(service, task):
    return service.sql("SELECT round_key FROM rounds WHERE task = ?", task)[0][0]


def test_damaged_shape_and_manifest_stop_no_other_task(service):
    victim, other = service.task(), service.task()
    service.play_optin(victim, HONEST)
    service.act(victim, "review", "reviewer")
    service.wait_state(victim, "CLIENT_OPEN")
    service.sql("UPDATE rounds SET shape = ? WHERE task = ?", '{"task": 1}', victim)
    service.sql("UPDATE manifests SET content = ? WHERE task = ?", b"\0", victim)
    assert "result.json" in whole_round(service, other)


def test_jobs_of_no_round_and_of_no_kind_stop_no_other_job(service):
    for round_key, kind in (
        (10**9, "head-list"),
        (10**9, "open"),
        (10**9, "shred"),
        (10**9, "nonsense"),
        (-1, "publish"),
    ):
        service.sql(
            "INSERT INTO jobs (round_key, kind, due, lease_until, attempts) VALUES (?, ?, 0, 0, 0)", round_key, kind
        )
    assert "result.json" in whole_round(service, service.task())


@pytest.mark.parametrize("damage", ["settings", "state", "task settings"])
def test_a_damaged_round_loses_its_key_at_the_deadline(own_service, damage):
    """Its raw records go as well, or readiness fails until somebody has seen to it."""
    service = own_service
    task = service.task()
    manifest = service.open_round(task)
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    assert keys_of(service, task)
    statement = {
        "settings": "UPDATE rounds SET settings = 'x' WHERE task = ?",
        "state": "UPDATE rounds SET state = 'NONSENSE' WHERE task = ?",
        "task settings": "UPDATE tasks SET settings = 'x' WHERE task = ?",
    }[damage]
    service.sql(statement, task)
    service.sql("UPDATE rounds SET shred_by = ? WHERE task = ?", int(time.time()) - 5, task)
    wait_for(lambda: not keys_of(service, task), "the end of the key")

    def is_told():
        left = service.sql("SELECT COUNT(*) FROM contributions WHERE round_key = ?", key(service, task))[0][0]
        return left == 0 or service.health("/readyz").status_code == 503

    wait_for(is_told, "the end of the records, or a failing readiness")


def test_a_key_outlives_no_deadline_beside_a_poisoned_task(own_service):
    service = own_service
    poisoned, other = service.task(), service.task()
    service.open_round(poisoned)
    manifest = service.open_round(other)
    service.contribute(manifest, HONEST, service.codes(other, len(HONEST)))
    service.sql("UPDATE tasks SET settings = 'x' WHERE task = ?", poisoned)
    service.sql("UPDATE rounds SET settings = 'x', state = 'NONSENSE' WHERE task = ?", poisoned)
    service.sql("UPDATE rounds SET shred_by = ? WHERE task = ?", int(time.time()) - 5, other)
    wait_for(lambda: not keys_of(service, other), "the end of the key")
    wait_for(lambda: service.round(other)["state"] == "ABORTED", "the end of the round")
    assert service.sql("SELECT COUNT(*) FROM contributions WHERE round_key = ?", key(service, other))[0][0] == 0


@pytest.mark.parametrize("kind", DATABASES)
def test_readiness_fails_when_nobody_shreds(tmp_path, kind):
    """The curator is gone; the process that can still tell says so."""
    where = fresh_database(kind, tmp_path)
    with attacked(tmp_path / "all", where) if kind == "postgresql" else attacked(tmp_path, where) as service:
        task = service.task()
        service.open_round(task)
        service.stop()
        service.sql("UPDATE rounds SET shred_by = ? WHERE task = ?", int(time.time()) - 5, task)
        admin = tmp_path if kind == "sqlite" else tmp_path / "admin"
        admin.mkdir(exist_ok=True)
        service.server = ServerProcess(admin, where, "--role", "admin", is_patient=False)
        with running(service.server):
            wait_for(lambda: service.health("/readyz").status_code == 503, "a failing readiness")
            code, text = service.doctor()
            assert code == 1, text
            assert json.dumps("shredding")[1:-1] in text
