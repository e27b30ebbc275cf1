"""A database that stops answering: requests are told to come back, readiness says so, and SIGTERM still ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import httpx2
import psutil
import psycopg
import pytest

from databases import fresh_database
from searchblend.service.clock import SystemClock
from searchblend.store.errors import StoreUnavailable
from searchblend.store.service_store import open_database
from service_parts import Service, people
from service_process import REPORT, ServerProcess, running

PATIENT = 240.0


@contextlib.contextmanager
def frozen(where):
    """The whole PostgreSQL server, stopped in the middle of whatever it does: first the process that begins others."""
    with psycopg.connect(where) as connection:
        backend = connection.execute("SELECT pg_backend_pid()").fetchone()[0]
        try:
            server = psutil.Process(backend).parent()
        except psutil.NoSuchProcess:
            pytest.skip("the PostgreSQL server of SEARCHBLEND_TEST_POSTGRES runs elsewhere and cannot be stopped")
    stopped = [server]
    try:
        server.send_signal(signal.SIGSTOP)
        stopped += server.children(recursive=True)
        _signal(stopped[1:], signal.SIGSTOP)
        yield
    finally:
        _signal(stopped, signal.SIGCONT)


def _signal(processes, sign):
    """To those of them that have not ended by themselves in the meantime."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(sign)


@pytest.fixture
def where(tmp_path):
    return fresh_database("postgresql", tmp_path)


@pytest.fixture
def round_(where, tmp_path):
    """A round that takes reports, and messages for it."""
    parts = Service.start(where, tmp_path, SystemClock())
    day = 100_000
    task = parts.task(optin_seconds=day, shred_seconds=2 * day, client_seconds=day)
    parts.contribute(parts.open(task), people(400, seed=1))
    round_ = parts.head_list(task)
    yield parts, round_, parts.messages(round_, people(3, seed=2))
    parts.store.close()


def report(client, round_, message):
    path = f"/v1/tasks/{round_.task}/rounds/{round_.number}/reports"
    return client.post(path, content=message, headers={"content-type": REPORT}).status_code


def report_in_time(client, round_, message):
    """Again while the answer is to come back: so short a time may be too short for a busy database, too."""
    deadline = time.monotonic() + PATIENT
    while (status := report(client, round_, message)) == 503 and time.monotonic() < deadline:
        time.sleep(0.1)
    return status


def test_a_frozen_database_is_an_answer_in_time_and_nothing_is_lost(where, round_, tmp_path):
    parts, opened, messages = round_
    server = ServerProcess(tmp_path, where, "--database-seconds", "2")
    with running(server), httpx2.Client(base_url=server.address, timeout=PATIENT) as client:
        assert report_in_time(client, opened, messages[0]) == 200
        with frozen(where):
            assert report(client, opened, messages[1]) == 503
            assert httpx2.get(f"{server.health}/readyz", timeout=PATIENT).status_code == 503
            assert httpx2.get(f"{server.health}/healthz", timeout=PATIENT).status_code == 200
        assert report_in_time(client, opened, messages[1]) == 200
        assert parts.store.reports.n_seen(opened.key) == 2
        assert server.terminate() == 0


def wait_for_turns(server, n=20):
    """Until its main thread has woken up some times: by then a worker has looked for work, and waits for ever."""
    process = psutil.Process(server.process.pid)
    first, deadline = process.num_ctx_switches().voluntary, time.monotonic() + PATIENT
    while process.num_ctx_switches().voluntary < first + n:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("role", ["all", "curator"])
def test_sigterm_ends_a_process_whose_database_is_frozen(where, round_, tmp_path, role):
    _, opened, messages = round_
    data = tmp_path / "data"
    data.mkdir()
    server = ServerProcess(data, where, "--role", role, "--stop-seconds", "2", "--database-seconds", "3000")
    with running(server):
        if role == "all":
            with httpx2.Client(base_url=server.address, timeout=PATIENT) as client:
                assert report(client, opened, messages[0]) == 200
        with frozen(where):
            with contextlib.suppress(httpx2.TimeoutException, httpx2.ConnectError):
                if role == "all":
                    with httpx2.Client(base_url=server.address, timeout=0.5) as client:
                        report(client, opened, messages[1])
            wait_for_turns(server)
            os.kill(server.process.pid, signal.SIGTERM)
            assert server.wait(PATIENT) == 1
        assert "stopped late" in server.log.read_text()


SHORT = 4.0
"""for one statement; beside other work the quick ones keep it"""
ENDED_BY_THE_SERVER = r"\((57014|55P03)\)"
"""its codes for a statement that took too long, and for a lock that did; this side alone would have none"""


def test_a_statement_that_takes_too_long_is_ended_by_the_server(where):
    database = open_database(where, seconds=SHORT)
    with pytest.raises(StoreUnavailable, match=ENDED_BY_THE_SERVER):
        database.execute("SELECT pg_sleep(600)")
    assert database.execute("SELECT 1") == [(1,)]
    database.close()


def test_a_lock_that_another_holds_is_not_waited_for_without_end(where):
    first, second = open_database(where), open_database(where, seconds=SHORT)
    with first.transaction(), pytest.raises(StoreUnavailable, match=ENDED_BY_THE_SERVER), second.transaction():
        pass
    with second.transaction():
        pass
    first.close()
    second.close()


def test_a_transaction_that_its_process_forgot_is_ended_by_the_server(where):
    """A process that was stopped in the middle of one keeps nobody waiting, and is told that it may try again."""
    forgetful, other = open_database(where, seconds=SHORT), open_database(where, seconds=PATIENT)
    taken = False
    with pytest.raises(StoreUnavailable), forgetful.transaction():
        with other.transaction():
            taken = True
        forgetful.execute("SELECT 1")
    assert taken
    assert forgetful.execute("SELECT 1") == [(1,)]
    other.close()
    forgetful.close()
