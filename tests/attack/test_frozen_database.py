"""Frozen database: it takes connections and answers nothing. Health answers, SIGTERM ends, and work goes on after."""

from __future__ import annotations

import contextlib
import http.client
import sqlite3
import threading
import time
from urllib.parse import urlsplit

import pytest

from attack_service import COMMON, SECONDS, attacked, wait_for
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


class Waiting:
    """Reports that are sent by threads of their own, and what is answered to them."""

    def __init__(self, service, manifest, messages):
        parts = urlsplit(service.server.address)
        self._place = parts.hostname, parts.port
        self._path = f"/v1/tasks/{manifest['task']}/rounds/{manifest['round']}/reports"
        self._sent = threading.Semaphore(0)
        self.answers = []
        self._threads = [threading.Thread(target=self._send, args=(message,), daemon=True) for message in messages]
        for thread in self._threads:
            thread.start()
        assert all(self._sent.acquire(timeout=SECONDS) for _ in messages), "a report was not even sent"

    def _send(self, message):
        connection = http.client.HTTPConnection(*self._place, timeout=SECONDS)
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
            connection.request("POST", self._path, message, {"content-type": REPORT})
            self._sent.release()
            self.answers.append(connection.getresponse().status)

    def join(self):
        for thread in self._threads:
            thread.join(SECONDS)
        assert not any(thread.is_alive() for thread in self._threads), "somebody still waits"
        return self.answers


def test_sigterm_ends_a_server_whose_database_is_frozen(stage):
    service, frozen = stage
    task, manifest = open_to_clients(service)
    messages = service.messages(manifest, HONEST[:8])
    with frozen():
        senders = Waiting(service, manifest, messages)
        started = time.monotonic()
        service.server.process.terminate()
        service.server.process.wait(STOPS)
        assert time.monotonic() - started < STOPS
    senders.join()
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
    messages = service.messages(manifest, HONEST[:1])
    service.act(other, "close-opt-in")
    with frozen():  # until somebody who had to wait was answered, one way or the other
        Waiting(service, manifest, messages).join()
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
    """Some have been answered when it is back, others still wait."""
    service, frozen = stage
    task, manifest = open_to_clients(service)
    messages = service.messages(manifest, HONEST[:12])
    with frozen():
        first = Waiting(service, manifest, messages[:6])
        first.join()
        others = Waiting(service, manifest, messages[6:])
    assert {*first.answers, *others.join()} <= {200, 503}
    for message in messages:  # the same bytes again, as devices do
        wait_for(lambda message=message: service.send_report(manifest, message).status_code == 200, "an answer")
    counted = service.done("GET", f"/tasks/{task}/rounds/{manifest['round']}")
    assert counted["reports_counted"] == len(messages)
    assert counted["conservation"]["holds"]
