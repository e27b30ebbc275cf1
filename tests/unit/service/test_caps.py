"""The cap of a window holds for the debits made in it, and a task without any cap says so by name."""

from __future__ import annotations

import pytest

from databases import DATABASES, fresh_database
from searchblend.accounting.totals import BudgetCap
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget
from searchblend.store.errors import BudgetExceeded
from searchblend.store.states import State
from service_parts import Service, crowd, people

WEEK = 7 * 86_400


@pytest.fixture
def service(tmp_path):
    made = Service.start(str(tmp_path / "service.db"), tmp_path)
    yield made
    made.store.close()


def charged(service):
    """ε of one person: each has one role in a round."""
    book = service.store.ledger.book()
    return sum(spend.epsilon for spend in book.spends(book.scopes()[0][0], None))


def test_rounds_drafted_in_several_weeks_spend_the_cap_of_the_week_in_which_they_are_debited(service):
    """Three rounds, opened a week apart, whose lists are all drawn in one week: its cap pays two of them."""
    service.store.ledger.set_cap(BudgetCap(window=Budget(8.0, 1e-2)))
    tasks = []
    for n in range(3):
        task = service.task(name=f"task {n}", optin_seconds=30 * 86_400, shred_seconds=60 * 86_400)
        service.contribute(service.open(task), crowd(seed=n))
        tasks.append(task)
        service.clock.time += WEEK
    for task in tasks:
        service.lifecycle.close_optin(service.current(task), actor="ann")
        service.work()
    assert [service.current(task).state for task in tasks] == [State.SHREDDED, State.SHREDDED, State.ABORTED]
    for task in tasks[:2]:
        service.lifecycle.review(service.current(task), actor="rob")
        service.work()
        assert service.current(task).state is State.CLIENT_OPEN
    assert charged(service) == 8.0


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("first", ["week", "month", "year"])
def test_tasks_of_one_population_share_the_cap_whatever_their_periods(tmp_path, database, first):
    """Week, month and year of one moment are three names of windows, and one cap for the same people."""
    service = Service.start(fresh_database(database, tmp_path), tmp_path)
    service.store.ledger.set_cap(BudgetCap(window=Budget(4.0, 1e-2)))
    task = service.task(name="first", budget_window=first)
    service.contribute(service.open(task), crowd(seed=1))
    assert service.head_list(task).state is State.CLIENT_OPEN
    for period in ("week", "month", "year"):
        with pytest.raises(BudgetExceeded):
            service.open(service.task(name=f"by {period}", budget_window=period))
    assert charged(service) == 4.0
    service.store.close()


@pytest.mark.parametrize("database", DATABASES)
def test_rounds_of_several_periods_that_opened_together_are_debited_under_one_cap(tmp_path, database):
    """All three could be paid when they opened; when their lists are drawn, only two can."""
    service = Service.start(fresh_database(database, tmp_path), tmp_path)
    service.store.ledger.set_cap(BudgetCap(window=Budget(4.0, 1e-2)))
    tasks = [
        service.task(name=f"by {period}", budget_window=period, epsilon=2.0) for period in ("week", "month", "year")
    ]
    for n, task in enumerate(tasks):
        service.contribute(service.open(task), people(400, seed=n))
    for task in tasks:
        service.lifecycle.close_optin(service.current(task), actor="ann")
        service.work()
    assert [service.current(task).state for task in tasks] == [State.SHREDDED, State.SHREDDED, State.ABORTED]
    for task in tasks[:2]:
        service.lifecycle.review(service.current(task), actor="rob")
        service.work()
        assert service.current(task).state is State.CLIENT_OPEN
    assert charged(service) == 4.0
    service.store.close()


def test_each_group_is_debited_in_the_window_of_its_own_debit(service):
    service.store.ledger.set_cap(BudgetCap(window=Budget(8.0, 1e-2)))
    task = service.task()
    drafted = service.open(task).budget_window
    service.contribute(service.current(task), crowd(seed=1))
    service.lifecycle.close_optin(service.current(task), actor="ann")
    service.work()
    service.clock.time += WEEK
    service.lifecycle.review(service.current(task), actor="rob")
    service.work()
    windows = {entry.release_id.split("/")[-1]: entry.window for entry in service.store.ledger.entries()}
    assert windows["opt-in"] == drafted != windows["clients"]
    assert service.current(task).budget_window == windows["clients"]


def test_a_full_window_does_not_keep_a_round_from_opening_that_is_debited_in_the_next(service):
    service.store.ledger.set_cap(BudgetCap(window=Budget(4.0, 1e-2)))
    first = service.task(name="first")
    service.contribute(service.open(first), crowd(seed=1))
    service.head_list(first)
    with pytest.raises(BudgetExceeded):
        service.open(service.task(name="at once"))
    assert (
        service.open(service.task(name="later", optin_seconds=WEEK, shred_seconds=2 * WEEK)).state is State.OPTIN_OPEN
    )


def test_without_a_cap_there_is_no_task_that_does_not_say_so(service):
    with pytest.raises(InvalidParameter, match="no cap is on record"):
        service.task(uncapped=False)
    service.task(name="free")
    service.store.ledger.set_cap(BudgetCap(window=Budget(8.0, 1e-2)))
    service.task(name="capped", uncapped=False)


def test_a_task_of_before_without_a_cap_opens_no_round(service):
    settings = {name: value for name, value in service.task().settings.items() if name != "uncapped"}
    old = service.store.rounds.add_task("ab" * 16, "old", settings, actor="ann", now=1)
    with pytest.raises(BudgetExceeded, match="no cap is on record"):
        service.open(old)
    assert service.store.jobs.waiting() == []
