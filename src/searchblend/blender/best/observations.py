"""What each source of data says about the shares c of one query's cells, and one least squares over all of them.

A source says for each query: a k×k information matrix J and a vector b with E[b] = J c, where k counts the query's
URLs and ⟨q,⋆⟩. Variances depend on the unknown shares; they are taken at *pooled* shares, the same for all
sources, never at a source's own estimate (a group that saw nobody would otherwise look certain).
Post-processing: costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.best.many_records import MeasuredShares
from searchblend.blender.best.stability_histogram import CountedHeadList
from searchblend.blender.best.subset_report import SetMechanism
from searchblend.blender.best.subset_report_bulk import SubsetCounts
from searchblend.blender.estimates import Estimates, Floats
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import PlainSubsetSelection

Information = tuple[Floats, Floats]
_PASSES: Final = 4


class Source(Protocol):
    """One source of data about every query of a head list."""

    def information(self, query: slice, shares: Floats) -> Information:
        """J and b for the query whose cells are ``query``, variances at ``shares`` (of all cells but ⟨⋆,⋆⟩)."""
        ...


def query_slices(head: HeadList) -> list[slice]:
    """The cells of each listed query."""
    first = head.first_cells()
    return [slice(first[i], first[i + 1]) for i in range(len(head))]


@dataclass(frozen=True)
class OptinCounts:
    """The opt-in users' noisy counts: one observation per cell, sampling and noise variance."""

    observed: Floats
    noise_variance: Floats
    """of ``observed``, by cell"""
    n_users: int
    tilt: float = 0.0
    """τ²: variance of the opt-in users' own preference for a query, relative to its squared share"""
    rho: float | None = None
    """ρ = E[s²]/E[s] of a user's own share s of a cell, where that was measured: sampling has variance ρ c/n. None: one
    drawn record per user, for which s is 0 or 1 and ρ is 1"""

    total_noise_variance: Floats | None = None
    """by cell, of its query's total, where that is known better than its cells are; None: the sum over them"""
    certain: NDArray[np.bool_] | None = None
    """by query: counted so often that having been listed hardly shows; None: all"""
    raw_totals: Floats | None = None
    """by query, without a correction for having been listed; None: as observed"""

    @classmethod
    def of_shares(cls, shares: MeasuredShares, n_users: int) -> OptinCounts:
        """Of a curator that measured own shares, after the list was made and with fresh noise."""
        return cls(
            shares.cells.value,
            shares.cells.variance,
            n_users,
            rho=shares.rho,
            total_noise_variance=shares.total_variance,
        )

    @classmethod
    def of(cls, counted: CountedHeadList) -> OptinCounts:
        design, head = counted.design, counted.head
        variance = np.full(head.n_cells - 1, design.threshold.noise.variance)
        selected = np.ones(head.n_cells - 1, dtype=np.bool_)
        if counted.has_residuals:
            residual = [cells.stop - 1 for cells in query_slices(head)]
            variance[residual] = design.residual_noise.variance
            selected[residual] = False
        counts = counted.counts.astype(np.float64)
        totals = np.add.reduceat(counts, head.first_cells()[:-1])
        counts[selected] -= selection_bias(counts[selected], variance[selected])
        return cls(
            counts / counted.n_users,
            variance / counted.n_users**2,
            counted.n_users,
            certain=totals >= 2 * design.threshold.integer,
            raw_totals=totals / counted.n_users,
        )

    def variance(self, query: slice, shares: Floats) -> Floats:
        rho = 1.0 if self.rho is None else self.rho
        variance: Floats = rho * shares[query] / self.n_users + self.noise_variance[query]
        return variance

    def information(self, query: slice, shares: Floats) -> Information:
        variance = self.variance(query, shares)
        matrix = np.diag(1 / variance)
        if self.total_noise_variance is not None:
            noise = self.noise_variance[query]
            gain = (1 - self.total_noise_variance[query.start] / noise.sum()) / noise.sum()
            matrix = np.linalg.inv(np.diag(variance) - gain * np.outer(noise, noise)).astype(np.float64)
        if self.tilt:
            # (D + τ²ππᵀ)⁻¹: the whole query may be more or less popular here, its URLs' proportions are kept.
            scaled = matrix @ shares[query]
            matrix -= self.tilt / (1 + self.tilt * float(shares[query] @ scaled)) * np.outer(scaled, scaled)
        return matrix, matrix @ self.observed[query]


