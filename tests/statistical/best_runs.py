"""Whole runs of method ``best`` on people with the shape of the AOL log, at the level of counts. Seeded.

Drawing how many people hold each record is the same experiment as drawing the people, and a hundred times faster. The
truth is the share among all people of the replicate, opt-in users and clients together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from unittest.mock import Mock, patch

import numpy as np

from searchblend.blender.best import blend
from searchblend.blender.best.group_check import GroupCheck, p_value_of
from searchblend.blender.estimates import Estimates
from searchblend.blender.pipeline import run_blender
from searchblend.blender.release import BlenderRelease
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.synthetic.count_group import CountGroup, RecordModel
from searchblend.synthetic.metrics import listed_cells
from searchblend.synthetic.population import AOL, AOL_USERS, URLS_PER_QUERY
from searchblend.synthetic.seeded import SeededRandomness

RANKS = 3000
"""Queries beyond are so rare that none of them is ever listed: 5 % opt-in users hold fewer than one record each."""


@cache
def _model() -> RecordModel:
    return RecordModel.of_profile(AOL, ranks=RANKS)


@dataclass(frozen=True)
class Run:
    """One release and the people it is about."""

    release: BlenderRelease
    true_cells: np.ndarray
    """among the drawn people: what holds if each has no other record (ρ_b = 1)"""

    @property
    def expected_cells(self) -> np.ndarray:
        """among all who could have been drawn: what holds if all people search alike (ρ_b = 0)"""
        return _everyone().cell_counts(self.release.head) / _PARTS

    @property
    def true_queries(self) -> np.ndarray:
        return np.add.reduceat(self.true_cells, self.release.head.first_cells())


def run_once(
    epsilon: float, optin_share: float, max_queries: int, seed: int, *, tilt: float = 0.0, project: bool = True
) -> Run:
    """One replicate: new people, a new split, a new run. ``tilt``: spread of the log odds of opting in, by query."""
    generator = np.random.Generator(np.random.PCG64(seed))
    people = _model().draw(AOL_USERS, generator)
    optin_users, clients = _tilted(people, optin_share, tilt, generator) if tilt else people.split(optin_share)
    params = BlenderParams(Budget(epsilon, 1e-5), max_head_queries=max_queries)
    release = run_blender(optin_users, clients, params, project=project, randomness=SeededRandomness(seed))
    return Run(release, people.cell_counts(release.head) / people.n_users)


_PARTS = 10**15


@cache
def _everyone() -> CountGroup:
    counts = np.rint(_model().shares * _PARTS).astype(np.int64)
    return CountGroup(_model().universe, counts, _PARTS, np.random.Generator(np.random.PCG64(0)))


of_grid = lru_cache(maxsize=96)(run_once)
"""The runs that a coverage and its planted faults share: whoever patches what runs takes ``run_once``."""


def _tilted(
    people: CountGroup, optin_share: float, tilt: float, generator: np.random.Generator
) -> tuple[CountGroup, CountGroup]:
    """Opt-in users who search otherwise: for each query the odds of opting in times exp(N(0, tilt))."""
    odds = optin_share / (1 - optin_share) * np.exp(tilt * generator.standard_normal(RANKS))
    chance = np.repeat(odds / (1 + odds), URLS_PER_QUERY)
    part = generator.binomial(people._counts, chance)
    rest = people.n_users - int(people._counts.sum())
    n = int(part.sum()) + int(generator.binomial(rest, optin_share))
    return (
        CountGroup(people._universe, part, n, generator),
        CountGroup(people._universe, people._counts - part, people.n_users - n, generator),
    )


class Coverage:
    """How many intervals hold the truth, by what they are about."""

    def __init__(self) -> None:
        self.covered: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()

    def add(self, run: Run) -> None:
        head, release = run.release.head, run.release
        for which, cells in (("", run.expected_cells), (" drawn", run.true_cells)):
            queries = np.add.reduceat(cells, head.first_cells())
            self._add("queries" + which, release.queries.raw, queries, np.arange(len(head)))
            self._add("records" + which, release.records.raw, cells, listed_cells(head))
            self._add("⟨q,⋆⟩" + which, release.records.raw, cells, stars(head))
            self._add("⋆" + which, release.queries.raw, queries, np.array([len(head)]))

    def _add(self, kind: str, estimates: Estimates, truth: np.ndarray, where: np.ndarray) -> None:
        low, high = estimates.interval[where].T
        self.covered[kind] += int(((low <= truth[where]) & (truth[where] <= high)).sum())
        self.counted[kind] += len(where)

    def rate(self, kind: str) -> float:
        return self.covered[kind] / self.counted[kind]


def stars(head: HeadList) -> np.ndarray:
    """The cells ⟨q,⋆⟩."""
    return np.cumsum(head.n_urls[:-1], dtype=np.int64) - 1


GRID = [(e, share, m) for e in (1.0, 2.0, 4.0, 6.0) for share in (0.01, 0.05) for m in (10, 50)]


def coverage_over(replicates: int, seed: int, grid: list[tuple[float, float, int]] | None = None) -> Coverage:
    """Pooled over the grid."""
    coverage = Coverage()
    for number, (epsilon, share, max_queries) in enumerate(grid or GRID):
        for replicate in range(replicates):
            coverage.add(of_grid(epsilon, share, max_queries, seed + 1000 * number + replicate))
    return coverage


Judge = Callable[[np.ndarray, np.ndarray], float]
"""standardized gaps, and which of them are testable -> p-value"""


@lru_cache(maxsize=200)
def _judged(epsilon: float, seed: int, tilt: float) -> tuple[GroupCheck, np.ndarray, np.ndarray]:
    """The check of a run, and what its p-value is made of. 5 % opt-in users, M = 50."""
    with patch.object(blend, "p_value_of", Mock(side_effect=p_value_of)) as judge:
        check = run_once(epsilon, 0.05, 50, seed, tilt=tilt).release.check
    assert check is not None, "a run without a check of its groups"
    ((gaps, testable), _), *others = judge.call_args_list
    assert not others
    return check, gaps, testable


def disagreements(
    runs: int, seed: int, *, epsilon: float = 4.0, tilt: float = 0.0, instead: Judge | None = None
) -> float:
    """How often the check says that the groups differ, or would say with another p-value of the same runs."""
    checks = []
    for i in range(runs):
        check, gaps, testable = _judged(epsilon, seed + i, tilt)
        checks.append(replace(check, p_value=instead(gaps, testable)) if instead else check)
    return float(np.mean([not check.agrees for check in checks]))
