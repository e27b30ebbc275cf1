"""The curator of method ``best`` over many records: every search of an opt-in user counts, at the same (ε, δ).

Each user spreads one ℓ2-unit of weight over their different queries, so that the noise does not grow with how much they
search; a query is named when its weight with noise reaches a threshold that one person alone hardly reaches. Records
are named in the same way within the named queries. Then each user's *own shares* of the listed queries, and of their
named records, are summed, over all of their searches and with fresh noise: selection does not bias what is published.
The sums of squares of these shares are free, and say how much users vary (proofs/many_records.md). Run by the curator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from searchblend.blender.best.calibrate_weights import Calibrated, Observed, UserSums, calibrate
from searchblend.blender.best.many_records_design import ManyRecordsDesign, WeightThreshold
from searchblend.blender.estimates import Floats
from searchblend.blender.groups import UserGroup
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.tally import Ints
from searchblend.mechanisms.threshold import noisy_counts

_UNKNOWN: Final = 1e4
"""times the variance of all else: what ⟨q,⋆⟩ would have if nothing but its query's total said anything about it"""


@dataclass(frozen=True)
class Measurement:
    """What is published beside the list and the counts of its cells; everything has its noise."""

    rest: int
    """own shares of ⟨⋆,⋆⟩, in units"""
    squares: int
    """the users' sums of squares over the listed queries, in units"""
    listed: int
    """own shares of the queries whose squares these are, in units"""
    query_weights: Ints
    """by query: what named it"""
    record_weights: Ints
    """by cell, without ⟨⋆,⋆⟩; 0 for ⟨q,⋆⟩, which nothing named"""

    def of_cells(self, cells: Sequence[int], queries: Sequence[int], *, removed: int) -> Measurement:
        """For the list without some entries: what they counted and no other cell does, belongs to ⟨⋆,⋆⟩."""
        return replace(
            self,
            rest=self.rest + removed,
            query_weights=self.query_weights[list(queries)],
            record_weights=self.record_weights[list(cells)],
        )

    def as_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("rest", "squares", "listed")},
            **{name: getattr(self, name).tolist() for name in ("query_weights", "record_weights")},
        }

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> Measurement:
        weights = {name: np.array(document[name], dtype=np.int64) for name in ("query_weights", "record_weights")}
        return cls(document["rest"], document["squares"], document["listed"], **weights)


@dataclass(frozen=True)
class MeasuredHeadList:
    """The head list with the opt-in users' own shares of its cells, in units and with noise."""

    head: HeadList
    counts: Ints
    """by cell, without ⟨⋆,⋆⟩: named records as measured, and ⟨q,⋆⟩ what they leave of the measured total"""
    measurement: Measurement
    n_users: int
    design: ManyRecordsDesign

    @property
    def n_units(self) -> int:
        return self.n_users * self.design.units


@dataclass(frozen=True)
class MeasuredShares:
    """What the opt-in users' own shares are, from all that was published about them."""

    cells: Calibrated
    """by cell, without ⟨⋆,⋆⟩; the variance of ⟨q,⋆⟩ is as good as infinite before its query's total is known"""
    totals: Calibrated
    """its query's total, by cell. With V its variance the query's cells have the covariance D − (1 − V/Σd)/Σd·ddᵀ,
    D = diag(d), in noise as in sampling"""
    rho: float | None
    """ρ = E[s²]/E[s] of a user's own share s of a query; None where noise hides it"""


def measured_shares(measured: MeasuredHeadList) -> MeasuredShares:
    """Shares and what their noise is, and how much the users' sampling adds. Post-processing."""
    head, n = measured.head, measured.n_units
    first = np.array(head.first_cells()[:-1])
    last = np.array(head.first_cells()[1:]) - 1
    rho = _rho(measured.measurement, measured.design)
    records = _records(measured, 1.0 if rho is None else rho)
    queries = _queries(measured, first, 1.0 if rho is None else rho)
    value, variance = records.value.copy(), records.variance.copy()
    sampling, shared = records.sampling.copy(), records.shared.copy()
    value[last] = queries.value - np.add.reduceat(records.value, first)
    variance[last] = _UNKNOWN * (queries.variance + np.add.reduceat(records.variance, first))
    sampling[last], shared[last] = queries.sampling, queries.shared
    query_of = np.repeat(np.arange(len(head)), head.n_urls[:-1])
    totals = Calibrated(queries.value / n, queries.variance / n**2, queries.sampling, queries.shared)
    return MeasuredShares(Calibrated(value / n, variance / n**2, sampling, shared), totals.at(query_of), rho)


def _queries(measured: MeasuredHeadList, first: Ints, rho: float) -> Calibrated:
    """Totals of queries, with their weights as a second observation."""
    step = measured.design.queries
    users = UserSums(rho, measured.design.units, step.weights.units, divides_all=True)
    return calibrate(_totals(measured, first), _without_selection(measured.measurement.query_weights, step), users)