def selection_bias(counts: Floats, noise_variance: Floats) -> Floats:
    """How much too large the count of a record is that was listed *because* it was large.

    Rare records are more numerous than common ones: with a density of 1/p² of shares, a count N of variance V has its
    posterior mean about V/N lower, one user and more where the noise is. V adds the users' own sampling to the noise.
    """
    bias: Floats = (counts + noise_variance) / np.maximum(counts, 1.0)
    return bias


@dataclass(frozen=True)
class SetLaw:
    """How sets and sinks follow from what people hold, and the estimator that undoes it."""

    own: float
    """p: the holder of an item names it"""
    other: float
    """q_w: the holder of another item names it"""
    star: float
    """q: the holder of ⋆ names it"""
    sink_of_holder: float
    sink_of_star: float

    @classmethod
    def of(cls, mechanism: SetMechanism) -> SetLaw:
        m, d = mechanism.n_items, mechanism.subset_size
        if isinstance(mechanism, PlainSubsetSelection):
            keep = mechanism.include
            other = (keep * (d - 1) + (1 - keep) * d) / m
            return cls(keep, other, other, 0.0, 0.0)
        include, sink = mechanism.include, mechanism.sink_of_holder
        other = (include * (d - 1) + (1 - include - sink) * d) / (m - 1) if m > 1 else 0.0
        return cls(include, other, (1 - include) * d / m, sink, include)

    @property
    def _sink_weight(self) -> float:
        """κ: how much a sink moves an item's estimate, before the division by p − q_w"""
        if self.other == self.star:
            return 0.0
        return (self.other - self.star) / (self.sink_of_star - self.sink_of_holder)

    @property
    def influence(self) -> float:
        """n times the most that one report can move an item's estimate"""
        moves = (1.0, 0.0, self._sink_weight)  # a set with the item, a set without it, the sink
        return (max(moves) - min(moves)) / (self.own - self.other)

    def estimate(self, counts: SubsetCounts) -> Floats:
        """Unbiased shares of all items: the sinks tell how many people hold any item at all."""
        fewer_sinks = self.sink_of_star - counts.sinks / counts.n
        estimate: Floats = counts.items / counts.n - self.star - self._sink_weight * fewer_sinks
        return estimate / (self.own - self.other)

    def noise(self, share: Floats, holders: float) -> Floats:
        """n · Var of the randomization in the estimate of an item with this share; sampling adds share/n."""
        spread = (
            share * self._variance(self.own, self.sink_of_holder)
            + np.maximum(holders - share, 0.0) * self._variance(self.other, self.sink_of_holder)
            + max(1 - holders, 0.0) * self._variance(self.star, self.sink_of_star)
        )
        result: Floats = spread / (self.own - self.other) ** 2
        return result

    def _variance(self, named: float, sink: float) -> float:
        kappa = self._sink_weight
        return named + kappa**2 * sink - (named + kappa * sink) ** 2


@dataclass(frozen=True)
class QuerySets:
    """Clients' sets of queries: one observation of each query's total."""

    law: SetLaw
    n: float
    observed: Floats
    """by query; anything when only variances are asked for"""
    query_of_cell: Floats

    def information(self, query: slice, shares: Floats) -> Information:
        total = float(shares[query].sum())
        noise = self.law.noise(np.array([total]), min(float(shares.sum()), 1.0))[0]
        weight = self.n / (total + noise)
        width = query.stop - query.start
        observed = float(self.observed[int(self.query_of_cell[query.start])])
        return np.full((width, width), weight), np.full(width, weight * observed)


