"""The unit of work of an experiment: one run of one setting, computed once and kept.

A cell's result depends on its kind, its settings, its run number, the seed and the code, and on nothing else: not on
the order of work, not on the experiment that asked. Experiments that need the same cell share it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

Scalar = str | int | float | bool | None
Result = Mapping[str, Any]
PACKAGE: Final = Path(__file__).parents[2]


@dataclass(frozen=True)
class Kind:
    """What computes cells of one kind, and the files whose change makes old results worthless."""

    name: str
    function: str
    """``module:function``, called with the settings, the run number and the seed"""
    sources: tuple[str, ...]
    """files and folders of the package"""

    def compute(self, settings: Mapping[str, Scalar], run: int, seed: int) -> dict[str, Any]:
        module, _, name = self.function.partition(":")
        result: dict[str, Any] = getattr(import_module(module), name)(settings, run, seed)
        return result

    @property
    def version(self) -> str:
        return _digest(self.sources)


@cache
def _digest(sources: tuple[str, ...]) -> str:
    digest = hashlib.sha256(np.__version__.encode())
    for source in sources:
        path = PACKAGE / source
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


_BASE: Final = ("errors.py", "params.py", "privacy.py", "randomness.py", "records.py", "mechanisms", "blender")
_EVALUATION: Final = tuple(
    f"evaluation/{name}.py"
    for name in ("algorithms", "count_group", "count_reports", "indexed_records", "metrics", "population", "seeded")
)
_CLICK_GRAPH: Final = (*_BASE, "clickgraph", "evaluation/zipf_log.py", "evaluation/experiments/kkmn_cells.py")
KINDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(
            "hybrid",
            "searchblend.evaluation.experiments.hybrid_cells:compute",
            (*_BASE, *_EVALUATION, "evaluation/experiments/hybrid_cells.py", "evaluation/experiments/people.py"),
        ),
        Kind(
            "several-records",
            "searchblend.evaluation.experiments.several_records_cells:compute",
            (*_BASE, *_EVALUATION, "evaluation/experiments/several_records_cells.py"),
        ),
        Kind(
            "local-search",
            "searchblend.evaluation.experiments.local_search_cells:compute",
            (
                *(*_BASE, *_EVALUATION, "normalization.py", "search/build_pack.py", "search/pack.py"),
                *("evaluation/experiments/local_search_cells.py", "evaluation/experiments/people.py"),
            ),
        ),
        Kind(
            "statistics",
            "searchblend.evaluation.experiments.statistics_cells:compute",
            (*_BASE, *_EVALUATION, "evaluation/experiments/statistics_cells.py"),
        ),
        Kind(
            "graph-algorithms",
            "searchblend.evaluation.experiments.graph_algorithm_cells:compute",
            (*_CLICK_GRAPH, "evaluation/experiments/graph_algorithm_cells.py"),
        ),
        *(
            Kind(f"kkmn-{name}", f"searchblend.evaluation.experiments.kkmn_cells:compute_{name}", _CLICK_GRAPH)
            for name in ("selection", "span", "study", "keywords")
        ),
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