def _totals(measured: MeasuredHeadList, first: Ints) -> Observed:
    """All queries with ⋆ are the units of all users: what noise adds to their sum is taken off, by its variances."""
    own, rest = measured.design.noise.variance, measured.design.detail_noise.variance
    excess = int(measured.counts.sum()) + measured.measurement.rest - measured.n_units
    part = own / (len(first) * own + rest)
    value = (np.add.reduceat(measured.counts, first) - excess * part).astype(np.float64)
    return Observed(value, np.full(len(first), own * (1 - part)))


def _records(measured: MeasuredHeadList, rho: float) -> Calibrated:
    """Named records by cell, with their weights as a second observation; 0 and certain for ⟨q,⋆⟩."""
    weights, step = measured.measurement.record_weights, measured.design.records
    named = weights > 0
    nothing = np.zeros(len(weights))
    by_cell = Calibrated.as_measured(Observed(nothing, nothing.copy()), rho)
    if step is not None and named.any():
        noise = np.full(int(named.sum()), measured.design.detail_noise.variance)
        users = UserSums(rho, measured.design.units, step.weights.units, divides_all=False)
        better = calibrate(
            Observed(measured.counts[named].astype(np.float64), noise), _without_selection(weights[named], step), users
        )
        by_cell.value[named], by_cell.variance[named] = better.value, better.variance
        by_cell.sampling[named], by_cell.shared[named] = better.sampling, better.shared
    return by_cell


def _rho(measurement: Measurement, design: ManyRecordsDesign) -> float | None:
    hidden = 4 * design.detail_noise.scale
    if min(measurement.listed, measurement.squares) < hidden:
        return None
    return min(measurement.squares / measurement.listed, 1.0)


def _without_selection(weights: Ints, step: WeightThreshold) -> Observed:
    """Weights that passed a threshold are too large by about V/W where rare items are more numerous than common ones.

    With a density 1/p² of shares the posterior mean is that much lower.
    """
    variance = step.noise.variance
    value: Floats = weights - variance / np.maximum(weights, 1)
    return Observed(value, np.full(len(weights), variance))


def measure_head_list(
    optin_users: UserGroup, params: BlenderParams, design: ManyRecordsDesign, *, randomness: Randomness | None = None
) -> MeasuredHeadList:
    """The M heaviest queries with their named URLs and all users' own shares; (ε, δ)-private under replace-one."""
    source = randomness or SystemRandomness()
    queries = _named_queries(optin_users, params, design, source)
    records = _named_records(optin_users, list(queries), design, source)
    urls: dict[str, list[str]] = {query: [] for query in queries}
    for query, url in records:
        urls[str(query)].append(str(url))
    head = HeadList(urls.items())
    shares = optin_users.own_shares(head, design.units, randomness=source)
    counts = _noisy_counts(shares.cells[:-1], head, design, source)
    rest, squares = (np.array([shares.cells[-1], shares.squares]) + design.detail_noise.sample(2, source)).tolist()
    measurement = Measurement(
        rest,
        squares,
        optin_users.n_users * design.units - rest,
        np.array(list(queries.values()), dtype=np.int64),
        np.array([records.get(cell, 0) for cell in head.cells()][:-1], dtype=np.int64),
    )
    return MeasuredHeadList(head, counts, measurement, optin_users.n_users, design)


def _noisy_counts(cells: Ints, head: HeadList, design: ManyRecordsDesign, randomness: Randomness) -> Ints:
    """Totals of queries and counts of named records, each with its noise; ⟨q,⋆⟩ is what the latter leave."""
    if not len(head):
        return cells
    first, last = np.array(head.first_cells()[:-1]), np.array(head.first_cells()[1:]) - 1
    totals = np.add.reduceat(cells, first) + design.noise.sample(len(head), randomness)
    counts = cells + design.detail_noise.sample(len(cells), randomness)
    counts[last] = 0
    counts[last] = totals - np.add.reduceat(counts, first)
    return counts


def _named_queries(
    optin_users: UserGroup, params: BlenderParams, design: ManyRecordsDesign, randomness: Randomness
) -> dict[str, int]:
    """The M heaviest of the queries that are heavy enough, most first, with their weights; ties by bytes."""
    tally = optin_users.weighted_queries(design.queries.weights, randomness=randomness)
    named = noisy_counts(tally, design.queries, randomness=randomness)
    heaviest = sorted(named, key=lambda record: (-named[record], str(record.query).encode()))
    return {str(record.query): named[record] for record in heaviest[: params.max_head_queries]}


def _named_records(
    optin_users: UserGroup, queries: list[str], design: ManyRecordsDesign, randomness: Randomness
) -> dict[Record, int]:
    """The records of these queries that are heavy enough, most first, with their weights; ties by bytes."""
    if design.records is None or not queries:
        return {}
    tally = optin_users.weighted_records(queries, design.records.weights, randomness=randomness)
    named = noisy_counts(tally, design.records, randomness=randomness)
    heaviest = sorted(named, key=lambda record: (-named[record], str(record.url).encode()))
    return {record: named[record] for record in heaviest}
