"""The absorbing random walk on a click graph: how likely a walk from each query ends in a seed URL.

[FTAA08] Fuxman, Tsaparas, Achan, Agrawal: Using the wisdom of the crowds for keyword generation, WWW 2008.

A walk steps from a query to a URL in proportion to clicks, and back. At every step it is lost with probability α (the
null node ω); at a seed URL it ends. With G = D_q^{−1/2} F D_u^{−1/2}, the columns of seeds zeroed, the probabilities
P = D_q^{−1/2} y of a class with seeds S solve

    (I − (1−α)² G Gᵀ) y = (1−α) D_q^{−1/2} F 1_S,

which is symmetric and positive definite: conjugate gradients need tens of steps where the paper's iteration needs
thousands (its step shrinks so slowly at α = .001 that it stops far from the end).

Certified error: W = (1−α)² D_q^{−1} F D_u^{−1} Fᵀ (without seeds) has non-negative entries and row sums of at most
(1−α)², so ‖(I − W)^{−1}‖_∞ ≤ 1/(1 − (1−α)²), and the residual in the units of P bounds the error of every query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from searchblend.core.errors import InvalidParameter, RunError
from searchblend.core.silent import SILENT

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]
OnIteration = Callable[[int, float], None]
"""Hears the number of the iteration and how far it is from the end: an error bound or the last change."""
Method = Literal["cg", "arw2008"]
METHODS: Final[tuple[Method, ...]] = ("cg", "arw2008")
MAX_ITERATIONS: Final = 100_000
_NEARLY_ALL: Final = 0.9
"""Cutting the reached part out of the matrix costs more than it saves above this share of the queries."""


class NotConverged(RunError):
    """The iteration did not reach its tolerance."""


@dataclass(frozen=True)
class WalkSettings:
    """How to walk and how to solve. The defaults of α and γ are the paper's."""

    alpha: float = 0.001
    """the chance of being lost at each step"""
    method: Method = "cg"
    """``cg``, or ``arw2008``: the paper's pruned iteration"""
    rtol: float = 1e-6
    """cg: the residual's norm against that of the right-hand side"""
    max_error: float = 1e-4
    """cg: certified bound of the error of any probability; both must be reached"""
    gamma: float = 1e-4
    """arw2008: smaller probabilities are set to 0, for speed"""
    step: float = 1e-6
    """arw2008: stops when no probability changes by more"""

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise InvalidParameter("alpha", "expected a number in (0, 1)")
        if self.method not in METHODS:
            raise InvalidParameter("method", f"expected {' or '.join(METHODS)}")
        if not 0 <= self.gamma < 1:
            raise InvalidParameter("gamma", "expected a number in [0, 1)")
        for name in ("rtol", "max_error", "step"):
            if not 0 < getattr(self, name) < 1:
                raise InvalidParameter(name, "expected a number in (0, 1)")


@dataclass(frozen=True, eq=False)
class Absorption:
    """P(a walk from q ends in a seed of class c), one row for each query and one column for each class."""

    probability: Numbers
    iterations: int
    error_bound: float | None
    """of every probability; ``None`` for the paper's iteration, which has none"""

    @property
    def lost(self) -> Numbers:
        """The mass of the null node."""
        mass: Numbers = 1 - self.probability.sum(axis=1)
        return mass


