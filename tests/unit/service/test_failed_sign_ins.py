"""Failed sign-ins and looks at the unreviewed list are in the audit log; a flood of failures is a few rows."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from console_person import Person
from databases import fresh_database
from searchblend.service.api.writers import StoreThread
from searchblend.service.failed_sign_ins import MOST_FAILURES, FailedSignIns
from searchblend.store.service_store import open_store
from service_http import http_service
from service_parts import ManualClock, crowd


def failures(store):
    rows = [json.loads(row.body) for row in store.audit.rows()]
    return [row["detail"]["failures"] for row in rows if row["action"] == "sign-in failed"]


def test_every_failed_sign_in_is_counted_and_a_flood_is_two_rows(tmp_path):
    where = fresh_database("sqlite", tmp_path)
    with http_service(where, tmp_path) as http:
        for i in range(30):
            answer = http.client.get("/admin/v1/tasks", headers={"authorization": "Bearer sba_canary"})
            assert answer.status_code == (401 if i < MOST_FAILURES else 429)
        person = Person(http, "operator")
        for _ in range(5):
            assert person.sign_in("sba_canary too").status_code == 401
        assert http.client.get("/admin/v1/tasks").status_code == 401
        assert failures(http.parts.store) == [{"admin API": 1}]
    with open_store(where) as store:
        assert failures(store) == [{"admin API": 1}, {"admin API": 29, "console": 5}]
        assert "canary" not in str(store.audit.rows())
        store.audit.verify()


def test_what_waited_is_written_when_its_time_has_come(tmp_path):
    where = fresh_database("sqlite", tmp_path)

    async def attack(store):
        thread = StoreThread(where, "test")
        failed = FailedSignIns(thread, ManualClock(), lambda error: pytest.fail(str(error)), seconds=0.05)
        for _ in range(10):
            await failed.add("console")
        while sum(row["console"] for row in failures(store)) < 10:
            await asyncio.sleep(0.01)
        await failed.stop()
        await thread.close()

    with open_store(where) as store:
        asyncio.run(asyncio.wait_for(attack(store), 240))
        assert failures(store)[0] == {"console": 1}


def test_a_log_out_of_reach_loses_no_failure_and_refuses_no_one(tmp_path):
    where, problems = fresh_database("sqlite", tmp_path), []

    async def attack():
        thread = StoreThread(where, "test")
        failed = FailedSignIns(thread, ManualClock(), problems.append, seconds=60)
        await failed.add("console")
        open_store(where).close()
        await failed.stop()
        await thread.close()

    asyncio.run(attack())
    assert len(problems) == 1
    with open_store(where) as store:
        assert failures(store) == [{"console": 1}]


def test_a_row_that_waits_for_the_database_when_the_server_stops_is_written(tmp_path):
    """Two rows are queued behind another call: of a request that is broken off, and of the regular write."""
    where = fresh_database("sqlite", tmp_path)

    async def stop_while_two_rows_are_queued(busy):
        thread = StoreThread(where, "test")
        failed = FailedSignIns(thread, ManualClock(), lambda error: pytest.fail(str(error)), seconds=0)
        other = asyncio.create_task(thread.call(lambda store: busy.wait(240)))
        await asyncio.sleep(0)
        request = asyncio.create_task(failed.add("admin API"))
        await asyncio.sleep(0)
        await failed.add("console")
        while failed._failed:
            await asyncio.sleep(0)
        request.cancel()
        stopping = asyncio.create_task(failed.stop())
        await asyncio.sleep(0)
        busy.set()
        await stopping
        await other
        await thread.close()

    open_store(where).close()
    asyncio.run(asyncio.wait_for(stop_while_two_rows_are_queued(threading.Event()), 240))
    with open_store(where) as store:
        assert failures(store) == [{"admin API": 1}, {"console": 1}]


def test_looks_at_the_unreviewed_list_are_in_the_audit_log(tmp_path):
    with http_service(fresh_database("sqlite", tmp_path), tmp_path) as http:
        parts, task = http.parts, http.parts.task()
        parts.contribute(parts.open(task), crowd(seed=1))
        parts.lifecycle.close_optin(parts.current(task), actor="ann")
        parts.work()
        at = f"/tasks/{task.task}/rounds/1"
        assert http.admin("GET", f"{at}/candidate", "operator").status_code == 403
        assert http.admin("GET", f"{at}/candidate", "reviewer").status_code == 200
        assert Person(http, "reviewer").get(f"/console{at}/review").status_code == 200
        rows = [json.loads(row.body) for row in parts.store.audit.rows()]
        seen = [(row["actor"], row["detail"]) for row in rows if row["action"] == "candidate list seen"]
        assert seen == [("reviewer", {"task": task.task, "round": 1})] * 2
