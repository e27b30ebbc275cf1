"""What a device would answer: a box over the latest pack, its size and age, and the packs before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from searchblend.search.build_pack import SearchIndex
from searchblend.search.pack import Pack
from searchblend.search.pack_index import EXACT, PREFIX, TYPO
from searchblend.service.workers.round_packs import DELTA_FILE, PACK_FILE
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import State

_HOW: Final = {EXACT: "exact", PREFIX: "begins like it", TYPO: "with typing errors"}
LIMIT: Final = 8
LONGEST_TYPED: Final = 200
_SHOWN: Final = 20


@dataclass(frozen=True)
class SearchAnswer:
    query: str
    how: str
    """exact, longer, or with typing errors"""
    share: float
    at_least: float
    urls: list[tuple[str, float]]


@dataclass(frozen=True)
class PackRow:
    """The pack of one round and the deltas that lead to it."""

    round: Round
    size: int
    deltas: list[tuple[int, int]]
    """from round, size"""


@dataclass(frozen=True)
class SearchPage:
    task: Task
    typed: str
    answers: list[SearchAnswer]
    latest: PackRow | None
    n_queries: int
    history: list[PackRow]
    n_packs: int


def read_search(store: ServiceStore, task_name: str, typed: str) -> SearchPage:
    """Four statements; the answer itself is the device's own code on the device's own file."""
    task = store.rounds.task(task_name)
    rounds = {round_.key: round_ for round_ in store.rounds.rounds(task.task, states={State.PUBLISHED})}
    files = store.artifacts.files(task.task)
    rows = [_row(round_, files.get(key, {})) for key, round_ in rounds.items() if PACK_FILE in files.get(key, {})]
    latest = rows[-1] if rows else None
    index = None
    if latest:
        content = store.artifacts.get(files[latest.round.key][PACK_FILE][0])
        index = SearchIndex(Pack(content[0])) if content else None
    return SearchPage(
        task=task,
        typed=typed,
        answers=_answers(index, typed) if index and typed else [],
        latest=latest,
        n_queries=len(index) if index else 0,
        history=list(reversed(rows[-_SHOWN:])),
        n_packs=len(rows),
    )


def _row(round_: Round, files: dict[str, tuple[str, int]]) -> PackRow:
    deltas = sorted((int(match[1]), size) for name, (_, size) in files.items() if (match := DELTA_FILE.fullmatch(name)))
    return PackRow(round_, files[PACK_FILE][1], deltas)


def _answers(index: SearchIndex, typed: str) -> list[SearchAnswer]:
    unit = index.pack.info.unit
    return [
        SearchAnswer(
            query=match.entry.query,
            how=_HOW[match.kind],
            share=match.entry.probability * unit,
            at_least=max(match.entry.lower, 0) * unit,
            urls=[(url.url, url.probability * unit) for url in match.entry.urls],
        )
        for match in index.search(typed[:LONGEST_TYPED], LIMIT)
    ]
