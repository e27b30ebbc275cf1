"""Frozen database: it takes connections and answers nothing. Health answers, SIGTERM ends, and work goes on after."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time

import httpx2
import pytest

from attack_service import COMMON, attacked, wait_for
from databases import fresh_database, fresh_tables
from service_process import REPORT

HONEST = COMMON * 20
STOPS = 75.0
"""seconds after SIGTERM, on a busy machine"""
ANSWERS = 40.0
"""seconds for readiness to say that the database does not answer"""


@contextlib.contextmanager
def locked(path):
    """Somebody else's transaction that does not end: SQLite's way to freeze."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        connection.close()


@pytest.fixture(params=["sqlite", "postgresql", "backends"])
def stage(request, tmp_path):
    """A service, and what freezes its database: as a whole, or the connections alone that it has."""
    if request.param == "sqlite":
        where = fresh_database("sqlite", tmp_path)
        with attacked(tmp_path, where) as service:
            yield service, lambda: locked(where)
    else:
        cluster = request.getfixturevalue("cluster")
        with attacked(tmp_path, fresh_tables(cluster.url())) as service:
            only_backends = request.param == "backends"
            yield service, lambda: cluster.frozen(only_backends=only_backends)


def open_to_clients(service):
    task = service.task()
    service.play_optin(task, HONEST)
    service.act(task, "review", "reviewer")
    service.wait_state(task, "CLIENT_OPEN")
    return task, service.manifest(task, "client")


def test_sigterm_ends_a_server_whose_database_is_frozen(stage):
    service, frozen = stage
    task, manifest = open_to_clients(service)
    with frozen():
        sender = threading.Thread(target=lambda: silently(service.report, manifest, HONEST[:8]), daemon=True)
        sender.start()
        time.sleep(2)
        started = time.monotonic()
        service.server.process.terminate()
        service.server.process.wait(STOPS)
        assert time.monotonic() - started < STOPS
    sender.join(60)
    service.stop()
    service.start()
    service.report(manifest, HONEST)
    law = service.done("GET", f"/tasks/{task}/rounds/{manifest['round']}")["conservation"]
    assert law["holds"]


@pytest.mark.parametrize("stage", ["sqlite", "postgresql"], indirect=True)
def test_health_answers_and_readiness_fails_while_the_database_is_frozen(stage):
    service, frozen = stage
    is_postgres = service.where.startswith("postgresql")
    open_to_clients(service)
    with frozen():
        time.sleep(1)
        assert service.health("/healthz").status_code == 200
        if is_postgres:  # readers of SQLite need no lock: it is ready
            assert service.health("/readyz", seconds=ANSWERS).status_code == 503
        assert service.health("/healthz").status_code == 200
    wait_for(lambda: service.health("/readyz", seconds=ANSWERS).status_code == 200, "readiness")


def test_work_goes_on_by_itself_when_the_database_is_back(stage):
    """Nothing that was acknowledged is lost, nothing is counted twice, and no job waits for the end of its lease."""
    service, frozen = stage
    task, manifest = open_to_clients(service)
    other = service.task()
    optin = service.open_round(other)
    service.contribute(optin, HONEST, service.codes(other, len(HONEST)))
    service.act(other, "close-opt-in")
    with frozen():
        time.sleep(20)
    started = time.monotonic()
    service.wait_state(other, "SHREDDED")
    assert time.monotonic() - started < 60
    service.report(manifest, HONEST)
    service.act(task, "close-clients")
    service.act(task, "end-grace")
    service.wait_state(task, "PUBLISHED")
    final = service.done("GET", f"/tasks/{task}/rounds/{manifest['round']}")
    assert final["conservation"]["holds"]
    assert final["reports_counted"] >= len(HONEST)


def test_reports_that_wait_for_a_frozen_database_are_refused_or_counted_once(stage):
    service, frozen = stage
    task, manifest = open_to_clients(service)
    answers = []
    messages = service.messages(manifest, HONEST[:12])

    def send(message):
        path = f"/v1/tasks/{manifest['task']}/rounds/{manifest['round']}/reports"
        with contextlib.suppress(httpx2.HTTPError), httpx2.Client(base_url=service.server.address, timeout=60) as http:
            answers.append(http.post(path, content=message, headers={"content-type": REPORT}).status_code)

    threads = [threading.Thread(target=send, args=(message,)) for message in messages]
    with frozen():
        for thread in threads:
            thread.start()
        time.sleep(15)
    for thread in threads:
        thread.join(90)
    assert set(answers) <= {200, 503}
    for message in messages:  # the same bytes again, as devices do
        wait_for(lambda message=message: service.send_report(manifest, message).status_code == 200, "an answer")
    counted = service.done("GET", f"/tasks/{task}/rounds/{manifest['round']}")
    assert counted["reports_counted"] == len(messages)
    assert counted["conservation"]["holds"]


def silently(call, *arguments):
    with contextlib.suppress(Exception):
        call(*arguments)
