"""One job's, round's or task's trouble is its own; what fails for good ends; what was interrupted goes on soon."""

from __future__ import annotations

import json

import pytest

from databases import DATABASES, fresh_database
from searchblend.core.records import Record
from searchblend.service.checkup import overdue_shredding
from searchblend.service.lifecycle import CANDIDATE
from searchblend.service.round_model import sealing_context
from searchblend.service.workers.worker import INTERRUPTED_SECONDS, MOST_ATTEMPTS
from searchblend.store.errors import StoreUnavailable
from searchblend.store.states import State
from searchblend.wire.sealed import seal_records
from service_parts import Service, crowd, people


@pytest.fixture(params=DATABASES)
def service(request, tmp_path):
    made = Service.start(fresh_database(request.param, tmp_path), tmp_path)
    yield made
    made.store.close()


def fail_with(error):
    def fail(*arguments, **named):
        raise error

    return fail


def ready_to_draw(service, **changes):
    task = service.task(**changes)
    round_ = service.open(task)
    service.contribute(round_, people(60, seed=1))
    service.lifecycle.close_optin(round_, actor="ann")
    return task


def work_through_backoff(service, times):
    for _ in range(times):
        service.work()
        service.clock.time += 300


def ending(service):
    details = [row.entry.detail for row in service.store.audit.rows()]
    return [detail for detail in details if detail.get("to") == "ABORTED"][-1]


@pytest.mark.parametrize("error", [ArithmeticError("secret words"), TypeError("secret words")])
def test_a_job_that_fails_for_good_ends_its_round_with_a_reason(service, monkeypatch, error):
    monkeypatch.setattr("searchblend.blender.method.BestMethod.list_head", fail_with(error))
    task = ready_to_draw(service, shred_seconds=100_000)
    work_through_backoff(service, MOST_ATTEMPTS - 1)
    assert service.current(task).state is State.OPTIN_CLOSED
    work_through_backoff(service, 1)
    round_ = service.current(task)
    assert round_.state is State.ABORTED
    said = ending(service)
    assert {name: said[name] for name in ("reason", "job", "attempts", "error")} == {
        "reason": "job-failed",
        "job": "head-list",
        "attempts": MOST_ATTEMPTS,
        "error": type(error).__name__,
    }
    service.work()
    assert (service.store.jobs.waiting(), service.vault.held()) == ([], [])
    assert "secret words" not in service.log.getvalue()


def test_shredding_is_never_given_up(service, monkeypatch):
    monkeypatch.setattr("searchblend.service.workers.vault.Vault.destroy", fail_with(OSError("read-only")))
    task = ready_to_draw(service, shred_seconds=100_000)
    work_through_backoff(service, MOST_ATTEMPTS + 2)
    assert service.current(task).state is State.HEADLIST_READY
    monkeypatch.undo()
    service.work()
    assert service.current(task).state is State.SHREDDED


def test_a_job_that_the_database_interrupts_goes_on_within_seconds_and_never_ends_its_round(service, monkeypatch):
    assert INTERRUPTED_SECONDS <= 10
    task = ready_to_draw(service, shred_seconds=100_000)
    worker = service.worker
    monkeypatch.setattr("searchblend.blender.method.BestMethod.list_head", fail_with(StoreUnavailable("away")))
    for _ in range(MOST_ATTEMPTS + 2):
        with pytest.raises(StoreUnavailable):
            worker.run_once()
        with monkeypatch.context() as away, pytest.raises(StoreUnavailable):
            away.setattr(service.store.jobs, "give_back", fail_with(StoreUnavailable("still away")))
            worker.run_once()
        worker.run_once()
        service.clock.time += INTERRUPTED_SECONDS
    monkeypatch.undo()
    worker.run_once()
    assert service.current(task).state is State.SHREDDED


