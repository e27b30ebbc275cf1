"""The unit of work of an experiment: one run of one setting, computed once and kept.

A cell's result depends on its kind, its settings, its run number, the seed and the code, and on nothing else: not on
the order of work, not on the experiment that asked. Experiments that need the same cell share it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from searchblend_lab.papers.blender import (
    hybrid_cells,
    local_search_cells,
    several_records_cells,
    statistics_cells,
)
from searchblend_lab.papers.clickgraph import cells as click_graph_cells
from searchblend_lab.papers.clickgraph import graph_algorithm_cells
from searchblend_lab.papers.code_version import code_version
from searchblend_lab.papers.comparisons import real_cells, rival_cells

Scalar = str | int | float | bool | None
Result = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """What computes cells of one kind. A change in any file that it imports makes old results worthless."""

    compute: Callable[[Mapping[str, Any], int, int], dict[str, Any]]
    """called with the settings, the run number and the seed"""

    @property
    def module(self) -> str:
        return self.compute.__module__

    @property
    def version(self) -> str:
        return code_version(self.module)


KINDS: Final[dict[str, Kind]] = {
    "hybrid": Kind(hybrid_cells.compute),
    "several-records": Kind(several_records_cells.compute),
    "local-search": Kind(local_search_cells.compute),
    "statistics": Kind(statistics_cells.compute),
    "graph-algorithms": Kind(graph_algorithm_cells.compute),
    "real-log": Kind(real_cells.compute),
    "rival": Kind(rival_cells.compute),
    "kkmn-selection": Kind(click_graph_cells.compute_selection),
    "kkmn-span": Kind(click_graph_cells.compute_span),
    "kkmn-study": Kind(click_graph_cells.compute_study),
    "kkmn-keywords": Kind(click_graph_cells.compute_keywords),
}


OF_SEARCHES: Final = frozenset({"kkmn-selection", "kkmn-span", "graph-algorithms"})
"""the kinds that take all searches of a log of one's own"""
OF_ROWS: Final = frozenset({"several-records"})
"""the kinds that take all of its records"""


@dataclass(frozen=True)
class Cell:
    """One run of one setting."""

    kind: str
    run: int
    settings: tuple[tuple[str, Scalar], ...]
    """by name, sorted"""
    cost: float = field(default=1.0, compare=False)
    """expected work, for the estimate of the time left; in seconds or so"""

    @classmethod
    def of(cls, kind: str, run: int, *, cost: float = 1.0, **settings: Scalar) -> Cell:
        return cls(kind, run, tuple(sorted(settings.items())), cost)

    def key(self, seed: int, code: str = "") -> str:
        """Where its result is kept."""
        parts = [self.kind, KINDS[self.kind].version, code, seed, self.run, self.settings]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def compute(self, seed: int) -> dict[str, Any]:
        """The result as it comes back from JSON, so that a kept one and a fresh one are the same."""
        result = KINDS[self.kind].compute(dict(self.settings), self.run, seed)
        decoded: dict[str, Any] = json.loads(json.dumps(result, allow_nan=False))
        return decoded


class Results:
    """What the cells gave."""

    def __init__(self, results: Mapping[Cell, Result]) -> None:
        self._results = results

    def __getitem__(self, cell: Cell) -> Result:
        return self._results[cell]

    def values(self, cells: Iterable[Cell], quantity: str) -> list[float]:
        """The numbers of these cells that have one."""
        quantities = (self._results[cell].get(quantity) for cell in cells)
        return [float(value) for value in quantities if value is not None]
