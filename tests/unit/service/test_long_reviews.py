"""A long list takes seconds to approve; reports and readers do not wait for it."""

from __future__ import annotations

import threading

import pytest

from console_person import Person
from databases import DATABASES, fresh_database
from searchblend.blender import method
from searchblend.service import lifecycle
from searchblend.service.round_model import shape_of
from searchblend.store.database_sqlite import SqliteStore
from searchblend.store.errors import WrongState
from searchblend.store.reports import Arrivals, ReportOutcome
from searchblend.store.service_store import ServiceStore, open_database
from searchblend.store.states import State
from searchblend.wire.report_batch import decode_reports
from service_http import http_service
from service_parts import Service, crowd, people


@pytest.fixture(params=DATABASES)
def service(request, tmp_path):
    made = Service.start(fresh_database(request.param, tmp_path), tmp_path)
    made.where = request.param
    yield made
    made.store.close()


def impatient(service):
    """Another connection, which does not wait for locks."""
    if service.store.database.dialect == "sqlite":
        return ServiceStore(SqliteStore(service.store.database.path, busy_seconds=0))
    return ServiceStore(open_database(service.store.database._url))


def to_review(service, name):
    task = service.task(name=name)
    service.contribute(service.open(task), crowd(seed=1))
    service.lifecycle.close_optin(service.current(task), actor="ann")
    service.work()
    return task


def meanwhile(monkeypatch, owner, name, act):
    """Call ``act`` in the middle of what a review computes."""
    compute = getattr(owner, name)

    def computed(*arguments):
        act()
        return compute(*arguments)

    monkeypatch.setattr(owner, name, computed)


@pytest.mark.parametrize(
    ("owner", "name"), [(method, "choose_design"), (lifecycle, "encode_figures"), (lifecycle, "_shape")]
)
def test_reports_are_committed_while_a_list_is_approved(service, monkeypatch, owner, name):
    open_task = service.task(name="open")
    service.contribute(service.open(open_task), crowd(seed=1))
    round_ = service.head_list(open_task)
    batch = decode_reports(b"".join(service.messages(round_, people(3, seed=2))), shape_of(round_))
    task = to_review(service, "reviewed")
    other, outcomes = impatient(service), []

    def report():
        outcomes.extend(other.reports.add([Arrivals(round_.key, batch.ids, batch.counters)], service.clock.now()))

    meanwhile(monkeypatch, owner, name, report)
    assert service.lifecycle.review(service.current(task), actor="rob").state is State.REVIEWED
    other.close()
    assert outcomes == [ReportOutcome.TAKEN]


def test_a_round_that_is_ended_while_its_list_is_approved_stays_ended(service, monkeypatch):
    task = to_review(service, "reviewed")
    other = impatient(service)

    def abort():
        lifecycle.Lifecycle(other, service.clock).abort(service.current(task), actor="ann", reason="operator")

    meanwhile(monkeypatch, method, "choose_design", abort)
    with pytest.raises(WrongState):
        service.lifecycle.review(service.current(task), actor="rob")
    other.close()
    round_ = service.current(task)
    assert round_.state is State.ABORTED
    assert service.store.artifacts.kept(round_.key, lifecycle.REVIEWED) is None


def test_lists_are_approved_on_a_thread_that_no_device_and_no_page_waits_for(tmp_path, monkeypatch):
    threads, review = [], lifecycle.Lifecycle.review

    def noted(*arguments, **options):
        threads.append(threading.current_thread().name.partition("_")[0])
        return review(*arguments, **options)

    monkeypatch.setattr(lifecycle.Lifecycle, "review", noted)
    with http_service(str(tmp_path / "service.db"), tmp_path) as http:
        first, second = (to_review(http.parts, name) for name in ("by the API", "by the console"))
        assert http.admin("POST", f"/tasks/{first.task}/rounds/1/review", "reviewer", json={}).status_code == 200
        at = f"/console/tasks/{second.task}/rounds/1/review"
        assert Person(http, "reviewer").confirm(at).status_code == 303
    assert threads == ["actions", "actions"]
