"""The unit of work of an experiment: one run of one setting, computed once and kept.

A cell's result depends on its kind, its settings, its run number, the seed and the code, and on nothing else: not on
the order of work, not on the experiment that asked. Experiments that need the same cell share it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from searchblend_lab.papers.code_version import code_version

Scalar = str | int | float | bool | None
Result = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """What computes cells of one kind. A change in any file that it imports makes old results worthless."""

    name: str
    function: str
    """``module:function``, called with the settings, the run number and the seed"""

    def compute(self, settings: Mapping[str, Scalar], run: int, seed: int) -> dict[str, Any]:
        module, _, name = self.function.partition(":")
        result: dict[str, Any] = getattr(import_module(module), name)(settings, run, seed)
        return result

    @property
    def version(self) -> str:
        return code_version(self.function.partition(":")[0])


_HERE: Final = "searchblend_lab.papers"
KINDS: Final[dict[str, Kind]] = {
    name: Kind(name, f"{_HERE}.{function}")
    for name, function in (
        ("hybrid", "blender.hybrid_cells:compute"),
        ("several-records", "blender.several_records_cells:compute"),
        ("local-search", "blender.local_search_cells:compute"),
        ("statistics", "blender.statistics_cells:compute"),
        ("graph-algorithms", "clickgraph.graph_algorithm_cells:compute"),
        ("kkmn-selection", "clickgraph.cells:compute_selection"),
        ("kkmn-span", "clickgraph.cells:compute_span"),
        ("kkmn-study", "clickgraph.cells:compute_study"),
        ("kkmn-keywords", "clickgraph.cells:compute_keywords"),
    )
}


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

    def __init__(self, found: Mapping[Cell, Result]) -> None:
        self._found = found

    def __getitem__(self, cell: Cell) -> Result:
        return self._found[cell]

    def values(self, cells: Iterable[Cell], quantity: str) -> list[float]:
        """The numbers of these cells that have one."""
        found = (self._found[cell].get(quantity) for cell in cells)
        return [float(value) for value in found if value is not None]
