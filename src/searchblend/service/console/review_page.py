"""The review of a head list: what waits for it, the list with the filters' hits, and what the reviewer ticked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from searchblend.core.errors import InvalidParameter
from searchblend.service.api.answers import number_of
from searchblend.service.lifecycle import Lifecycle, is_opener
from searchblend.service.review import REASONS, Position, Removal, Review
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import State

REASON_WORDS: Final = {
    "email": "an e-mail address",
    "phone": "a phone number",
    "card": "a card number",
    "credentials": "a password or a token",
    "long-number": "a long number",
    "blocklist": "a word of the blocklist",
    "unsafe-url": "an address that could harm",
    "other": "something else",
}
assert tuple(REASON_WORDS) == REASONS


@dataclass(frozen=True)
class Listed:
    """A query or a URL of the candidate list."""

    place: str
    """its name in the form: ``3`` or ``3.1``"""
    text: str
    reason: str
    """of the filter that caught it, else nothing"""


@dataclass(frozen=True)
class Candidate:
    query: Listed
    urls: list[Listed]
    share: float | None
    """of searches in the latest published round, where the query is listed there"""


@dataclass(frozen=True)
class ReviewPage:
    """The list before anyone else sees it: filter hits stand out, and every removal has a reason."""

    task: Task
    round: Round
    candidates: list[Candidate]
    hits: int
    n_users: int
    own: bool
    """whether the reader opened the round, and so may not review it"""
    fewest: int
    since: int | None
    """the latest published round, whose shares are public"""


def read_review(store: ServiceStore, lifecycle: Lifecycle, task_name: str, number: int, reader: str) -> ReviewPage:
    task = store.rounds.task(task_name)
    round_ = store.rounds.round(task.task, number)
    figures, hits = lifecycle.show_candidate(round_, actor=reader)
    reasons = {(hit.query, hit.url): hit.reason for hit in hits}
    published = store.rounds.rounds(task.task, states={State.PUBLISHED})[-1:]
    listed = store.artifacts.lists([each.key for each in published])
    shares = {row.query: row.probability for rows in listed.values() for row in rows}
    candidates = [
        Candidate(
            Listed(str(i), query, reasons.get((i, None), "")),
            [Listed(f"{i}.{j}", url, reasons.get((i, j), "")) for j, url in enumerate(figures.head.urls(query))],
            shares.get(query),
        )
        for i, query in enumerate(figures.head.queries)
    ]
    fewest = int(round_.settings["min_queries"])
    own, since = is_opener(reader, round_), published[0].number if published else None
    return ReviewPage(task, round_, candidates, len(hits), figures.n_users, own, fewest, since)


def review_of_form(form: Mapping[str, Sequence[str]]) -> Review:
    """What the reviewer ticked: entries to remove, each with the reason; and hits to keep on purpose."""
    ticked = [_position(place) for place in form.get("remove", ())]
    keep = [_position(place) for place in form.get("keep", ())]
    reason = (form.get("reason") or [""])[0]
    if ticked and reason not in REASONS:
        raise InvalidParameter("reason", "choose why the ticked entries are removed")
    return Review(tuple(Removal(entry.query, entry.url, reason) for entry in ticked), tuple(keep))


def _position(place: str) -> Position:
    first, dot, second = place.partition(".")
    query, url = number_of(first), number_of(second)
    if query is None or (dot and url is None):
        raise InvalidParameter("remove", "expected positions of the candidate list")
    return Position(query, url)


def read_queue(store: ServiceStore) -> list[tuple[Task, Round]]:
    names = {task.task: task for task in store.rounds.tasks()}
    return [(names[round_.task], round_) for round_ in store.rounds.rounds(states={State.SHREDDED})]
