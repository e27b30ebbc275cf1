"""What each source of data says about the shares c of the listed cells, with the covariance of its errors.

Variances depend on the unknown shares. They are taken at the opt-in users' figures, which are public before the first
report is counted: no report can change how much it or another counts, so the blend is linear in the reports and the
influence of one of them has a bound (``influence.py``). Derivations: proofs/estimates.md. Costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.best.joint_least_squares import Layout, LinearData, diagonal, one_each
from searchblend.blender.best.many_records import MeasuredShares
from searchblend.blender.best.set_law import SetLaw
from searchblend.blender.best.stability_histogram import CountedHeadList
from searchblend.blender.estimates import Floats
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints

_KEPT_VARIANCE: Final = 0.05
"""at least this part of a variance stays when what is known of the people is subtracted"""


class ClientSource(Protocol):
    """What the clients' reports of one kind say about a head list."""

    @property
    def n(self) -> float:
        """Reports of this kind."""
        ...

    def data(self, layout: Layout, shares: Floats, people: People) -> LinearData:
        """Observations and their covariance, at ``shares`` (queries × cells)."""
        ...

    def of_size(self, n: float) -> ClientSource:
        """The same sum of reports as if there were ``n`` of them."""
        ...

    def extremes(self, rows: Floats, named: Floats) -> tuple[Floats, Floats]:
        """The least and the largest Σ row·(observations of a single report), for every row; ``named`` as the rows, with
        0 where a report is taken not to name the item."""
        ...

    @property
    def named(self) -> int:
        """How many items a report names at most."""
        ...