def absorption(
    clicks: Any,
    seeds: Sequence[Integers],
    settings: WalkSettings | None = None,
    *,
    on_iteration: OnIteration = SILENT,
) -> Absorption:
    """Solve the walk for several classes of seed URLs at once. ``clicks`` is F, queries × URLs, without negatives.

    Only what can be reached from a seed takes part; all other queries have probability 0.
    """
    settings = settings or WalkSettings()
    everywhere = sparse.csr_array(clicks, dtype=np.float64)
    _check(everywhere, seeds)
    queries, urls = _reached(everywhere, np.concatenate(seeds))
    if not len(queries):
        raise RunError("no query has a click on a seed: nothing in the graph leads to the seeds")
    nearly_all = len(queries) > _NEARLY_ALL * everywhere.shape[0]
    if nearly_all:
        queries, urls = np.arange(everywhere.shape[0]), np.arange(everywhere.shape[1])
    part = everywhere if nearly_all else everywhere[queries][:, urls]
    number = np.zeros(everywhere.shape[1], dtype=np.int64)
    number[urls] = np.arange(len(urls))
    classes = [_indicator(number[numbers], len(urls)) for numbers in seeds]
    solve = _conjugate_gradients if settings.method == "cg" else _pruned_iteration
    solutions = solve(part, classes, settings, on_iteration)
    probability = np.zeros((everywhere.shape[0], len(seeds)))
    probability[queries] = np.clip(np.column_stack([solution for solution, _, _ in solutions]), 0.0, 1.0)
    bounds = [bound for _, _, bound in solutions if bound is not None]
    return Absorption(probability, sum(rounds for _, rounds, _ in solutions), max(bounds, default=None))


def _indicator(numbers: Integers, size: int) -> Numbers:
    marks = np.zeros(size)
    marks[numbers] = 1.0
    return marks


def _check(clicks: Any, seeds: Sequence[Integers]) -> None:
    if not seeds or not all(len(numbers) for numbers in seeds):
        raise InvalidParameter("seeds", "expected at least one seed URL in each class")
    everything = np.concatenate(seeds)
    if everything.min() < 0 or everything.max() >= clicks.shape[1]:
        raise InvalidParameter("seeds", "expected the numbers of URLs of the graph")
    if len(np.unique(everything)) < len(everything):
        raise InvalidParameter("seeds", "expected each URL in one class, and there once")
    if clicks.nnz and not (np.isfinite(clicks.data).all() and clicks.data.min() >= 0):
        raise InvalidParameter("clicks", "expected counts of at least 0")


def _reached(clicks: Any, seeds: Integers) -> tuple[Integers, Integers]:
    """Queries and URLs connected with a seed. Paths do not go on behind a seed, since a walk ends there."""
    backward = clicks.T.tocsr()
    queries, urls = np.zeros(clicks.shape[0], dtype=bool), np.zeros(clicks.shape[1], dtype=bool)
    urls[seeds] = True
    frontier: Integers = np.unique(seeds)
    while len(frontier):
        new_queries = _neighbours(backward, frontier, queries)
        frontier = _neighbours(clicks, new_queries, urls)
    return np.flatnonzero(queries), np.flatnonzero(urls)


def _neighbours(matrix: Any, rows: Integers, visited: NDArray[np.bool_]) -> Integers:
    """The columns that these rows lead to and that were not seen before; marks them as seen."""
    starts, lengths = matrix.indptr[rows], np.diff(matrix.indptr)[rows]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    entries = np.repeat(starts, lengths) + within
    columns = matrix.indices[entries[matrix.data[entries] > 0]]
    fresh: Integers = np.unique(columns[~visited[columns]]).astype(np.int64)
    visited[fresh] = True
    return fresh


Solution = tuple[Numbers, int, float | None]
"""Probabilities of the queries, iterations, bound of the error."""


class _System:
    """The symmetric system of the reduced walk, over queries alone."""

    def __init__(self, clicks: Any, seeds: Numbers, alpha: float) -> None:
        self.stay = 1 - alpha
        self.root = 1 / np.sqrt(_positive(clicks.sum(axis=1)))
        """D_q^{−1/2}"""
        free = (1 - seeds) / np.sqrt(_positive(clicks.sum(axis=0)))
        scaled = np.repeat(self.root, np.diff(clicks.indptr)) * clicks.data * free[clicks.indices]
        self._forward = sparse.csr_array((scaled, clicks.indices, clicks.indptr), shape=clicks.shape)
        self._backward = self._forward.T.tocsr()
        self._clicks = clicks

    def right(self, pinned: Numbers) -> Numbers:
        side: Numbers = self.stay * self.root * (self._clicks @ pinned)
        return side

    def times(self, vector: Numbers) -> Numbers:
        image: Numbers = vector - self.stay**2 * (self._forward @ (self._backward @ vector))
        return image

    def error_bound(self, residual: Numbers) -> float:
        """Of the largest error of a probability."""
        return float(np.abs(self.root * residual).max()) / (1 - self.stay**2)


