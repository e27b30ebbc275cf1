"""The curator's jobs in processes of their own: what they do, how they fail, and that they end with their parent."""

from __future__ import annotations

import pytest

from databases import DATABASES, fresh_database
from searchblend.core.errors import RunError
from searchblend.service.clock import SystemClock
from searchblend.service.settings import ServeSettings
from searchblend.service.telemetry import Logbook, ServiceMetrics
from searchblend.service.workers.curator_process import CuratorProcess
from searchblend.service.workers.worker import Worker
from searchblend.store.errors import LeaseLost, StoreUnavailable
from searchblend.store.states import State
from service_parts import Service


def settings_of(where, folder):
    return ServeSettings(data_dir=str(folder), database=where if where.startswith("postgresql") else "")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", DATABASES)
def test_a_job_is_done_elsewhere_and_its_failures_are_told_apart(kind, tmp_path):
    where = fresh_database(kind, tmp_path)
    service = Service.start(where, tmp_path, SystemClock())
    elsewhere = CuratorProcess(settings_of(where, tmp_path), service.clock, list, anonymous_intake=False)
    task = service.task()
    round_ = service.lifecycle.draft_round(task, actor="ann")
    service.lifecycle.request_open(round_, actor="ann")
    job = service.store.jobs.lease(elsewhere.kinds, service.clock.now(), 300)
    elsewhere.run(job)
    opened = service.current(task)
    assert opened.state is State.OPTIN_OPEN
    assert service.vault.private_key(task.task, 1, opened.public_key)
    assert service.store.jobs.waiting() == []
    with pytest.raises(LeaseLost, match="another worker has it"):
        elsewhere.run(job)
    service.store.close()


def test_a_round_that_ends_by_a_failure_elsewhere_names_the_error_there(tmp_path, monkeypatch):
    """The process cannot write its keys; what the worker sees is that a process failed."""
    service = Service.start(str(tmp_path / "service.db"), tmp_path, SystemClock())
    (tmp_path / "file").write_text("")
    nowhere = ServeSettings(data_dir=str(tmp_path), key_dir=str(tmp_path / "file" / "keys"))
    elsewhere = CuratorProcess(nowhere, service.clock, list, anonymous_intake=False)
    task = service.task()
    service.lifecycle.request_open(service.lifecycle.draft_round(task, actor="ann"), actor="ann")
    monkeypatch.setattr("searchblend.service.workers.worker.MOST_ATTEMPTS", 1)
    logbook, metrics = Logbook(service.log), ServiceMetrics()
    Worker(
        service.store, service.clock, [elsewhere], tick=False, each_time=[], logbook=logbook, metrics=metrics
    ).run_once()
    assert service.current(task).state is State.ABORTED
    [ended] = [row for row in service.store.audit.rows() if '"job-failed"' in str(row)]
    assert "OutputError" in str(ended)
    assert '"error": "OutputError"' in service.log.getvalue()
    service.store.close()


def test_a_database_out_of_reach_is_told_apart_and_a_process_that_dies_is_a_failure(tmp_path, monkeypatch):
    service = Service.start(str(tmp_path / "service.db"), tmp_path, SystemClock())
    task = service.task()
    service.lifecycle.request_open(service.lifecycle.draft_round(task, actor="ann"), actor="ann")
    job = service.store.jobs.lease(CuratorProcess.kinds, service.clock.now(), 300)
    away = ServeSettings(data_dir=str(tmp_path), database="postgresql://nobody@/none?host=/nowhere")
    with pytest.raises(StoreUnavailable, match="OperationalError"):
        CuratorProcess(away, service.clock, list, anonymous_intake=False).run(job)
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(RunError, match="without an answer"):
        CuratorProcess(settings_of("", tmp_path), service.clock, list, anonymous_intake=False).run(job)
    assert service.current(task).state is State.DRAFT
    service.store.close()