def test_an_unreadable_task_keeps_no_other_from_its_deadlines(service):
    """Its settings are damaged, or of another version; the others' records and keys are gone in time all the same."""
    broken = [service.task(name=f"broken {n}", repeat_seconds=1) for n in range(3)]
    for task in broken:
        service.open(task)
    fine = service.task(name="fine")
    round_ = service.open(fine)
    service.contribute(round_, people(60, seed=1))
    texts = ("{half", "[]", json.dumps({"name": "x", "of_next_year": 1}))
    for task, text in zip(broken, texts, strict=True):
        for table in ("tasks", "rounds"):
            service.store.database.execute(f"UPDATE {table} SET settings = ? WHERE task = ?", (text, task.task))
    service.clock.time += 1000
    service.work()
    assert service.current(fine).state is State.ABORTED
    assert service.store.contributions.count(round_.key) == 0
    # A deadline needs no settings: theirs is kept too.
    assert [service.current(task).state for task in broken] == [State.ABORTED] * 3
    assert service.vault.held() == []
    assert service.store.artifacts.manifest(fine.task) is not None
    assert "tick failed" in service.log.getvalue()


def test_a_round_in_an_unknown_state_stops_no_other_and_its_key_goes_at_its_deadline(service):
    odd, fine = service.task(name="odd"), service.task(name="fine")
    service.open(odd)
    service.store.database.execute("UPDATE rounds SET state = 'OF_NEXT_YEAR' WHERE task = ?", (odd.task,))
    service.open(fine)
    service.work()
    assert service.current(fine).state is State.OPTIN_OPEN
    assert len(service.vault.held()) == 2
    assert service.store.rounds.unreadable() == [(odd.task, 1)]
    service.clock.time += 1000
    service.work()
    assert service.vault.held() == []
    assert [entry[:2] for entry in overdue_shredding(service.store, service.clock.now() + 1)] == [(odd.task, 1)]


def test_a_curator_without_the_key_leaves_the_round_to_the_one_that_has_it(service, tmp_path):
    task = ready_to_draw(service)
    other = Service(service.store, service.clock, tmp_path / "other", service.log)
    other.work()
    service.clock.time += 301
    other.work()
    assert service.current(task).state is State.OPTIN_CLOSED
    service.work()
    assert service.current(task).state is State.SHREDDED


def test_a_curator_without_the_key_does_not_say_that_it_was_destroyed(service, tmp_path, monkeypatch):
    task = ready_to_draw(service)
    monkeypatch.setattr("searchblend.service.workers.vault.Vault.destroy", fail_with(OSError("read-only")))
    service.work()
    monkeypatch.undo()
    service.clock.time += 10
    Service(service.store, service.clock, tmp_path / "other", service.log).work()
    assert service.current(task).state is State.HEADLIST_READY
    service.work()
    assert service.current(task).state is State.SHREDDED
    assert service.vault.held() == []


def test_an_overtaken_curator_leaves_the_live_key_as_it_is(service):
    """It wakes up after another opened the round: its own key is the one that goes."""
    task, overtaken = service.task(), []

    def wake_up_late(point):
        if point == "open: key written" and not overtaken:
            overtaken.append(point)
            service.clock.time += 301
            service.work()

    first = Service(service.store, service.clock, service.folder, service.log)
    round_ = service.lifecycle.draft_round(task, actor="ann")
    service.lifecycle.request_open(round_, actor="ann")
    service.store.on_point = wake_up_late
    first.work()
    assert overtaken
    round_ = service.current(task)
    assert round_.state is State.OPTIN_OPEN
    service.work()
    assert len(service.vault.held()) == 1
    service.contribute(round_, people(60, seed=1))
    service.lifecycle.close_optin(round_, actor="ann")
    service.work()
    assert service.current(task).state is State.SHREDDED


INADMISSIBLE = [
    Record("zero\0byte", "http://a.example/"),
    Record("turned \u202etxt", "http://a.example/"),
    Record("a script", "javascript:alert(1)"),
    Record("a printer", "http://printer.local/"),
    Record("jane@mail.example", "http://a.example/"),
]


