"""Compute cells on all cores, keep each as soon as it is done, and go on where an earlier evaluation stopped."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Final

from searchblend.blender.method import METHODS
from searchblend.core.errors import RunError
from searchblend.synthetic.worker_pool import WorkerPool
from searchblend_lab.papers.algorithms import algorithm_named
from searchblend_lab.papers.cells import Cell, Result, Results
from searchblend_lab.papers.people import People, make_known
from searchblend_lab.papers.store import CellStore

_CHUNK_COST: Final = 2.0
OnCost = Callable[[float], None]


def compute_cells(
    cells: Iterable[Cell],
    *,
    seed: int,
    store: CellStore | None = None,
    workers: int = 1,
    people: Sequence[People] = (),
    on_cost: OnCost = lambda cost: None,
) -> Results:
    """The results of these cells. What the store holds is not computed again; what is computed, it keeps.

    ``on_cost`` is told the cost of the cells that were just done; those from the store are told first.
    """
    for group in people:
        make_known(group)
    wanted = dict.fromkeys(cells)
    keys = {cell: cell.key(seed, code_of(cell)) for cell in wanted}
    kept = store.get(keys.values()) if store else {}
    results: dict[Cell, Result] = {cell: kept[key] for cell, key in keys.items() if key in kept}
    on_cost(sum(cell.cost for cell in results))
    missing = [cell for cell in wanted if cell not in results]
    for done in _computed(chunks(missing), seed, workers, people):
        if store:
            store.put({keys[cell]: result for cell, result in done})
        results.update(done)
        on_cost(sum(cell.cost for cell, _ in done))
    return Results(results)


def chunks(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells of the same people and run side by side, so that these are drawn once; none longer than a few seconds."""
    by_people: dict[tuple[object, ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        settings = dict(cell.settings)
        by_people[cell.kind, cell.run, *(settings.get(name) for name in ("people", "users"))].append(cell)
    pieces: list[list[Cell]] = []
    for group in by_people.values():
        group.sort(key=lambda cell: repr(dict(cell.settings).get("optin")))
        pieces.append([])
        for cell in group:
            if sum(other.cost for other in pieces[-1]) >= _CHUNK_COST:
                pieces.append([])
            pieces[-1].append(cell)
    return pieces


def _computed(
    pieces: list[list[Cell]], seed: int, workers: int, people: Sequence[People]
) -> Iterable[list[tuple[Cell, dict[str, Any]]]]:
    if workers == 1 or len(pieces) <= 1:
        for piece in pieces:
            yield compute_chunk(piece, seed)
        return
    try:
        with WorkerPool(workers, _start_worker, tuple(people)) as pool:
            for future in as_completed([pool.submit(compute_chunk, piece, seed) for piece in pieces]):
                yield future.result()
    except BrokenProcessPool as error:
        raise RunError("a worker process ended unexpectedly (out of memory?); finished runs are kept") from error


def _start_worker(people: tuple[People, ...]) -> None:
    for group in people:
        make_known(group)


def compute_chunk(cells: list[Cell], seed: int) -> list[tuple[Cell, dict[str, Any]]]:
    return [(cell, cell.compute(seed)) for cell in cells]


def code_of(cell: Cell) -> str:
    """The source of someone's own algorithm: a changed one is computed anew."""
    method = dict(cell.settings).get("method")
    if not isinstance(method, str) or method in METHODS:
        return ""
    file = inspect.getsourcefile(type(algorithm_named(method)))
    return Path(file).read_text(encoding="utf-8") if file else ""
