"""One least squares over the cells of all queries at once, at the cost of one small inverse per query.

What a source says has errors that are correlated within a query and, through a few directions that all queries share,
between queries: a set of fixed size that names one query leaves less room for the others. Such a covariance is block
diagonal plus a few columns, so Woodbury's identity solves the joint problem exactly without a matrix of all cells
(proofs/estimates.md). Arrays are queries × cells, padded to the widest query. Post-processing: costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.estimates import Floats
from searchblend.core.records import HeadList

_NO_TILT: Final = 1e-6
"""a tilt so small that it is none; the equations then stay of one size"""


class Layout:
    """Where each listed cell stands in an array of queries × cells."""

    def __init__(self, head: HeadList) -> None:
        self.widths = np.array(head.n_urls[:-1], dtype=np.int64)
        self.present: NDArray[np.bool_] = np.arange(max(self.widths, default=1)) < self.widths[:, None]

    @property
    def shape(self) -> tuple[int, int]:
        return self.present.shape[0], self.present.shape[1]

    def padded(self, cells: Floats) -> Floats:
        """By query, 0 where a query has no such cell; ``cells`` are all but ⟨⋆,⋆⟩."""
        result = np.zeros(self.shape)
        result[self.present] = cells
        return result

    def flat(self, padded: Floats) -> Floats:
        """All cells but ⟨⋆,⋆⟩ in the list's order."""
        cells: Floats = padded[self.present]
        return cells


def one_each(layout: Layout) -> Floats:
    """Every cell is observed on its own."""
    return diagonal(layout.present.astype(np.float64))


def diagonal(values: Floats) -> Floats:
    result = np.zeros((*values.shape, values.shape[-1]))
    places = np.arange(values.shape[-1])
    result[..., places, places] = values
    return result


@dataclass(frozen=True)
class LinearData:
    """What one source says: ``observed`` = ``response`` · (shares of the query's cells) + error, query by query.

    The error's covariance is ``covariance`` within a query plus U·``strength``·Uᵀ over all, U being ``common``.
    """

    response: Floats
    """queries × observations × cells"""
    observed: Floats
    covariance: Floats
    """queries × observations × observations; the identity where a query has fewer of them"""
    common: Floats
    """queries × observations × directions"""
    strength: Floats
    leans: float = 0.0
    """how far the source follows the opt-in users' own preference for a query: 1 − f for themselves, −f for clients"""


@dataclass(frozen=True)
class _Weighed:
    """A source's part of the normal equations."""

    weight: Floats
    """Hᵀ V⁻¹, queries × unknowns × observations"""
    pull: Floats
    """Uᵀ V⁻¹, queries × directions × observations"""
    matrix: Floats
    vector: Floats
    columns: Floats
    """Hᵀ V⁻¹ U"""
    damping: Floats
    """G = K (1 + Uᵀ V⁻¹ U K)⁻¹: what the shared directions take away"""


def _weigh(data: LinearData, direction: Floats) -> _Weighed:
    """``direction``: the shares that the opt-in users' preference for a query moves, as one more unknown."""
    lean = data.leans * (data.response @ direction[:, :, None])
    response = np.concatenate([data.response, lean], axis=2)
    inverse = np.linalg.inv(data.covariance)
    weight, pull = response.swapaxes(1, 2) @ inverse, data.common.swapaxes(1, 2) @ inverse
    size = data.strength.shape[0]
    damping = data.strength @ np.linalg.inv(np.eye(size) + (pull @ data.common).sum(axis=0) @ data.strength)
    columns = weight @ data.common
    pulled = np.einsum("qjo,qo->j", pull, data.observed)
    vector = np.einsum("quo,qo->qu", weight, data.observed) - columns @ (damping @ pulled)
    return _Weighed(weight, pull, weight @ response, vector, columns, damping)


@dataclass(frozen=True)
class Gain:
    """How each query's total follows one observation of a source: its own query's, and all queries' a little.

    ∂(total of q)/∂(observation o of q′) = ``own``[q, o] if q = q′, plus ``reach``[q] · ``spread``[q′, o].
    """

    own: Floats
    reach: Floats
    spread: Floats


