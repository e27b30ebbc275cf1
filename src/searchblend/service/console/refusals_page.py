"""Why messages were refused, over all rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from searchblend.service.console.words import REFUSALS, Advice
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore

_SHOWN_ROUNDS: Final = 12


@dataclass(frozen=True)
class Reason:
    name: str
    advice: Advice
    total: int
    latest: list[tuple[Task, Round, int]]
    """rounds in which it happened, newest first"""


@dataclass(frozen=True)
class RefusalsPage:
    """Why messages were refused, round by round, and what to do about it."""

    reasons: list[Reason]
    """that happened, most frequent first"""
    total: int
    never: list[str]


def read_refusals(store: ServiceStore) -> RefusalsPage:
    names = {task.task: task for task in store.rounds.tasks()}
    rounds = sorted(store.rounds.rounds(), key=lambda round_: -round_.changed)
    refused = store.reports.refusals_by_round()
    reasons = []
    for name, advice in REFUSALS.items():
        where = [
            (names[round_.task], round_, refused[round_.key][name])
            for round_ in rounds
            if name in refused.get(round_.key, {})
        ]
        if where:
            reasons.append(Reason(name, advice, sum(n for _, _, n in where), where[:_SHOWN_ROUNDS]))
    reasons.sort(key=lambda reason: -reason.total)
    happened = {reason.name for reason in reasons}
    return RefusalsPage(
        reasons, sum(reason.total for reason in reasons), [name for name in REFUSALS if name not in happened]
    )
