"""The curator of method ``best`` over many records: every search of an opt-in user counts, at the same (ε, δ).

Each user spreads one ℓ2-unit of weight over their different queries, so that the noise does not grow with how much they
search; a query is named when its weight with noise reaches a threshold that one person alone hardly reaches. Records
are named in the same way within the named queries. Then each user's *own shares* of the listed cells are summed, over
all of their searches, with fresh noise: what is published is not what was selected, so that selection does not bias it.
The sums of squares of these shares are free, and say how much users vary (proofs/many_records.md). Run by the curator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from searchblend.blender.best.calibrate_weights import Observed, calibrate
from searchblend.blender.best.many_records_design import ManyRecordsDesign, WeightThreshold
from searchblend.blender.estimates import Floats
from searchblend.blender.groups import UserGroup
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.noisy_counts import noisy_counts
from searchblend.mechanisms.tally import Ints


@dataclass(frozen=True)
class Measurement:
    """What is published beside the list and the counts of its cells; everything has its noise."""

    rest: int
    """own shares of ⟨⋆,⋆⟩, in units"""
    squares: int
    """the users' sums of squares over the listed cells, in units"""
    listed: int
    """own shares of the cells whose squares these are, in units"""
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
    """by cell, without ⟨⋆,⋆⟩"""
    measurement: Measurement
    n_users: int
    design: ManyRecordsDesign
    merged: Ints | None = None
    """by cell: how many removed records' counts, each with its own noise, are part of it; None: none"""

    @property
    def n_units(self) -> int:
        return self.n_users * self.design.units


@dataclass(frozen=True)
class MeasuredShares:
    """What the opt-in users' own shares are, from all that was published about them."""

    cells: Observed
    """by cell, without ⟨⋆,⋆⟩; variances before a query's cells were moved to its total"""
    total_variance: Floats
    """V of the noise of its query's total, by cell. The noise of the query's cells has the covariance
    D − (1 − V/Σd)/Σd·ddᵀ, D = diag(d)"""
    rho: float | None
    """ρ = E[s²]/E[s] of a user's own share s of a cell; None where noise hides it"""


def measured_shares(measured: MeasuredHeadList) -> MeasuredShares:
    """Shares and what their noise is; the users' sampling comes on top. Post-processing."""
    head, n = measured.head, measured.n_units
    cells = _with_record_weights(_summing_to_everybody(measured), measured)
    first = head.first_cells()[:-1]
    totals = Observed(np.add.reduceat(cells.value, first), np.add.reduceat(cells.variance, first))
    queries = calibrate(totals, _without_selection(measured.measurement.query_weights, measured.design.queries))
    query_of = np.repeat(np.arange(len(head)), head.n_urls[:-1])
    moved = (queries.value - totals.value) / totals.variance
    value: Floats = cells.value + cells.variance * moved[query_of]
    return MeasuredShares(
        Observed(value / n, cells.variance / n**2),
        queries.variance[query_of] / n**2,
        _rho(measured.measurement, measured.design),
    )


def _rho(measurement: Measurement, design: ManyRecordsDesign) -> float | None:
    hidden = 4 * design.summary_noise.scale
    if min(measurement.listed, measurement.squares) < hidden:
        return None
    return min(measurement.squares / measurement.listed, 1.0)


def _with_record_weights(cells: Observed, measured: MeasuredHeadList) -> Observed:
    """The named records' weights as a second observation of their cells."""
    weights, step = measured.measurement.record_weights, measured.design.records
    named = weights > 0
    if step is None or not named.any():
        return cells
    better = calibrate(Observed(cells.value[named], cells.variance[named]), _without_selection(weights[named], step))
    value, variance = cells.value.copy(), cells.variance.copy()
    value[named], variance[named] = better.value, better.variance
    return Observed(value, variance)


def _summing_to_everybody(measured: MeasuredHeadList) -> Observed:
    """All cells with ⟨⋆,⋆⟩ are everybody's units: what noise adds to their sum is taken off, by its variances."""
    rest = measured.design.summary_noise.variance
    own = np.full(len(measured.counts), measured.design.noise.variance)
    if measured.merged is not None:
        own *= 1 + measured.merged
    excess = int(measured.counts.sum()) + measured.measurement.rest - measured.n_units
    part = own / (own.sum() + rest)
    value: Floats = measured.counts - excess * part
    return Observed(value, own * (1 - part))


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
    """The M heaviest queries with their named URLs and everybody's own shares; (ε, δ)-private under replace-one."""
    source = randomness or SystemRandomness()
    queries = _named_queries(optin_users, params, design, source)
    records = _named_records(optin_users, list(queries), design, source)
    urls: dict[str, list[str]] = {query: [] for query in queries}
    for query, url in records:
        urls[str(query)].append(str(url))
    head = HeadList(urls.items())
    shares = optin_users.own_shares(head, design.units, randomness=source)
    counts = shares.cells[:-1] + design.noise.sample(head.n_cells - 1, source)
    rest, squares = (np.array([shares.cells[-1], shares.squares]) + design.summary_noise.sample(2, source)).tolist()
    measurement = Measurement(
        rest,
        squares,
        optin_users.n_users * design.units - rest,
        np.array(list(queries.values()), dtype=np.int64),
        np.array([records.get(cell, 0) for cell in head.cells()][:-1], dtype=np.int64),
    )
    return MeasuredHeadList(head, counts, measurement, optin_users.n_users, design)


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
