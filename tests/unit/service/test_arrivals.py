"""Arrivals over time: totals at coarse steps, for operators, and nothing about a single message."""

from __future__ import annotations

import json

import pytest

from console_person import Person
from console_site import SETTINGS, searchers
from searchblend.service.arrivals import SAMPLES, ArrivalLog, read_arrivals, step_of
from service_http import http_service

HOUR = 3600


@pytest.fixture
def http(tmp_path):
    with http_service(str(tmp_path / "service.db"), tmp_path) as service:
        yield service


def test_steps_hold_what_arrived_in_them_and_gaps_stay_gaps(http):
    parts = http.parts
    task = parts.task(**SETTINGS, name="steps")
    round_ = parts.open(task)
    log, step, held = ArrivalLog(parts.store, parts.clock), step_of(round_), searchers(40, seed=1)
    assert step == 3 * HOUR, "of a window of three days"
    parts.clock.time += -parts.clock.time % step
    begin = parts.clock.time
    for first, last, hours in ((0, 5, 3), (5, 5, 3), (5, 12, 9), (12, 32, 3)):
        log.record()
        if last > first:
            parts.contribute(round_, held[first:last], first=first)
        assert log.record() == 0, "once a step"
        parts.clock.time += hours * HOUR
    log.record()
    parts.contribute(round_, held[32:40], first=32)
    steps = read_arrivals(parts.store, round_, 40)
    assert [step.n for step in steps] == [5, 0, None, 20, 8], "no one looked for nine hours"
    assert [(step.begins - begin) // HOUR for step in steps] == [0, 3, 6, 15, 18]
    assert ArrivalLog(parts.store, parts.clock).record() == 0, "a new process does not take a step again"
    kept = json.loads(parts.store.artifacts.kept(round_.key, SAMPLES))
    assert kept == {"optin_seconds": [[begin + h * HOUR, n] for h, n in ((0, 0), (3, 5), (6, 5), (15, 12), (18, 32))]}


def test_only_operators_see_them_and_each_window_has_its_own(http):
    parts, log = http.parts, ArrivalLog(http.parts.store, http.parts.clock)
    operator = Person(http, "operator")
    task = parts.task(**SETTINGS, name="seen")
    at = f"/console/tasks/{task.task}/rounds/1"
    parts.contribute(parts.open(task), searchers(300, seed=1))
    log.record()
    assert "Arrivals" not in operator.get(at).text, "one step is no line"
    parts.clock.time += 3 * HOUR
    log.record()
    assert "Messages taken in each 3 h" in operator.get(at).text
    assert "Arrivals" not in Person(http, "viewer").get(at).text
    round_ = parts.head_list(task)
    assert read_arrivals(parts.store, round_, 0) == [], "the clients' window begins anew"
    log.record()
    parts.count(round_, parts.messages(round_, searchers(60, seed=2)))
    parts.clock.time += 3 * HOUR
    log.record()
    assert [step.n for step in read_arrivals(parts.store, round_, 60)] == [60, 0]
    assert "Exact counts, for operators only" in Person(http, "operator").get(at).text
