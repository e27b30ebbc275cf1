"""SIGKILL at random and at named points, under load: nothing acknowledged is lost, nothing is counted twice."""

from __future__ import annotations

import functools
import random
import time

import numpy as np
import pytest

from databases import fresh_database, fresh_tables
from postgres_cluster import postgres_cluster
from searchblend.service.clock import SystemClock
from searchblend.service.round_model import shape_of
from searchblend.store.backup import one_moment
from searchblend.store.errors import StoreUnavailable
from searchblend.wire.report import counters_of, decode_report
from service_parts import Service, people
from service_process import Senders, ServerProcess, running

COLLECTORS = ("collector",) * 3


def open_round(where, folder):
    """A round that takes reports, made before the server starts."""
    parts = Service.start(where, folder, SystemClock())
    task = parts.task(client_seconds=100_000)
    parts.contribute(parts.open(task), people(200, seed=1))
    return parts, parts.head_list(task)


def check(parts, round_, messages, acked):
    """All in one snapshot: a session of PostgreSQL may still commit what a killed server had sent."""
    store, shape = parts.store, shape_of(round_)
    seen, law, counts = read_when_there(lambda: snapshot(store, round_.key, shape))
    assert acked <= seen
    assert seen <= {message[-16:] for message in messages}
    assert law.holds
    moved = [counters(message, shape) for message in messages if message[-16:] in seen]
    expected = np.bincount(np.array(moved, dtype=np.int64).ravel(), minlength=shape.n_counters)
    assert counts.tolist() == expected.tolist()


@functools.cache
def counters(message, shape):
    """Which counters a report moves: decoded once, not after every kill."""
    return counters_of(decode_report(message, shape)[1], shape)


def snapshot(store, key, shape):
    with one_moment(store.database):
        rows = store.database.execute("SELECT report_id FROM seen WHERE round_key = ?", (key,))
        law = store.reports.conservation(key, shape.counts_per_report, None)
        counts = store.reports.counts(key, shape.n_counters)
    return {bytes(row[0]) for row in rows}, law, counts


def read_when_there(read, seconds=240):
    """This test's own connection dies with the database as well, and is made anew."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return read()
        except StoreUnavailable:
            assert time.monotonic() < deadline, "the database did not come back"
            time.sleep(0.05)


class Fleet:
    """Servers over one database: each kill is one of them, and now and then the database itself."""

    def __init__(self, where, folder, roles, seed):
        self.servers = []
        for n, role in enumerate(roles):
            place = folder if role == "all" else folder / f"{n}-{role}"
            place.mkdir(exist_ok=True)
            self.servers.append(ServerProcess(place, where, "--role", role))
        self.random, self.crashed = random.Random(seed), 0

    def start(self):
        for server in self.servers:
            server.start()

    @property
    def addresses(self):
        return [server.address for server in self.servers]

    def kill_one(self, n, senders, n_reports):
        """Every other time at a named point, else at any moment, while so many more reports are sent."""
        server = self.random.choice(self.servers)
        if n % 2:
            server.kill()
            point = self.random.choice(["reports: before commit", "reports: after commit"])
            server.start(crash_at=f"{point}@{self.random.randint(1, 5)}")
            senders.addresses = self.addresses
            while server.is_running and not senders.done():
                senders.release(n_reports)
                wait_until(lambda: senders.caught_up() or not server.is_running)
            self.crashed += not server.is_running
        else:
            senders.release(n_reports)
            time.sleep(self.random.uniform(0.02, 0.15))
        if server.is_running:
            server.kill()
        return server

    def stop(self):
        for server in self.servers:
            if server.is_running:
                server.kill()


def wait_until(condition, seconds=240):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def kill_loop(where, folder, *, kills, n_reports, seed, roles=("all",), cluster=None, each=8):
    """Kill, restart, resend; at the end everything was acknowledged and is counted once.

    With a ``cluster`` the database dies after ``each`` kills: its postmaster alone, or all of its processes.
    """
    parts, round_ = open_round(where, folder)
    messages = parts.messages(round_, people(n_reports, seed=2))
    fleet = Fleet(where, folder, roles, seed)
    senders = Senders(f"/v1/tasks/{round_.task}/rounds/{round_.number}", messages, batch_share=0.3, seed=seed)
    try:
        fleet.start()
        senders.addresses = fleet.addresses
        senders.start()
        for n in range(kills):
            server = fleet.kill_one(n, senders, n_reports // kills // 2)
            if cluster and n % each == each - 1:
                (cluster.kill_all if n // each % 2 else cluster.kill_postmaster)()
                cluster.start()
            check(parts, round_, messages, set(senders.acked))
            server.start()
            senders.addresses = fleet.addresses
        senders.release(n_reports)
        senders.wait(240)
        assert fleet.crashed, "no named crash point was reached"
        assert senders.repeated, "no sender was ever interrupted"
        assert [server.terminate() for server in fleet.servers] == [0] * len(fleet.servers)
    finally:
        senders.stop()
        fleet.stop()
    assert senders.refused == []
    assert senders.acked == {message[-16:] for message in messages}
    check(parts, round_, messages, senders.acked)
    assert parts.store.reports.n_seen(round_.key) == n_reports
    parts.store.close()


def test_six_kills(tmp_path):
    kill_loop(fresh_database("sqlite", tmp_path), tmp_path, kills=6, n_reports=4_000, seed=1)


def test_kills_of_three_collectors_and_of_their_database(tmp_path):
    with postgres_cluster() as cluster:
        where = fresh_tables(cluster.url())
        kill_loop(where, tmp_path, kills=4, n_reports=4_000, seed=1, roles=COLLECTORS, cluster=cluster, each=2)


@pytest.mark.slow
def test_sixty_kills(tmp_path):
    where = fresh_database("sqlite", tmp_path)
    kill_loop(where, tmp_path, kills=60, n_reports=40_000, seed=time.time_ns())


@pytest.mark.slow
def test_eighty_kills_of_three_collectors_and_of_their_database(tmp_path):
    with postgres_cluster() as cluster:
        where, seed = fresh_tables(cluster.url()), time.time_ns()
        kill_loop(where, tmp_path, kills=80, n_reports=40_000, seed=seed, roles=COLLECTORS, cluster=cluster)


def test_sigterm_ends_in_order_and_keeps_what_was_acknowledged(tmp_path):
    where = fresh_database("sqlite", tmp_path)
    parts, round_ = open_round(where, tmp_path)
    messages = parts.messages(round_, people(3_000, seed=2))
    server = ServerProcess(tmp_path, where)
    senders = Senders(f"/v1/tasks/{round_.task}/rounds/{round_.number}", messages, batch_share=0)
    with running(server):
        senders.addresses = [server.address]
        senders.release(len(messages))
        senders.start()
        wait_until(lambda: senders.acked)
        assert server.terminate() == 0
        senders.stop()
    assert senders.acked
    check(parts, round_, messages, senders.acked)
    assert '"event": "stopped"' in server.log.read_text()
