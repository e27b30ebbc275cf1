"""``searchblend task``: what is asked, of whom, and at what cost."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

from searchblend.accounting.totals import Cap, default_delta, total_of
from searchblend.cli.service_options import actor_of, opened, show
from searchblend.core.documents import decode
from searchblend.core.errors import UsageError
from searchblend.core.privacy import Budget
from searchblend.service.clock import SystemClock
from searchblend.service.lifecycle import Lifecycle
from searchblend.service.task_settings import TaskSettings
from searchblend.store.ledger_book import Book
from searchblend.store.rounds import Task
from searchblend.store.service_store import ServiceStore

_CHANGES: Final = ("create", "kill", "enrol", "cap")


def run(options: argparse.Namespace) -> None:
    if options.action == "cap" and not (options.per_window or options.lifetime):
        raise UsageError("cap: expected --per-window, --lifetime or both")
    settings = _settings(options) if options.action == "create" else None
    with opened(options, create=options.action in ("create", "cap")) as store:
        show(_act(options, store, settings), as_json=options.json)


def _act(options: argparse.Namespace, store: ServiceStore, settings: TaskSettings | None) -> Any:
    lifecycle = Lifecycle(store, SystemClock())
    actor = actor_of(options, store, "operator") if options.action in _CHANGES else ""
    if settings is not None:
        return _document(lifecycle.add_task(settings, actor=actor))
    if options.action == "list":
        return {"tasks": [_document(task) for task in store.rounds.tasks()]}
    if options.action == "cap":
        window, lifetime = (Budget(*pair) if pair else None for pair in (options.per_window, options.lifetime))
        cap = Cap(window, lifetime)
        with store.transaction():
            store.ledger.set_cap(cap)
            store.audit.append(actor, "cap set", SystemClock().now(), cap.as_json())
        return {"cap": cap.as_json()}
    if options.action == "ledger":
        return ledger_document(store.ledger.check())
    task = store.rounds.task(options.task)
    if options.action == "kill":
        lifecycle.kill(task, actor=actor)
    if options.action == "enrol":
        return {"codes": lifecycle.enrol(task, options.count, actor=actor)}
    return _document(store.rounds.task(task.task))


def ledger_document(book: Book) -> dict[str, Any]:
    """The debits of all rounds and each population's totals; the chain and the stored files were checked."""
    totals = []
    for population, window in book.scopes():
        spends = book.spends(population, window)
        budget = book.cap and (book.cap.lifetime if window is None else book.cap.window)
        totals.append(
            {
                "population": population,
                "window": window or "all (lifetime)",
                **total_of(spends, budget.delta if budget else default_delta(spends)).as_json()["basic"],
                "cap": {"epsilon": budget.epsilon, "delta": budget.delta} if budget else None,
            }
        )
    debits = [
        {
            "release_id": entry.release_id,
            "window": entry.window,
            "epsilon": entry.spend.epsilon,
            "delta": entry.spend.delta,
            "mechanism": entry.spend.mechanism,
            "published": entry.release_id in book.published,
        }
        for entry in book.entries.values()
    ]
    return {"debits": debits, "totals": totals, "head": book.head}


def _settings(options: argparse.Namespace) -> TaskSettings:
    values: dict[str, Any] = {}
    if options.settings:
        try:
            values = json.loads(options.settings.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"{options.settings}: cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{options.settings}: not JSON") from error
        if not isinstance(values, dict):
            raise UsageError(f"{options.settings}: expected a JSON object")
    for pair in options.set:
        name, equals, text = pair.partition("=")
        if not equals:
            raise UsageError("--set: expected NAME=VALUE")
        values[name] = _value(text)
    return decode(TaskSettings, {**values, "name": options.task})


def _value(text: str) -> Any:
    """A number or a truth value where it is one, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _document(task: Task) -> dict[str, Any]:
    return {"task": task.task, "name": task.name, "killed": task.killed, "settings": dict(task.settings)}