@dataclass(frozen=True)
class People:
    """Whose shares are estimated, and how unlike each other they are."""

    n_optin: int
    n_clients: float
    between: float | None = None
    """ρ_b = E[p²]/E[p] of a person's own share p of a cell: 0 if all search alike, 1 if each holds one record. None:
    not known"""
    reports_each: int = 1
    """m_C: records that one client reports about, drawn with replacement"""

    @classmethod
    def of(cls, optin: OptinCounts, params: BlenderParams, n_clients: float) -> People:
        """ρ_b from the opt-in users' ρ: of k records drawn from each, ρ = ρ_b + (1 − ρ_b)/k."""
        between = None
        if optin.rho is not None and (drawn := params.counted_records_per_optin) > 1:
            between = max((optin.rho - 1 / drawn) / (1 - 1 / drawn), 0.0)
        return cls(optin.n_users, n_clients, between, params.records_per_client)

    @property
    def n(self) -> float:
        return self.n_optin + self.n_clients

    @property
    def optin_fraction(self) -> float:
        return self.n_optin / self.n

    @property
    def repeated(self) -> float:
        """What one person's further reports add to the variance of a mean of reports, in units of c/n."""
        return (self.reports_each - 1) * (self.between or 0.0)

    @property
    def known(self) -> float:
        """What is subtracted from an estimate's variance, in units of c: the people are themselves part of the truth.

        Where ρ_b is not known, the worse of 0 and 1: the variance is linear in it.
        """
        if self.between is not None:
            return self.between / self.n
        return min(0.0, 1 / self.n - (1 - 1 / self.reports_each) / max(self.n_clients, 1))

    def against(self, variance: Floats, shares: Floats, apart: Floats | float = 0.0) -> Floats:
        """The variance of the error against these people's own shares: they are part of both groups.

        ``apart``: how much less than those shares themselves the opt-in users' figures vary with them, in units of c/n;
        taken as if the estimate were theirs alone.
        """
        known = self.known - 2 * apart / self.n
        return np.maximum(variance - known * shares * (1 - shares), _KEPT_VARIANCE * variance)


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
    rho: float | None = None
    """ρ = E[s²]/E[s] of a user's own share s of a cell, where that was measured: sampling has variance ρ c/n. None: one
    drawn record per user, for which s is 0 or 1 and ρ is 1"""
    shared_error: Floats | None = None
    """by cell: standard deviation of an error that all cells have in common, such as what a clip takes away"""
    total_noise_variance: Floats | None = None
    """by cell, of its query's total, where that is known better than its cells are; None: the sum over them"""
    sampling_factor: Floats | None = None
    """by cell: variance that comes from who happens to be in the group, in units of c/n. None: ρ"""
    total_sampling_factor: Floats | None = None
    """the same of its query's total, by cell. None: the sum over the query's cells"""
    apart: Floats | None = None
    """by cell: ρ less the covariance with the users' own shares, in units of c/n. None: 0, for these are counted"""
    total_apart: Floats | None = None
    """the same of its query's total, by cell"""
    certain: NDArray[np.bool_] | None = None
    """by query: counted so often that having been listed hardly shows; None: all"""

    @classmethod
    def of_shares(cls, shares: MeasuredShares, n_users: int) -> OptinCounts:
        """Of a curator that measured own shares, after the list was made and with fresh noise."""
        rho = 1.0 if shares.rho is None else shares.rho
        return cls(
            shares.cells.value,
            shares.cells.variance,
            n_users,
            rho=shares.rho,
            total_noise_variance=shares.totals.variance,
            sampling_factor=shares.cells.sampling,
            total_sampling_factor=shares.totals.sampling,
            apart=rho - shares.cells.shared,
            total_apart=rho - shares.totals.shared,
        )

    @classmethod
    def of(cls, counted: CountedHeadList, merged: Ints | None = None) -> OptinCounts:
        """``merged``: how many removed records' counts are part of a cell's, each with its own noise."""
        design, head = counted.design, counted.head
        variance = np.full(head.n_cells - 1, design.threshold.noise.variance)
        selected = np.ones(head.n_cells - 1, dtype=np.bool_)
        if counted.has_residuals:
            residual = [cells.stop - 1 for cells in query_slices(head)]
            variance[residual] = design.residual_noise.variance
            selected[residual] = False
        if merged is not None:
            variance += merged * design.threshold.noise.variance
        counts = counted.counts.astype(np.float64)
        totals = np.add.reduceat(counts, head.first_cells()[:-1])
        counts[selected] -= selection_bias(counts[selected], variance[selected])
        return cls(
            counts / counted.n_users,
            variance / counted.n_users**2,
            counted.n_users,
            # A clip takes about a user from every ⟨q,⋆⟩: nothing for one query, and a bias for their sum.
            shared_error=np.where(selected, 0.0, 1 / counted.n_users),
            certain=totals >= 2 * design.threshold.integer,
        )

    def testable(self, n_queries: int) -> NDArray[np.bool_]:
        """Which queries can say something about a difference between the groups."""
        return np.ones(n_queries, dtype=np.bool_) if self.certain is None else self.certain

    @property
    def shares(self) -> Floats:
        """The shares at which all variances are taken: the opt-in figures, half a person at least, together below 1."""
        least = 0.5 / self.n_users
        shares = np.maximum(self.observed, least)
        return shares * min(1.0, (1 - least) / float(shares.sum()))

    @property
    def sampling(self) -> Floats:
        """Variance of a share that comes from who happens to be in the group, per share; by cell."""
        rho = np.full(len(self.observed), 1.0 if self.rho is None else self.rho)
        return (rho if self.sampling_factor is None else self.sampling_factor) / self.n_users

    def sampling_of_totals(self, layout: Layout) -> Floats:
        """The same of the queries' totals, by query."""
        factor = self.total_sampling_factor
        by_query: Floats = layout.padded(self.sampling if factor is None else factor / self.n_users)[:, 0]
        return by_query

    def apart_of_totals(self, layout: Layout) -> Floats:
        """How much less than the users' own shares the queries' totals vary with them, in units of c/n; by query."""
        apart = np.zeros(len(self.observed)) if self.total_apart is None else self.total_apart
        by_query: Floats = layout.padded(apart)[:, 0]
        return by_query

    def noise_of_totals(self, layout: Layout) -> Floats:
        """Variance of the queries' totals that comes from the noise."""
        noise: Floats = layout.padded(self.noise_variance).sum(axis=1)
        if self.total_noise_variance is None:
            return noise
        known: Floats = layout.padded(self.total_noise_variance)[:, 0]
        return known

    def data(self, layout: Layout, shares: Floats, people: People) -> LinearData:
        noise, sampling = layout.padded(self.noise_variance), layout.padded(self.sampling) * shares
        of_total = self.sampling_of_totals(layout)
        shared = np.zeros(layout.shape) if self.shared_error is None else layout.padded(self.shared_error)
        return LinearData(
            response=one_each(layout),
            observed=layout.padded(self.observed),
            covariance=_with_total(noise, self.noise_of_totals(layout))
            + _with_total(sampling, of_total * shares.sum(axis=1))
            + diagonal(np.where(layout.present, 0.0, 1.0)),
            common=np.stack([np.sqrt(of_total)[:, None] * shares, shared], axis=2),
            strength=np.diag([-1.0, 1.0]),
            leans=1 - people.optin_fraction,
        )


