"""A worker that dies at any named point: a restart finishes the round, noise is drawn and paid for once."""

from __future__ import annotations

import json
import os
import signal
import warnings

import pytest

from databases import DATABASES, fresh_database
from searchblend.service.lifecycle import CANDIDATE
from searchblend.service.process import VARIABLE, crash_points
from searchblend.store.states import State
from searchblend.wire.head_list import decode_head_list
from service_parts import ManualClock, Service, crowd, people

pytestmark = pytest.mark.thorough

POINTS = [
    "open: key written",
    "head list: drawn",
    "head list: before commit",
    "head list: after commit",
    "shred: key destroyed",
    "client open: before commit",
    "estimate: before commit",
    "estimate: after commit",
    "publish: before",
    "publish: before commit",
    "publish: after commit",
]


def in_a_child(where, folder, now, point, act):
    """Run ``act`` in a process that dies at the point; whether it did."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os.environ[VARIABLE] = point
        try:
            act(Service.start(where, folder, ManualClock(now), crash_points()))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def facts(service, task):
    """All that was ever visible of the curator's noise."""
    round_ = service.current(task)
    return service.store.artifacts.kept(round_.key, CANDIDATE), [
        entry.release_id for entry in service.store.ledger.entries()
    ]


@pytest.mark.parametrize("kind", DATABASES)
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_spends_nothing_twice_and_publishes_the_same_bytes(kind, point, tmp_path):
    where = fresh_database(kind, tmp_path)
    crashed = False
    service = Service.start(where, tmp_path)
    task = service.task()

    def work():
        nonlocal crashed
        if not crashed:
            service.store.close()
            crashed = in_a_child(where, tmp_path, service.clock.now(), point, Service.work)
            service.store = Service.start(where, tmp_path, service.clock).store
            if crashed:
                before = facts(service, task)
                service.clock.time += 301  # the dead worker's lease
                service.work()
                if before[0] is not None and service.current(task).state in (State.HEADLIST_READY, State.SHREDDED):
                    assert facts(service, task)[0] == before[0]
                assert facts(service, task)[1][: len(before[1])] == before[1]
        service.work()

    round_ = service.lifecycle.draft_round(task, actor="ann")
    service.lifecycle.request_open(round_, actor="ann")
    work()
    service.contribute(service.current(task), crowd(seed=1))
    service.lifecycle.close_optin(service.current(task), actor="ann")
    work()
    assert service.current(task).state is State.SHREDDED
    assert service.vault.held() == []
    service.lifecycle.review(service.current(task), actor="rob")
    work()
    round_ = service.current(task)
    service.count(round_, service.messages(round_, people(100, seed=2)))
    service.lifecycle.close_clients(round_, actor="ann")
    service.lifecycle.end_grace(service.current(task), actor="ann")
    work()
    assert crashed, "the point was never reached"
    round_ = service.current(task)
    assert round_.state is State.PUBLISHED
    assert [entry.split("/")[-1] for entry in service.store.ledger.check().entries] == ["opt-in", "clients"]
    assert [row.body for row in service.store.audit.rows() if '"to":"HEADLIST_READY"' in row.body][1:] == []
    digests = [row.entry.detail["digest"] for row in service.store.audit.rows() if '"to":"REVIEWED"' in row.body]
    content, _ = service.store.artifacts.get(service.store.artifacts.of_round(round_.key)["headlist.json"])
    assert digests == [decode_head_list(json.loads(content)).head.digest]
    assert len(service.store.ledger.book().published) == 2
    assert service.store.jobs.waiting() == []
    service.store.audit.verify()
    service.store.close()


@pytest.mark.parametrize("kind", DATABASES)
def test_of_two_curators_that_draw_at_once_only_one_is_ever_seen(kind, tmp_path):
    """The second takes over an expired lease while the first is between drawing and committing."""
    where = fresh_database(kind, tmp_path)
    service = Service.start(where, tmp_path)
    task = service.task()
    service.contribute(service.open(task), crowd(seed=1))
    service.lifecycle.close_optin(service.current(task), actor="ann")
    seen = []

    def overtaken(point):
        if point == "head list: drawn" and not seen:
            seen.append(None)
            service.clock.time += 301
            second = Service.start(where, tmp_path, service.clock)
            second.work()
            seen[0] = (facts(second, task), second.current(task).state)
            second.store.close()

    first = Service.start(where, tmp_path, service.clock, overtaken)
    first.work()
    assert seen[0][1] is State.SHREDDED
    assert facts(service, task) == seen[0][0]
    assert "job overtaken" in first.log.getvalue()
    assert len(service.store.ledger.entries()) == 1
    first.store.close()
    service.store.close()
