"""``searchblend round``: drive one round of a task, on the machine that has its database."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from searchblend.cli.service_options import actor_of, opened, show
from searchblend.core.documents import encode
from searchblend.core.errors import UsageError
from searchblend.service.clock import SystemClock
from searchblend.service.lifecycle import Lifecycle
from searchblend.service.requests import Position, Removal, Review
from searchblend.store.rounds import Round
from searchblend.store.service_store import ServiceStore


def run(options: argparse.Namespace) -> None:
    with opened(options) as store:
        show(_act(options, store), as_json=options.json)


def _act(options: argparse.Namespace, store: ServiceStore) -> Any:
    lifecycle = Lifecycle(store, SystemClock())
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
        return {**_document(round_), **encode(lifecycle.numbers(round_))}
    if options.action == "candidate":
        figures, hits = lifecycle.show_candidate(round_, actor=actor)
        queries = [[i, *entry] for i, entry in enumerate(figures.head.as_json())]
        return {"opt_in_users": figures.n_users, "queries": queries, "hits": encode(hits)}
    if options.action == "review":
        remove = [Removal(*_position(text.rpartition(":")[0]), text.rpartition(":")[2]) for text in options.remove]
        keep = [Position(*_position(text)) for text in options.keep]
        return _document(lifecycle.review(round_, Review(tuple(remove), tuple(keep)), actor=actor))
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
