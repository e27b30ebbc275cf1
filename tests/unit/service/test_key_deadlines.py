"""A round's private key ends at the deadline with which the curator made it, and keeps no other key alive."""

from __future__ import annotations

import pytest

from databases import DATABASES, fresh_database
from searchblend.service.checkup import gauges, keys_overdue, overdue_shredding, trouble
from searchblend.service.lifecycle import Lifecycle
from searchblend.service.workers.curator import HOLDER, Curator
from searchblend.store.errors import StoreUnavailable
from searchblend.store.states import State
from service_parts import SMALL, Service, people

SHRED_SECONDS = SMALL["shred_seconds"]


@pytest.fixture(params=DATABASES)
def service(request, tmp_path):
    made = Service.start(fresh_database(request.param, tmp_path), tmp_path)
    yield made
    made.store.close()


def write(service, statement, *values):
    """What a writer of the database can do."""
    service.store.database.execute(statement, values)


@pytest.mark.parametrize("shred_by", [None, 2**40])
def test_a_key_does_not_outlive_its_deadline_whatever_its_row_says(service, shred_by):
    task = service.task()
    round_ = service.open(task)
    service.contribute(round_, people(60, seed=1))
    write(service, "UPDATE rounds SET shred_by = ?", shred_by)
    write(
        service,
        "INSERT INTO jobs (round_key, kind, due, lease_token, lease_until, attempts) VALUES (?, 'shred', 0, 'x', ?, 0)",
        round_.key,
        2**40,
    )
    service.lifecycle.close_optin(round_, actor="ann")
    service.work()
    assert (service.current(task).state, len(service.vault.held())) == (State.HEADLIST_READY, 1)
    service.clock.time += SHRED_SECONDS - 1
    service.work()
    assert len(service.vault.held()) == 1
    service.clock.time += 1
    service.work()
    assert service.vault.held() == []
    assert list((service.folder / "keys").glob(f"{task.task}*")) == [], "nor what was drawn with it"


def test_a_key_goes_at_its_deadline_while_the_database_is_away(service, monkeypatch):
    service.open(service.task())
    service.clock.time += SHRED_SECONDS

    def away(*arguments):
        raise StoreUnavailable("the database is out of reach")

    monkeypatch.setattr(Lifecycle, "tick", away)
    with pytest.raises(StoreUnavailable):
        service.work()
    assert service.vault.held() == []


def test_a_key_file_that_cannot_be_destroyed_keeps_no_other_alive(service):
    """One in each place of the order: the keys before and after it go."""
    tasks = sorted((service.task(name=name) for name in "abc"), key=lambda task: task.task)
    for task in tasks:
        service.open(task)
    (path,) = (service.folder / "keys").glob(f"{tasks[1].task}*.key")
    path.unlink()
    path.mkdir()
    write(service, "UPDATE rounds SET state = 'ABORTED'")
    service.work()
    assert [held.task for held in service.vault.held()] == [tasks[1].task]
    assert "worker failed" in service.log.getvalue()


def test_a_key_that_is_left_past_its_deadline_is_reported_whatever_its_row_says(service):
    task = service.task()
    service.open(task)
    (path,) = (service.folder / "keys").glob("*.key")
    path.unlink()
    path.mkdir()
    write(service, "UPDATE rounds SET shred_by = NULL, optin_closes = NULL")
    assert keys_overdue(service.vault, service.clock) is None
    service.clock.time += SHRED_SECONDS + 60
    service.work()
    assert keys_overdue(service.vault, service.clock) == "1 round keys are past their deadline"
    assert gauges(service.store, service.clock, service.vault)["shredding_overdue"] == 1
    assert gauges(service.store, service.clock)["shredding_overdue"] == 0, "a process without the folder"


@pytest.mark.parametrize("shred_by", [None, 2**40])
def test_a_process_without_the_keys_knows_the_deadline_that_the_curator_signed(service, shred_by):
    """Moving the row's own deadline hides nothing from it, and does not keep the round."""
    task = service.task()
    service.open(task)
    write(service, "UPDATE rounds SET shred_by = ?", shred_by)
    service.clock.time += SHRED_SECONDS
    assert overdue_shredding(service.store, service.clock.now()) == []
    service.clock.time += 60
    assert overdue_shredding(service.store, service.clock.now()) == [(task.task, 1, 60)]
    assert trouble(service.store, service.clock) == "shredding is overdue in 1 rounds"
    assert gauges(service.store, service.clock)["shredding_overdue"] == 1
    service.lifecycle.tick()
    assert service.current(task).state is State.ABORTED


def test_a_deadline_is_the_sooner_of_the_rows_and_the_signed_one(service):
    task = service.task()
    service.open(task)
    write(service, "UPDATE rounds SET shred_by = ?", service.clock.now() + 1)
    service.clock.time += 1
    service.lifecycle.tick()
    assert service.current(task).state is State.ABORTED


@pytest.mark.parametrize("column", ["public_key", "shred_by"])
def test_a_row_of_the_wrong_type_keeps_no_key_alive(tmp_path, column):
    """SQLite takes it; PostgreSQL does not."""
    service = Service.start(fresh_database("sqlite", tmp_path), tmp_path)
    tasks = sorted((service.task(name=name) for name in "abc"), key=lambda task: task.task)
    for task in tasks:
        service.open(task)
    for odd in (tasks[0], tasks[2]):
        write(service, f"UPDATE rounds SET {column} = 'x' WHERE task = ?", odd.task)
    write(service, "UPDATE rounds SET state = 'ABORTED' WHERE task = ?", tasks[1].task)
    service.work()
    assert [held.task for held in service.vault.held()] == [tasks[0].task, tasks[2].task]
    service.clock.time += SHRED_SECONDS
    service.work()
    assert service.vault.held() == []
    service.store.close()


def test_a_holder_of_the_wrong_type_stops_no_job_of_another_task(tmp_path):
    service = Service.start(fresh_database("sqlite", tmp_path), tmp_path)
    odd, fine = service.task(name="odd"), service.task(name="fine")
    round_ = service.open(odd)
    service.vault.destroy(odd.task, round_.number)  # so that the document decides
    write(service, "UPDATE documents SET content = 'zz' WHERE round_key = ? AND name = ?", round_.key, HOLDER)
    curator = Curator(service.store, service.clock, service.vault, service.curator_key)
    assert curator.excluded_jobs() == []
    assert service.open(fine).state is State.OPTIN_OPEN
    service.store.close()
