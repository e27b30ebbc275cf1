"""The page before a step that cannot be undone: what there is so far, what the step costs, yes or no.

A form without the answer gets this page, which sends the same form again; so it works without a script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from searchblend.service.actions import Action
from searchblend.service.checkup import settings_trouble
from searchblend.service.console.round_page import Spent
from searchblend.service.console.words import number, plain
from searchblend.service.round_model import settings_of
from searchblend.service.task_settings import TaskSettings
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import ENDED, State

_NOT_KEPT: Final = ("form", "sure")
_OPTIN: Final = frozenset({State.OPTIN_OPEN})
_CLIENTS: Final = frozenset({State.CLIENT_OPEN, State.CLIENT_GRACE})


@dataclass(frozen=True)
class QuestionPage:
    """A step that waits for its yes."""

    words: str
    price: str
    so_far: Sequence[str]
    task: Task
    round: Round | None
    back: str


def question(store: ServiceStore, action: Action[Any, Any], task: Task, round_: Round | None) -> QuestionPage | None:
    """What is asked before an action; nothing where it needs no answer, or would be refused in this state anyway."""
    if action.asks is None or (round_ is not None and round_.state not in action.before):
        return None
    current = round_ or _under_way(store, task)
    settings = None if current is None or settings_trouble(current) else settings_of(current)
    so_far = [] if current is None or settings is None else _so_far(store, current, settings)
    back = f"/console/tasks/{task.task}" + (f"/rounds/{round_.number}" if round_ else "")
    back += "/review" if action.role == "reviewer" else ""
    price = action.asks.price.format(epsilon=plain(settings.epsilon if settings else None))
    return QuestionPage(action.asks.words, price, so_far, task, round_, back)


def kept_fields(form: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """What the form held, to be sent again with the answer."""
    return [(name, value) for name, values in form.items() if name not in _NOT_KEPT for value in values]


def _under_way(store: ServiceStore, task: Task) -> Round | None:
    rounds = store.rounds.rounds(task.task)
    return rounds[-1] if rounds and rounds[-1].state not in ENDED else None


def _so_far(store: ServiceStore, round_: Round, settings: TaskSettings) -> list[str]:
    """How many took part, whether they are enough, and what the round was charged."""
    lines = []
    if round_.state in _OPTIN:
        lines += _taken(store.contributions.count(round_.key), _codes(store, round_), settings.min_optin, "records")
    elif round_.state in _CLIENTS:
        reports = store.reports.n_seen(round_.key)
        lines += _taken(reports, settings.expected_clients, settings.min_clients, "reports")
    debits = Spent.of(store.ledger.book(), round_, settings.population).of_round
    lines += [f"Charged already, and not given back: ε = {plain(row.epsilon)} to {row.group}." for row in debits]
    return lines


def _taken(taken: int, expected: int, fewest: int, what: str) -> list[str]:
    of = f" of {number(expected)} expected" if expected else ""
    lines = [f"{number(taken)}{of} {what} so far."]
    if taken < fewest:
        lines.append(f"The task asks for at least {number(fewest)}: with fewer the round ends without a result.")
    return lines


def _codes(store: ServiceStore, round_: Round) -> int:
    """How many opt-in users could take part. The codes themselves are not for the console's account to read."""
    return sum(entry.detail.get("codes", 0) for entry in store.audit.of_task(round_.task))