class Equations:
    """What all sources say together, ready to be solved for any tilt."""

    def __init__(self, layout: Layout, sources: Sequence[LinearData], direction: Floats) -> None:
        self.layout, self.parts = layout, [_weigh(data, direction) for data in sources]
        self.matrix: Floats = np.sum([part.matrix for part in self.parts], axis=0)
        self.vector: Floats = np.sum([part.vector for part in self.parts], axis=0)
        self.columns = np.concatenate([part.columns for part in self.parts], axis=2)
        self.damping = _blocks([part.damping for part in self.parts])

    def solve(self, tilt: float = 0.0) -> Joint:
        """``tilt``: τ, the standard deviation of the logarithm of the opt-in users' preference for a query."""
        return Joint(self, tilt)


class Joint:
    """The solution of one joint least squares: linear in what the sources observed."""

    def __init__(self, equations: Equations, tilt: float) -> None:
        self._equations, self._layout = equations, equations.layout
        matrix = equations.matrix.copy()
        absent = (~self._layout.present).astype(np.float64)
        preference = math.expm1(max(tilt, _NO_TILT) ** 2)  # the relative variance of exp(N(0, τ²))
        prior = np.concatenate([absent, np.full((len(absent), 1), 1 / preference)], axis=1)
        places = np.arange(prior.shape[1])
        matrix[:, places, places] += prior
        self._inverse: Floats = np.linalg.inv(matrix).astype(np.float64)
        self._answer: Floats = self._inverse @ equations.columns
        self._overlap: Floats = np.einsum("quj,quk->jk", equations.columns, self._answer)
        size = len(equations.damping)
        self._core: Floats = equations.damping @ np.linalg.inv(np.eye(size) - self._overlap @ equations.damping)

    @cached_property
    def _solution(self) -> Floats:
        vector = self._equations.vector
        plain = (self._inverse @ vector[:, :, None])[:, :, 0]
        shared = np.einsum("quj,qu->j", self._answer, vector)
        solution: Floats = plain + self._answer @ (self._core @ shared)
        return solution

    @property
    def cells(self) -> Floats:
        """Shares, queries × cells."""
        return self._solution[:, :-1] * self._layout.present

    @property
    def totals(self) -> Floats:
        """Shares of the queries."""
        totals: Floats = self.cells.sum(axis=1)
        return totals

    @cached_property
    def _reach(self) -> Floats:
        reach: Floats = (self._answer[:, :-1] * self._layout.present[:, :, None]).sum(axis=1)
        return reach

    @cached_property
    def _own_rows(self) -> Floats:
        """1ᵀA⁻¹ of every query."""
        rows: Floats = (self._inverse[:, :-1] * self._layout.present[:, :, None]).sum(axis=1)
        return rows

    @property
    def cell_variance(self) -> Floats:
        diagonal = np.einsum("quu->qu", self._inverse)[:, :-1]
        shared = (self._answer @ self._core * self._answer).sum(axis=2)[:, :-1]
        variance: Floats = (diagonal + shared) * self._layout.present
        return variance

    @property
    def total_variance(self) -> Floats:
        own = (self._own_rows[:, :-1] * self._layout.present).sum(axis=1)
        variance: Floats = own + (self._reach @ self._core * self._reach).sum(axis=1)
        return variance

    @property
    def sum_variance(self) -> float:
        """Of all listed queries together, and so of ⋆."""
        reach = self._reach.sum(axis=0)
        return float((self._own_rows[:, :-1] * self._layout.present).sum() + reach @ self._core @ reach)

    def asked(self, source: int) -> NDArray[np.bool_]:
        """Which observations of a source there are: queries × observations."""
        weight = self._equations.parts[source].weight
        asked: NDArray[np.bool_] = np.any(weight != 0, axis=1)
        return asked

    def gain(self, source: int) -> Gain:
        """How the totals follow the observations of one source."""
        parts = self._equations.parts
        part, first = parts[source], sum(len(p.damping) for p in parts[:source])
        mine = slice(first, first + len(part.damping))
        own = np.einsum("qu,quo->qo", self._own_rows, part.weight)
        damped = np.einsum("jk,qko->qoj", part.damping, part.pull)
        through = np.einsum("quj,quo->qoj", self._answer, part.weight) - damped @ self._overlap[:, mine].T
        spread = through @ self._core.T
        spread[:, :, mine] -= damped
        return Gain(own, self._reach, spread)


def _blocks(blocks: Sequence[Floats]) -> Floats:
    size = sum(len(block) for block in blocks)
    result, first = np.zeros((size, size)), 0
    for block in blocks:
        result[first : first + len(block), first : first + len(block)] = block
        first += len(block)
    return result
