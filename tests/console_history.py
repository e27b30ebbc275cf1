"""A task with a long history, written straight into the store: a year of weekly rounds with long lists."""

from __future__ import annotations

import json
import random
from typing import Any

from searchblend.accounting.spend import Spend
from searchblend.blender.release import HeadFigures
from searchblend.core.privacy import Budget, Neighbors
from searchblend.core.records import HeadList
from searchblend.search.build_pack import build_pack
from searchblend.search.pack import PACK_MEDIA_TYPE
from searchblend.service.lifecycle import CANDIDATE, Lifecycle
from searchblend.service.round_model import encode_figures, settings_of
from searchblend.service.task_settings import TaskSettings
from searchblend.service.workers.publisher import trend_rows
from searchblend.service.workers.round_packs import PACK_FILE
from searchblend.store.rounds import Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import NEXT, State
from searchblend.wire.release import decode_result
from service_parts import ManualClock

_WEEK = 7 * 86_400


def long_history(
    store: ServiceStore,
    clock: ManualClock,
    *,
    rounds: int = 52,
    queries: int = 500,
    different: int | None = None,
    name: str = "A year of searches",
) -> Task:
    """The task; everything that pages read is there, as the publisher would have left it.

    Args:
        store: Where it is written.
        clock: Moved on by a week for each round.
        rounds: How many are published.
        queries: Length of each list.
        different: How many of the results differ (all): the later rounds have the same ones again.
        name: Of the task.
    """
    settings = TaskSettings(name=name, max_head_queries=queries, epsilon=1.0, uncapped=True)
    task = Lifecycle(store, clock).add_task(settings, actor="ann")
    generator = random.Random(rounds)
    names = [f"query number {i} of the list" for i in range(queries)]
    made: list[_Made] = []
    for number in range(1, rounds + 1):
        if len(made) < (different or rounds):
            made.append(_Made(_result(names, generator), task, number))
        with store.transaction():
            _publish(store, clock, task, number, made[(number - 1) % len(made)])
        clock.time += _WEEK
    return task


class _Made:
    """What a round publishes."""

    def __init__(self, result: dict[str, Any], task: Task, number: int) -> None:
        self.content = json.dumps(result).encode()
        self.released = decode_result(self.content)
        pack = build_pack(self.released, task=bytes.fromhex(task.task), round_number=number).pack
        self.pack: bytes = pack.content


def candidate_list(store: ServiceStore, clock: ManualClock, *, queries: int = 500, urls: int = 2) -> Task:
    """A task whose round waits for a review of a long list."""
    lifecycle = Lifecycle(store, clock)
    task = lifecycle.add_task(TaskSettings(name="A long list", uncapped=True), actor="ann")
    round_ = lifecycle.draft_round(task, actor="ann")
    while round_.state is not State.SHREDDED:
        round_ = store.rounds.advance(round_, NEXT[round_.state], actor="test", now=clock.now())
    head = HeadList(
        [
            (f"query number {i} of the list", [f"https://example.org/page/{i}/{j}" for j in range(urls)])
            for i in range(queries)
        ]
    )
    store.artifacts.keep(round_.key, CANDIDATE, encode_figures(HeadFigures(head, 10_000)))
    return task


def _publish(store: ServiceStore, clock: ManualClock, task: Task, number: int, made: _Made) -> None:
    """One round, as the publisher would have left it.

    Args:
        store: Where it is written.
        clock: The time at which all of it happens.
        task: Whose round it is.
        number: Of the round.
        made: What is published.
    """
    lifecycle = Lifecycle(store, clock)
    round_ = lifecycle.draft_round(task, actor="ann")
    settings, now = settings_of(round_), clock.now()
    times: dict[str, Any] = {
        "optin_closes": now + 86_400,
        "shred_by": now + 2 * 86_400,
        "client_opens": now + 86_400,
        "client_closes": now + 3 * 86_400,
        "grace_until": now + 4 * 86_400,
        "reports": 100_000,
        "opened_by": "ann",
    }
    while round_.state is not State.PUBLISHED:
        changes = times if round_.state is State.DRAFT else {}
        round_ = store.rounds.advance(round_, NEXT[round_.state], actor="test", now=now + 4 * 86_400, **changes)
    files = {"result.json": made.content, "statement.json": b'{"round": %d}' % number, "trends.csv": b"query\n"}
    names = {name: store.artifacts.put(body, "application/json") for name, body in files.items()}
    names[PACK_FILE] = store.artifacts.put(made.pack, PACK_MEDIA_TYPE)
    store.artifacts.attach(round_.key, names)
    store.artifacts.add_trends(round_.key, trend_rows(made.released))
    spend = Spend.generic(Budget(settings.epsilon, settings.delta), Neighbors.REPLACE_ONE, "synthetic")
    for group in ("opt-in", "clients"):
        store.ledger.debit(f"{round_.name}/{group}", settings.population, round_.budget_window, spend)
        store.ledger.publish(f"{round_.name}/{group}", {"statement.json": files["statement.json"]})
    store.reports.refuse({(round_.key, "window-closed"): 10, (round_.key, "malformed"): 3})


def _result(names: list[str], generator: random.Random) -> dict[str, Any]:
    def row(share: float) -> dict[str, Any]:
        group = {"probability": share, "variance": 1e-8, "interval": [share * 0.9, share * 1.1]}
        return {
            "probability": share,
            "variance": 1e-8,
            "interval": [share * 0.9, share * 1.1],
            "raw_probability": share,
            "optin": group,
            "client": group,
            "optin_weight": 0.4,
            "report_influence": 1e-5,
        }

    shares = {name: generator.uniform(0.5, 1.5) / (i + 10) / 8 for i, name in enumerate(names)}
    ranked = sorted(names, key=lambda name: -shares[name])
    rest = 1 - sum(shares.values())
    trends = [{"query": name, "kind": "query", **row(shares[name])} for name in ranked]
    records = [
        {
            "query": name,
            "url": f"https://example.org/{name[13:].replace(' ', '-')}/{part}",
            "kind": "record",
            **row(shares[name] / 2),
        }
        for name in ranked
        for part in ("a", "b")
    ]
    return {
        "format": "searchblend-result",
        "version": 1,
        "method": "best",
        "guarantee": {
            "epsilon": 1.0,
            "delta": 1e-5,
            "holds": True,
            "unit": "",
            "neighbors": "",
            "groups": [],
            "conditions": [],
        },
        "head": {"queries": len(names), "records": 2 * len(names), "digest": ""},
        "parameters": {},
        "mechanism": {},
        "groups": {"optin_users": 20_000, "head_users": 20_000, "estimate_users": 20_000, "clients": 100_000},
        "group_check": {
            "agrees": True,
            "p_value": 0.4,
            "tested_queries": 100,
            "divergence": 0.0,
            "flagged_queries": [],
        },
        "records": [*records, {"query": None, "url": None, "kind": "rest", **row(rest)}],
        "trends": [*trends, {"query": None, "kind": "rest", **row(rest)}],
    }
