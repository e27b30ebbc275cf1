"""An evaluation: some experiments, computed together, with everything they give written to a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from searchblend.blender.groups import UserGroup
from searchblend.core.records import Record
from searchblend.mechanisms.tally import Ints
from searchblend_lab.papers.experiment import Experiment, Outcome, Request
from searchblend_lab.papers.outputs import write_outcome
from searchblend_lab.papers.page import write_index, write_page
from searchblend_lab.papers.people import LogPeople, People, make_known
from searchblend_lab.papers.runner import compute_cells
from searchblend_lab.papers.store import CellStore

CELLS_FILE: Final = ".cells.sqlite"
OnCost = Callable[[float, float], None]


@dataclass(frozen=True)
class Evaluated:
    """One experiment of an evaluation."""

    experiment: Experiment
    outcome: Outcome
    files: list[Path]


def evaluate(
    experiments: Sequence[Experiment],
    request: Request,
    folder: Path,
    *,
    workers: int = 1,
    people: Sequence[People] = (),
    html: bool = False,
    on_cost: OnCost = lambda done, total: None,
    on_outcome: Callable[[Evaluated], None] = lambda evaluated: None,
) -> list[Evaluated]:
    """Compute all cells that the experiments need, each once, then conclude.

    Finished cells are kept in the folder: an evaluation that was interrupted goes on from there. ``on_cost`` hears how
    much work is done, of how much; ``on_outcome`` hears of every experiment as soon as its files are there.
    """
    for group in people:
        make_known(group)
    cells = dict.fromkeys(cell for experiment in experiments for cell in experiment.cells(request))
    total, done = sum(cell.cost for cell in cells), 0.0

    def add(cost: float) -> None:
        nonlocal done
        done += cost
        on_cost(done, total)

    with CellStore(folder / CELLS_FILE) as store:
        results = compute_cells(cells, seed=request.seed, store=store, workers=workers, people=people, on_cost=add)
    evaluated = []
    for experiment in experiments:
        outcome = experiment.conclude(request, results)
        evaluated.append(Evaluated(experiment, outcome, write_outcome(experiment, outcome, request, folder)))
        on_outcome(evaluated[-1])
    write_index(folder)
    if html:
        write_page(folder)
    return evaluated


def people_of(label: str, groups: Sequence[UserGroup], searches: tuple[Ints, Ints] | None = None) -> LogPeople:
    """Everyone in these groups with the record that was drawn for them, and perhaps all of their searches."""
    counts: dict[Record, int] = {}
    for group in groups:
        for count, records in group.tally().at_least(1).items():
            for record in records:
                counts[record] = counts.get(record, 0) + count
    ordered = sorted(counts, key=lambda record: (-counts[record], str(record.query), str(record.url)))
    return LogPeople(label, ordered, np.array([counts[record] for record in ordered], dtype=np.int64), searches)
