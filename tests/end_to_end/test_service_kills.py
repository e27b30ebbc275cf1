"""SIGKILL at random and at named points, under load: nothing acknowledged is lost, nothing is counted twice."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from databases import DATABASES, fresh_database
from searchblend.server.clock import SystemClock
from searchblend.server.round_model import shape_of
from searchblend.store.backup import one_moment
from searchblend.wire.report import counters_of, decode_report
from service_parts import Service, people
from service_process import Senders, ServerProcess, running


def open_round(where, folder):
    """A round that takes reports, made before the server starts."""
    parts = Service.start(where, folder, SystemClock())
    task = parts.task(client_seconds=100_000)
    parts.contribute(parts.open(task), people(200, seed=1))
    return parts, parts.head_list(task)


def check(parts, found, messages, acked):
    """All in one snapshot: a session of PostgreSQL may still commit what a killed server had sent."""
    store, shape = parts.store, shape_of(found)
    with one_moment(store.database):
        rows = store.database.execute("SELECT report_id FROM seen WHERE round_key = ?", (found.key,))
        law = store.reports.conservation(found.key, shape.counts_per_report, None)
        counts = store.reports.counts(found.key, shape.n_counters)
    seen = {bytes(row[0]) for row in rows}
    assert acked <= seen
    assert seen <= {message[-16:] for message in messages}
    assert law.holds
    expected = np.zeros(shape.n_counters, dtype=np.int64)
    for message in messages:
        if message[-16:] in seen:
            np.add.at(expected, counters_of(decode_report(message, shape)[1], shape), 1)
    assert counts.tolist() == expected.tolist()


def kill_loop(kind, folder, *, kills, n_reports, seed):
    """Kill, restart, resend; at the end everything was acknowledged and is counted once."""
    where = fresh_database(kind, folder)
    parts, found = open_round(where, folder)
    messages = parts.messages(found, people(n_reports, seed=2))
    generator, crashed = random.Random(seed), 0
    server = ServerProcess(folder, where)
    senders = Senders(f"/v1/tasks/{found.task}/rounds/{found.number}", messages, batch_share=0.3, seed=seed)
    senders.address = server.start()
    senders.start()
    for n in range(kills):
        if n % 2 and server.is_running:
            server.kill()
            senders.release(n_reports // kills)
            point = generator.choice(["reports: before commit", "reports: after commit"])
            senders.address = server.start(crash_at=f"{point}@{generator.randint(1, 5)}")
            deadline = time.monotonic() + 60
            while server.is_running and not senders.idle() and time.monotonic() < deadline:
                time.sleep(0.01)
            crashed += not server.is_running
            if server.is_running:
                server.kill()
        else:
            senders.release(n_reports // kills)
            time.sleep(generator.uniform(0.02, 0.15))
            server.kill()
        check(parts, found, messages, set(senders.acked))
        senders.address = server.start()
    senders.release(n_reports)
    senders.wait(240)
    assert crashed, "no named crash point was reached"
    assert senders.repeated, "no sender was ever interrupted"
    assert server.terminate() == 0
    assert senders.refused == []
    assert senders.acked == {message[-16:] for message in messages}
    check(parts, found, messages, senders.acked)
    assert parts.store.reports.n_seen(found.key) == n_reports
    parts.store.close()


@pytest.mark.parametrize("kind", DATABASES)
def test_ten_kills(kind, tmp_path):
    kill_loop(kind, tmp_path, kills=10, n_reports=6_000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DATABASES)
def test_a_hundred_kills(kind, tmp_path):
    kill_loop(kind, tmp_path, kills=100, n_reports=40_000, seed=time.time_ns())


def test_sigterm_ends_in_order_and_keeps_what_was_acknowledged(tmp_path):
    where = fresh_database("sqlite", tmp_path)
    parts, found = open_round(where, tmp_path)
    messages = parts.messages(found, people(3_000, seed=2))
    server = ServerProcess(tmp_path, where)
    senders = Senders(f"/v1/tasks/{found.task}/rounds/{found.number}", messages, batch_share=0)
    with running(server):
        senders.address = server.address
        senders.release(len(messages))
        senders.start()
        deadline = time.monotonic() + 120
        while not senders.acked and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.terminate() == 0
        senders.stop()
    assert senders.acked
    check(parts, found, messages, senders.acked)
    assert '"event": "stopped"' in server.log.read_text()
