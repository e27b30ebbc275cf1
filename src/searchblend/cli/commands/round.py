"""``searchblend round``: drive one round of a task, on the machine that has its database.

The actions are those of ``service/actions.py``; ``show`` and ``candidate`` only read.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from searchblend.cli.arguments import add_actions, add_command, positive_int
from searchblend.cli.service_options import actor_of, add_place, add_token_file, opened, print_document, read_json
from searchblend.core.documents import decode, encode
from searchblend.core.errors import UsageError
from searchblend.service.actions import ASK_AGAIN, Action, CountsFile, Extension, Nothing, actions_for, is_done
from searchblend.service.clock import SystemClock
from searchblend.service.review import Position, Rejection, Removal, Review

if TYPE_CHECKING:
    from searchblend.service.lifecycle import Lifecycle
    from searchblend.store.rounds import Round
    from searchblend.store.service_store import ServiceStore

EXAMPLES = """\
examples:
  searchblend round draft searches
  searchblend round open searches 1                    the curator makes the key and opens it
  searchblend round show searches 1
  searchblend round close-opt-in searches 1
  searchblend round candidate searches 1 --token-file rob.token        what the reviewer looks at
  searchblend round review searches 1 --token-file rob.token --remove 4:other --remove 7/2:credentials --keep 3
  searchblend round extend searches 1 24               devices have a day longer
  searchblend round close-clients searches 1
"""
_READS: Final = {
    "show": "state, sizes, refusals and the conservation law of a round",
    "candidate": "the list to review, with the filters' hits",
}


def _actions() -> dict[str, Action[Any, Any]]:
    return {action.name: action for action in actions_for("command") if action.gives == "round"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = add_actions(parser)
    for name, action in _actions().items():
        command = add_command(commands, name, action.help, EXAMPLES)
        command.add_argument("task", metavar="TASK", help="name or id of the task")
        if action.on == "round":
            command.add_argument("round", type=positive_int, metavar="ROUND", help="number of the round")
        add_place(command)
        add_token_file(command)
        _add_needs(command, action.needs)
    for name, what in _READS.items():
        command = add_command(commands, name, what, EXAMPLES)
        command.add_argument("task", metavar="TASK", help="name or id of the task")
        command.add_argument("round", type=positive_int, metavar="ROUND", help="number of the round")
        add_place(command)
        if name == "candidate":
            add_token_file(command)


def _add_needs(command: argparse.ArgumentParser, needs: type) -> None:
    if needs is Extension:
        command.add_argument("hours", type=positive_int, metavar="HOURS", help="hours to add")
    if needs is CountsFile:
        command.add_argument("file", type=Path, metavar="FILE", help="what aggregate wrote")
    if needs is Rejection:
        command.add_argument(
            "--reason", required=True, metavar="CODE", help="why: a code as in a review, for example other"
        )
    if needs is Review:
        command.add_argument(
            "--remove",
            action="append",
            default=[],
            metavar="QUERY[/URL]:REASON",
            help="a query or result to remove, by position; repeatable",
        )
        command.add_argument(
            "--keep", action="append", default=[], metavar="QUERY[/URL]", help="a filter's hit to keep; repeatable"
        )


def run(options: argparse.Namespace) -> None:
    from searchblend.service.lifecycle import Lifecycle

    with opened(options) as store:
        print_document(_act(options, store, Lifecycle(store, SystemClock())), as_json=options.json)


def _act(options: argparse.Namespace, store: ServiceStore, lifecycle: Lifecycle) -> Any:
    if options.action in _READS:
        return _read(options, store, lifecycle)
    action = _actions()[options.action]
    actor = actor_of(options, store, action.role)
    task = store.rounds.task(options.task)
    target = task if action.on == "task" else store.rounds.round(task.task, options.round)
    taken = action.take(lifecycle, target, _needs(options, action.needs), actor)
    result = _document(taken)
    if not is_done(action, taken):
        return {**result, "next": ASK_AGAIN}
    if options.action == "open":
        return {**result, "next": "the curator opens it as soon as it runs"}
    return result


def _read(options: argparse.Namespace, store: ServiceStore, lifecycle: Lifecycle) -> Any:
    from searchblend.service.round_model import RoundNumbers

    actor = actor_of(options, store, "reviewer") if options.action == "candidate" else ""
    round_ = store.rounds.round(store.rounds.task(options.task).task, options.round)
    if options.action == "show":
        return {**_document(round_), **encode(RoundNumbers.read(store, round_))}
    figures, hits = lifecycle.show_candidate(round_, actor=actor)
    queries = [[i, *entry] for i, entry in enumerate(figures.head.as_json())]
    return {"opt_in_users": figures.n_users, "queries": queries, "hits": encode(hits)}


def _needs(options: argparse.Namespace, needs: type) -> Nothing | CountsFile | Extension | Rejection | Review:
    """What the action needs, from the options that ``_add_needs`` added."""
    if needs is Extension:
        return decode(Extension, {"hours": options.hours})
    if needs is CountsFile:
        return CountsFile(read_json(options.file))
    if needs is Rejection:
        return Rejection(options.reason)
    if needs is Review:
        remove = [Removal(*_position(text.rpartition(":")[0]), text.rpartition(":")[2]) for text in options.remove]
        return Review(tuple(remove), tuple(Position(*_position(text)) for text in options.keep))
    return Nothing()


def _position(text: str) -> tuple[int, int | None]:
    match = re.fullmatch(r"(\d{1,6})(?:/(\d{1,6}))?", text)
    if not match:
        raise UsageError("expected the position of a query, or QUERY/URL, for example 4:other or 7/2:credentials")
    return int(match[1]), int(match[2]) if match[2] else None


def _document(round_: Round) -> dict[str, str | int]:
    return {"task": round_.task, "round": round_.number, "state": round_.state, "version": round_.version}