def _with_total(variance: Floats, total: Floats) -> Floats:
    """Cells with these variances, moved to a total V that is known otherwise: D − (1 − V/Σd)/Σd·ddᵀ, by query."""
    every = np.maximum(variance.sum(axis=1), 1e-300)
    gain = (1 - total / every) / every
    moved: Floats = diagonal(variance) - gain[:, None, None] * variance[:, :, None] * variance[:, None, :]
    return moved


def selection_bias(counts: Floats, noise_variance: Floats) -> Floats:
    """How much too large the count of a record is that was listed *because* it was large.

    Rare records are more numerous than common ones: with a density of 1/p² of shares, a count N of variance V has its
    posterior mean about V/N lower, one user and more where the noise is. V adds the users' own sampling to the noise.
    """
    bias: Floats = (counts + noise_variance) / np.maximum(counts, 1.0)
    return bias


@dataclass(frozen=True)
class _Sets:
    """Clients' sets of items, counted."""

    law: SetLaw
    n: float
    observed: Floats
    """by item; anything when only variances are asked for"""

    def of_size(self, n: float) -> Self:
        return replace(self, n=n, observed=self.observed * (self.n / n))

    def extremes(self, rows: Floats, named: Floats) -> tuple[Floats, Floats]:
        return self.law.extremes(rows, named)

    @property
    def named(self) -> int:
        return self.law.named


class QuerySets(_Sets):
    """Clients' sets of queries: one observation of each query's total."""

    def data(self, layout: Layout, shares: Floats, people: People) -> LinearData:
        total = shares.sum(axis=1)
        own, strength = self.law.covariance(total, min(float(total.sum()), 1.0), people.repeated)
        return LinearData(
            response=layout.present[:, None, :].astype(np.float64),
            observed=self.observed[:, None],
            covariance=own[:, None, None] / self.n,
            common=np.stack([np.ones_like(total), total], axis=1)[:, None, :],
            strength=strength / self.n,
            leans=-people.optin_fraction,
        )


class CellSets(_Sets):
    """Clients' sets of cells: one observation of each cell."""

    def data(self, layout: Layout, shares: Floats, people: People) -> LinearData:
        own, strength = self.law.covariance(shares, min(float(shares.sum()), 1.0), people.repeated)
        present = layout.present
        return LinearData(
            response=one_each(layout),
            observed=layout.padded(self.observed),
            covariance=diagonal(np.where(present, own / self.n, 1.0)),
            common=np.stack([present.astype(np.float64), shares], axis=2),
            strength=strength / self.n,
            leans=-people.optin_fraction,
        )


@dataclass(frozen=True)
class TwoStageReports:
    """Clients' two-stage reports: the fractions of a query's reported cells are linear in its shares.

    E[r_u] = slope·c_u + (A − B)·Σc + B, with A and B as in [BLJ] Fig. 5; counts of cells are multinomial.
    """

    probabilities: ReportProbabilities
    n: float
    reported: Floats
    """r̂ by cell, without ⟨⋆,⋆⟩"""
    named: int = 1

    def of_size(self, n: float) -> TwoStageReports:
        return replace(self, n=n, reported=self.reported * (self.n / n))

    def extremes(self, rows: Floats, named: Floats) -> tuple[Floats, Floats]:
        """One cell, or ⟨⋆,⋆⟩ and with it nothing."""
        return np.minimum(named.min(axis=1), 0.0), np.maximum(named.max(axis=1), 0.0)

    def data(self, layout: Layout, shares: Floats, people: People) -> LinearData:
        t, k = self.probabilities.keep_query, self.probabilities.n_queries
        width, present = layout.widths.astype(np.float64), layout.present
        keep = t * np.array(self.probabilities.keep_url)[:-1]
        lie_url = (t - keep) / np.maximum(width - 1, 1)
        lie_query = (1 - t) / (k - 1) / width
        inside = (present[:, :, None] & present[:, None, :]).astype(np.float64)
        response = (keep - lie_url)[:, None, None] * one_each(layout) + (lie_url - lie_query)[:, None, None] * inside
        by_shares = (response @ shares[:, :, None])[:, :, 0]
        expected = by_shares + lie_query[:, None] * present
        repeated = people.repeated / self.n * response @ diagonal(shares) @ response.swapaxes(1, 2)
        return LinearData(
            response=response,
            observed=layout.padded(self.reported) - lie_query[:, None] * present,
            covariance=diagonal(np.where(present, expected / self.n, 1.0)) + repeated,
            common=np.stack([expected, by_shares], axis=2),
            strength=np.diag([-1.0, -people.repeated]) / self.n,
            leans=-people.optin_fraction,
        )
