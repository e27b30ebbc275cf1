"""``searchblend task``: what is asked, of whom, and at what cost."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchblend.accounting.totals import BudgetCap
from searchblend.cli.arguments import add_actions, add_cap, add_command, positive_int
from searchblend.cli.service_options import actor_of, add_place, add_token_file, opened, print_document, read_json
from searchblend.core.documents import JsonObject, decode, encode
from searchblend.core.errors import UsageError
from searchblend.service.actions import ASK_AGAIN, Action, Adjustment, NewCodes, Nothing, actions_for, is_done
from searchblend.service.clock import SystemClock

if TYPE_CHECKING:
    from searchblend.service.lifecycle import Lifecycle
    from searchblend.service.task_settings import TaskSettings
    from searchblend.store.ledger_book import Book
    from searchblend.store.rounds import Task
    from searchblend.store.service_store import ServiceStore

EXAMPLES = """\
examples:
  searchblend task cap --lifetime 50,1e-3 --per-window 8,1e-4
  searchblend task create searches --set epsilon=2 --set market=en-GB
  searchblend task create searches --settings task.json
  searchblend task list --json
  searchblend task adjust searches min_clients=2000    for rounds that are drafted from now on
  searchblend task enrol searches 100                  codes for opt-in users, shown once
  searchblend task ledger                              debits of all rounds, totals, what is left of the cap
  searchblend task kill searches
"""


def _actions() -> dict[str, Action[Any, Any]]:
    """Those of the table that change a task; the others of this command are below."""
    return {action.name: action for action in actions_for("command") if action.gives != "round"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = add_actions(parser)
    create = add_command(commands, "create", "make a task", EXAMPLES)
    create.add_argument("task", metavar="TASK", help="name of the task")
    create.add_argument("--settings", type=Path, metavar="FILE", help="settings as a JSON object")
    create.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="one setting; repeatable")
    listing = add_command(commands, "list", "all tasks", EXAMPLES)
    show = add_command(commands, "show", "one task with its settings", EXAMPLES)
    show.add_argument("task", metavar="TASK", help="name or id of the task")
    changes = [create]
    for name, action in _actions().items():
        changes.append(add_command(commands, name, action.help, EXAMPLES))
        changes[-1].add_argument("task", metavar="TASK", help="name or id of the task")
        if action.needs is Adjustment:
            changes[-1].add_argument("settings", nargs="+", metavar="NAME=VALUE", help="new values of settings")
        if action.needs is NewCodes:
            changes[-1].add_argument("count", type=positive_int, metavar="N", help="number of codes")
    cap = add_command(commands, "cap", "put a cap on the budget of all users", EXAMPLES)
    add_cap(cap)
    ledger = add_command(commands, "ledger", "what was released about whom, and what it cost", EXAMPLES)
    for command in (*changes, listing, show, cap, ledger):
        add_place(command)
    for command in (*changes, cap):
        add_token_file(command)


def run(options: argparse.Namespace) -> None:
    from searchblend.service.lifecycle import Lifecycle

    if options.action == "cap" and not (options.per_window or options.lifetime):
        raise UsageError("cap: expected --per-window, --lifetime or both")
    settings = _settings(options) if options.action == "create" else None
    with opened(options, create=options.action in ("create", "cap")) as store:
        print_document(_act(options, store, Lifecycle(store, SystemClock()), settings), as_json=options.json)


def _act(options: argparse.Namespace, store: ServiceStore, lifecycle: Lifecycle, settings: TaskSettings | None) -> Any:
    from searchblend.service.round_model import tasks_now

    if settings is not None:
        return _document(lifecycle.add_task(settings, actor=actor_of(options, store, "operator")))
    if options.action == "list":
        return {"tasks": [_document(task) for task in tasks_now(store)]}
    if options.action == "cap":
        return _set_cap(options, store)
    if options.action == "ledger":
        return ledger_document(store.ledger.check())
    action = _actions().get(options.action)
    if action is None:
        return _document(lifecycle.task(options.task))
    actor = actor_of(options, store, action.role)
    result = action.take(lifecycle, store.rounds.task(options.task), _needs(options, action.needs), actor)
    if not is_done(action, result):
        return {**_document(result), "next": ASK_AGAIN}
    return {"codes": result} if action.gives == "codes" else _document(result)


def _needs(options: argparse.Namespace, needs: type) -> Nothing | NewCodes | Adjustment:
    if needs is Adjustment:
        return Adjustment(dict(_setting(pair, "NAME=VALUE") for pair in options.settings))
    return NewCodes(options.count) if needs is NewCodes else Nothing()


def _set_cap(options: argparse.Namespace, store: ServiceStore) -> Any:
    actor = actor_of(options, store, "operator")
    cap = BudgetCap(options.per_window, options.lifetime)
    with store.transaction():
        store.ledger.set_cap(cap)
        store.audit.append(actor, "cap set", SystemClock().now(), encode(cap))
    return {"cap": encode(cap)}


def ledger_document(book: Book) -> JsonObject:
    """The debits of all rounds and each population's totals; the chain and the stored files were checked."""
    totals = []
    for population, window in book.scopes():
        budget = book.limit(window)
        totals.append(
            {
                "population": population,
                "window": window or "all (lifetime)",
                **book.totals(population, window).as_json()["basic"],
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
    from searchblend.service.task_settings import TaskSettings

    values: Any = read_json(options.settings) if options.settings else {}
    if not isinstance(values, dict):
        raise UsageError(f"{options.settings}: expected a JSON object")
    values |= dict(_setting(pair, "--set") for pair in options.set)
    return decode(TaskSettings, {**values, "name": options.task})


def _setting(pair: str, argument: str) -> tuple[str, Any]:
    name, equals, string = pair.partition("=")
    if not equals:
        raise UsageError(f"{argument}: expected NAME=VALUE")
    return name, _value(string)


def _value(string: str) -> Any:
    """A number or a truth value where it is one, else the string."""
    import json

    try:
        return json.loads(string)
    except (ValueError, RecursionError):
        return string


def _document(task: Task) -> JsonObject:
    return {"task": task.task, "name": task.name, "killed": task.killed, "settings": dict(task.settings)}
