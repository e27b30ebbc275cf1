"""``searchblend round``: drive one round of a task, on the machine that has its database."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchblend.cli.arguments import add_actions, add_command, positive_int
from searchblend.cli.service_options import actor_of, add_place, add_token_file, opened, print_document
from searchblend.core.errors import UsageError
from searchblend.service.clock import SystemClock

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
  searchblend round close-clients searches 1
"""
_ROUND_ACTIONS = {
    "draft": "make a round with the task's settings",
    "open": "ask the curator to open a round",
    "show": "state, sizes, refusals and the conservation law of a round",
    "close-opt-in": "end the opt-in window now",
    "candidate": "the list to review, with the filters' hits",
    "review": "approve the list without what is removed",
    "close-clients": "end the clients' window now",
    "end-grace": "take no more reports",
    "load-counts": "close a round with the counts of `searchblend aggregate`",
    "abort": "end a round without a result",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    for name, what in _ROUND_ACTIONS.items():
        action = add_command(actions, name, what, EXAMPLES)
        action.add_argument("task", metavar="TASK", help="its name or id")
        if name != "draft":
            action.add_argument("round", type=positive_int, metavar="ROUND", help="its number")
        add_place(action)
        if name != "show":
            add_token_file(action)
        if name == "load-counts":
            action.add_argument("file", type=Path, metavar="FILE", help="what aggregate wrote")
        if name == "review":
            action.add_argument(
                "--remove", action="append", default=[], metavar="QUERY[/URL]:REASON", help="by position; repeatable"
            )
            action.add_argument(
                "--keep", action="append", default=[], metavar="QUERY[/URL]", help="a filter's hit to keep; repeatable"
            )


def run(options: argparse.Namespace) -> None:
    from searchblend.service.lifecycle import Lifecycle

    with opened(options) as store:
        print_document(_act(options, store, Lifecycle(store, SystemClock())), as_json=options.json)


def _act(options: argparse.Namespace, store: ServiceStore, lifecycle: Lifecycle) -> Any:
    role = "reviewer" if options.action in ("candidate", "review") else "operator"
    actor = actor_of(options, store, role) if options.action != "show" else ""
    task = store.rounds.task(options.task)
    if options.action == "draft":
        return _document(lifecycle.draft_round(task, actor=actor))
    round_ = store.rounds.round(task.task, options.round)
    if options.action == "open":
        lifecycle.request_open(round_, actor=actor)
        return {**_document(round_), "next": "the curator opens it as soon as it runs"}
    if options.action == "show":
        return {**_document(round_), **lifecycle.figures(round_)}
    if options.action == "candidate":
        figures, hits = lifecycle.look_at_candidate(round_, actor=actor)
        queries = [[i, *entry] for i, entry in enumerate(figures.head.as_json())]
        return {"opt_in_users": figures.n_users, "queries": queries, "hits": hits}
    if options.action == "review":
        remove = [(*_position(text.rpartition(":")[0]), text.rpartition(":")[2]) for text in options.remove]
        keep = [_position(text) for text in options.keep]
        return _document(lifecycle.review(round_, actor=actor, remove=remove, keep=keep))
    if options.action == "load-counts":
        return _document(lifecycle.close_with_counts(round_, _counts_file(options.file), actor=actor))
    if options.action == "abort":
        return _document(lifecycle.abort(round_, actor=actor, reason="operator"))
    arrow = {
        "close-opt-in": lifecycle.close_optin,
        "close-clients": lifecycle.close_clients,
        "end-grace": lifecycle.end_grace,
    }[options.action]
    return _document(arrow(round_, actor=actor))


def _counts_file(path: Path) -> Any:
    import json

    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON") from error


def _position(text: str) -> tuple[int, int | None]:
    match = re.fullmatch(r"(\d{1,6})(?:/(\d{1,6}))?", text)
    if not match:
        raise UsageError("expected the position of a query, or QUERY/URL, for example 4:other or 7/2:credentials")
    return int(match[1]), int(match[2]) if match[2] else None


def _document(round_: Round) -> dict[str, Any]:
    return {"task": round_.task, "round": round_.number, "state": round_.state, "version": round_.version}