@dataclass(frozen=True)
class CellSets:
    """Clients' sets of cells: one observation of each cell."""

    law: SetLaw
    n: float
    observed: Floats

    def information(self, query: slice, shares: Floats) -> Information:
        noise = self.law.noise(shares[query], min(float(shares.sum()), 1.0))
        weight = self.n / (shares[query] + noise)
        return np.diag(weight), weight * self.observed[query]


@dataclass(frozen=True)
class TwoStageReports:
    """Clients' two-stage reports: the fractions of a query's reported cells are linear in its shares.

    E[r_u] = slope·c_u + (A − B)·Σc + B, with A and B as in [BLJ] Fig. 5, and the fractions of different cells are as
    good as independent: each is small.
    """

    probabilities: ReportProbabilities
    n: float
    reported: Floats
    """r̂ by cell"""
    query_of_cell: Floats

    def information(self, query: slice, shares: Floats) -> Information:
        number, width = int(self.query_of_cell[query.start]), query.stop - query.start
        t, k = self.probabilities.keep_query, self.probabilities.n_queries
        keep = t * self.probabilities.keep_url[number]
        lie_url = (t - keep) / max(width - 1, 1)
        lie_query = (1 - t) / (k - 1) / width
        response = (keep - lie_url) * np.eye(width) + (lie_url - lie_query) * np.ones((width, width))
        expected = response @ shares[query] + lie_query
        weighted = response.T * (self.n / expected)
        return weighted @ response, weighted @ (self.reported[query] - lie_query)


@dataclass(frozen=True)
class Solution:
    """Shares of all cells but ⟨⋆,⋆⟩ and all queries but ⋆; variances of the error against the people's shares."""

    cells: Estimates
    queries: Estimates


def solve(head: HeadList, sources: Sequence[Source], start: Floats, floor: float, n_users: float) -> Solution:
    """ĉ = J⁻¹b for every query, variances at the pooled shares, iterated.

    ``start`` are first shares, ``floor`` the least share used in a variance (half a person), ``n_users`` all people
    whose shares are estimated: the error against *their* shares is J⁻¹ − diag(c)/n, as both groups are part of them.
    """
    slices = query_slices(head)
    shares = np.maximum(start, floor)
    for _ in range(_PASSES):
        solved = [solve_query(sources, query, shares) for query in slices]
        shares = np.maximum(np.concatenate([estimate for estimate, _ in solved]), floor)
    return _against_people(solved, slices, shares, n_users)


def predict(head: HeadList, sources: Sequence[Source], shares: Floats, n_users: float) -> Solution:
    """The variances that ``solve`` would report at these shares; no observation is looked at."""
    slices = query_slices(head)
    return _against_people([solve_query(sources, query, shares) for query in slices], slices, shares, n_users)


def solve_query(sources: Sequence[Source], query: slice, shares: Floats) -> tuple[Floats, Floats]:
    """The estimate of one query's cells and its covariance matrix."""
    pieces = [source.information(query, shares) for source in sources]
    covariance = np.linalg.inv(sum(matrix for matrix, _ in pieces)).astype(np.float64)
    return covariance @ sum(vector for _, vector in pieces), covariance


def _against_people(
    solved: list[tuple[Floats, Floats]], slices: list[slice], shares: Floats, n_users: float
) -> Solution:
    sampled = [shares[query] / n_users for query in slices]
    cell_variance = [
        np.maximum(np.diag(cov) - part, 0.05 * np.diag(cov)) for (_, cov), part in zip(solved, sampled, strict=True)
    ]
    query_variance = [
        max(cov.sum() - part.sum(), 0.05 * cov.sum()) for (_, cov), part in zip(solved, sampled, strict=True)
    ]
    return Solution(
        cells=Estimates(np.concatenate([estimate for estimate, _ in solved]), np.concatenate(cell_variance)),
        queries=Estimates(np.array([estimate.sum() for estimate, _ in solved]), np.array(query_variance)),
    )