def test_what_no_device_keeps_reaches_no_list_and_its_round_is_published(service):
    """Forty people each send it, enough for any list; on PostgreSQL a zero byte could never be published."""
    task = service.task(records_per_optin=2)
    round_ = service.open(task)
    service.contribute(round_, people(400, seed=1))
    service.contribute(round_, [record for record in INADMISSIBLE for _ in range(40)], first=1000)
    service.lifecycle.close_optin(round_, actor="ann")
    service.work()
    figures, _ = service.lifecycle.candidate(service.current(task))
    assert figures.n_users == 400
    listed = {*figures.head.queries, *(url for query in figures.head.queries for url in figures.head.urls(query))}
    assert not listed & {text for record in INADMISSIBLE for text in record if text != "http://a.example/"}
    assert service.store.reports.refusals(round_.key) == {"not-admitted": 200}
    ready = [row.entry.detail for row in service.store.audit.rows() if '"to":"HEADLIST_READY"' in row.body]
    assert ready[0]["not_admitted"] == {
        "control-character": 80,
        "not-a-web-address": 40,
        "private-address": 40,
        "e-mail": 40,
    }
    service.lifecycle.review(service.current(task), actor="rob")
    service.work()
    service.count(service.current(task), service.messages(service.current(task), people(100, seed=2)))
    assert service.finish(task).state is State.PUBLISHED


def test_a_record_that_is_not_admitted_goes_alone(service):
    """A person's other record counts."""
    task = service.task(records_per_optin=2, min_optin=2)
    round_ = service.open(task)
    context, both = sealing_context(round_), [INADMISSIBLE[0], Record("weather", "http://weather.example")]
    for n in range(60):
        tag = context.tag_of(service.code_of(round_.task, n))
        sealed = seal_records(both, context, tag, round_.public_key)
        service.store.contributions.add(round_.key, tag, sealed, service.clock.now())
    service.lifecycle.close_optin(round_, actor="ann")
    service.work()
    details = [row.entry.detail for row in service.store.audit.rows()]
    assert next(detail["records"] for detail in details if detail.get("to") == "HEADLIST_READY") == 60


def test_a_damaged_shape_keeps_no_other_task_from_its_manifest(service):
    """It is read without any of our own errors: the wrong kind of value is a TypeError."""
    broken = service.task(name="broken")
    service.contribute(service.open(broken), crowd(seed=1))
    service.head_list(broken)
    service.store.database.execute("UPDATE rounds SET shape = ? WHERE task = ?", ('{"task": 1}', broken.task))
    service.clock.time += 1
    fine = service.task(name="fine")
    service.open(fine)
    assert service.store.artifacts.manifest(fine.task) is not None
    assert "worker failed" in service.log.getvalue()


def test_a_round_that_was_set_back_is_not_drawn_again(service):
    """Rows can be changed; a second draw would have noise that the ledger does not know of."""
    task = ready_to_draw(service)
    round_ = service.current(task)
    # The job to shred is there, and a worker seems to have it: key and records stay.
    service.store.database.execute(
        "INSERT INTO jobs (round_key, kind, due, lease_token, lease_until, attempts) VALUES (?, 'shred', 0, 'x', ?, 0)",
        (round_.key, 2**40),
    )
    lists = []
    for _ in range(6):
        service.work()
        assert service.current(task).state is State.HEADLIST_READY
        lists.append(service.store.artifacts.kept(round_.key, CANDIDATE))
        service.store.database.execute("UPDATE rounds SET state = 'OPTIN_CLOSED' WHERE round_key = ?", (round_.key,))
        service.store.jobs.add(round_.key, "head-list", service.clock.now())
    assert len(set(lists)) == 1
    service.store.database.execute("DELETE FROM jobs WHERE kind = 'shred'")
    service.work()
    service.work()
    assert service.current(task).state is State.SHREDDED
    assert service.vault.held() == []
    assert list((service.folder / "keys").glob("*.drawn*")) == []