def _conjugate_gradients(
    clicks: Any, classes: Sequence[Numbers], settings: WalkSettings, on_iteration: OnIteration
) -> list[Solution]:
    system = _System(clicks, np.sum(classes, axis=0), settings.alpha)
    return [_solve(system, system.right(pinned), settings, on_iteration) for pinned in classes]


def _solve(system: _System, right: Numbers, settings: WalkSettings, on_iteration: OnIteration) -> Solution:
    """Conjugate gradients, begun again until the residual computed anew is small enough too."""
    goal = settings.rtol**2 * _dot(right, right)
    solution, residual = np.zeros_like(right), right
    iterations, bound = 0, np.inf
    while True:
        error = system.error_bound(residual)
        if error <= settings.max_error and _dot(residual, residual) <= goal:
            return system.root * solution, iterations, error
        if error > bound / 2:
            raise NotConverged(f"rounding keeps the error's bound at {error:.2g}: allow a larger rtol or max_error")
        bound = error
        iterations = _descend(system, solution, residual.copy(), (goal, settings.max_error), iterations, on_iteration)
        residual = right - system.times(solution)


def _descend(
    system: _System,
    solution: Numbers,
    residual: Numbers,
    goals: tuple[float, float],
    iterations: int,
    on_iteration: OnIteration,
) -> int:
    """One run of conjugate gradients; changes the solution in place and returns the iterations so far.

    Scalar products are einsum's: a threaded BLAS waits for its threads longer than these vectors take.
    """
    direction, norm = residual.copy(), _dot(residual, residual)
    while norm > 0 and iterations < MAX_ITERATIONS:
        image = system.times(direction)
        length = norm / _dot(direction, image)
        solution += length * direction
        residual -= length * image
        iterations += 1
        new_norm, error = _dot(residual, residual), system.error_bound(residual)
        on_iteration(iterations, error)
        if new_norm <= goals[0] and error <= goals[1]:
            return iterations
        direction *= new_norm / norm
        direction += residual
        norm = new_norm
    return iterations


def _dot(left: Numbers, right: Numbers) -> float:
    return float(np.einsum("i,i->", left, right))


def _positive(sums: Any) -> Numbers:
    """Nodes without clicks have no neighbours; 1 keeps their division harmless."""
    values = np.asarray(sums, dtype=np.float64)
    return np.where(values > 0, values, 1.0)


def _pruned_iteration(
    clicks: Any, classes: Sequence[Numbers], settings: WalkSettings, on_iteration: OnIteration
) -> list[Solution]:
    """The iteration of [FTAA08]: queries from URLs, URLs from queries, seeds pinned, small values set to 0."""
    stay = 1 - settings.alpha
    free = 1 - np.sum(classes, axis=0)
    from_query = sparse.csr_array(sparse.diags_array(stay / _positive(clicks.sum(axis=1))) @ clicks)
    from_url = sparse.csr_array(sparse.diags_array(stay * free / _positive(clicks.sum(axis=0))) @ clicks.T.tocsr())
    return [_iterate(from_query, from_url, pinned, settings, on_iteration) for pinned in classes]


def _iterate(
    from_query: Any, from_url: Any, pinned: Numbers, settings: WalkSettings, on_iteration: OnIteration
) -> Solution:
    urls, queries = pinned, np.zeros(from_query.shape[0])
    for iteration in range(1, MAX_ITERATIONS + 1):
        new_queries = _pruned(from_query @ urls, settings.gamma)
        urls = _pruned(from_url @ new_queries, settings.gamma)
        urls += pinned
        change = float(np.abs(new_queries - queries).max())
        queries = new_queries
        on_iteration(iteration, change)
        if change < settings.step:
            return queries, iteration, None
    raise NotConverged(f"the iteration did not end within {MAX_ITERATIONS} rounds: allow a larger step")


def _pruned(values: Numbers, gamma: float) -> Numbers:
    if gamma:
        values[values < gamma] = 0.0
    return values
