"""The arrows of a round are declared once: what people are offered, what workers do and the drawing agree with it."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import draw
import pytest

from searchblend.cli.commands import round as round_command
from searchblend.service import actions
from searchblend.service.actions import EVERYWHERE, JOB_ARROWS, ROUND_ACTIONS, TASK_ACTIONS, CountsFile, next_actor
from searchblend.service.api.admin_api import endpoints
from searchblend.service.console.forms import Forms
from searchblend.service.lifecycle import Lifecycle
from searchblend.service.services import Services
from searchblend.service.workers.curator import Curator
from searchblend.service.workers.estimator import Estimator
from searchblend.service.workers.publisher import Publisher
from searchblend.store.errors import WrongState
from searchblend.store.service_store import open_store
from searchblend.store.states import ENDED, NEXT, State, may_follow
from service_parts import ManualClock


def test_an_action_that_is_added_to_the_table_is_offered_everywhere(monkeypatch):
    added = replace(ROUND_ACTIONS[0], name="pause")
    monkeypatch.setattr(actions, "ROUND_ACTIONS", (*ROUND_ACTIONS, added))
    assert "/admin/v1/tasks/{task}/rounds/{round}/pause" in {endpoint.path for endpoint in endpoints()}
    assert "/console/tasks/{task}/rounds/{round}/pause" in {row.path for row in Forms(Services("unused")).table()}
    parser = argparse.ArgumentParser()
    round_command.add_arguments(parser)
    options = parser.parse_args(["pause", "searches", "1"])
    assert (options.action, options.task, options.round) == ("pause", "searches", 1)


def test_only_what_needs_a_local_file_is_missing_anywhere():
    missing = {action.name: EVERYWHERE - action.faces for action in (*TASK_ACTIONS, *ROUND_ACTIONS)}
    assert {name: faces for name, faces in missing.items() if faces} == {"load-counts": {"api", "console"}}


def test_every_arrow_that_loses_or_spends_something_asks_first():
    silent = {action.name for action in (*TASK_ACTIONS, *ROUND_ACTIONS) if action.asks is None}
    assert silent == {"draft", "enrol", "adjust", "open", "load-counts", "extend"}


def test_every_arrow_of_the_law_is_in_the_table_and_no_other():
    taken = {(before, action.after) for action in ROUND_ACTIONS if action.after for before in action.before}
    taken |= {(arrow.before, arrow.after) for arrow in JOB_ARROWS}
    law = {(before, after) for before in State for after in State if may_follow(before, after)}
    assert taken == law


def test_the_jobs_are_those_of_the_workers(tmp_path):
    clock = ManualClock()
    with open_store(str(tmp_path / "service.db"), create=True) as store:
        workers = {
            "curator": Curator(store, clock, None, None),
            "estimator": Estimator(store, clock),
            "publisher": Publisher(store, clock, None, {}),
        }
        for name, worker in workers.items():
            assert {arrow.job for arrow in JOB_ARROWS if arrow.worker == name} == set(worker.kinds)


def test_a_person_or_worker_is_next_until_a_round_has_ended():
    assert {state for state in State if not next_actor(state)} == ENDED


def test_the_drawing_names_whoever_takes_a_round_to_a_state():
    for state in draw.MOVED_BY:
        roles = {action.role for action in (*TASK_ACTIONS, *ROUND_ACTIONS) if action.after is state}
        workers = {arrow.worker for arrow in JOB_ARROWS if arrow.after is state}
        assert roles | workers, state
        assert all(name in draw.MOVED_BY[state] for name in roles | workers), state
    assert set(draw.MOVED_BY) == set(State) - {State.ABORTED}


@pytest.mark.parametrize("state", State)
def test_an_action_is_refused_in_every_state_that_is_not_its_own(tmp_path: Path, state: State):
    clock = ManualClock()
    with open_store(str(tmp_path / "service.db"), create=True) as store:
        lifecycle = Lifecycle(store, clock)
        task = store.rounds.add_task("ab" * 16, "t", {"name": "t"}, actor="ann", now=clock.now())
        round_ = store.rounds.add_round(task.task, {"name": "t"}, "2026", actor="ann", now=clock.now())
        while round_.state is not state:
            after = State.ABORTED if state is State.ABORTED else NEXT[round_.state]
            round_ = store.rounds.advance(round_, after, actor="ann", now=clock.now())
        for action in ROUND_ACTIONS:
            if state not in action.before:
                with pytest.raises(WrongState):
                    action.take(lifecycle, round_, _needs(action), "rob")


def _needs(action):
    return CountsFile({}) if action.needs is CountsFile else action.needs()


def test_no_action_of_the_table_is_taken_without_a_role():
    assert {action.role for action in (*TASK_ACTIONS, *ROUND_ACTIONS)} == {"operator", "reviewer"}
