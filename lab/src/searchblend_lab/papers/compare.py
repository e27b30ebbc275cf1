"""Two methods on the same people: errors on what both lists share, on the true top M, coverage of the intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.estimates import NORMAL_95, Blended, Estimates, Floats
from searchblend.blender.groups import InMemoryGroup, UserGroup
from searchblend.blender.pipeline import run_blender
from searchblend.blender.release import BlenderRelease
from searchblend.core.errors import EmptyHeadList
from searchblend.core.params import BlenderParams
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.tally import Ints
from searchblend.synthetic.metrics import Truth, listed_cells, nested_ndcg
from searchblend.synthetic.population import URLS_PER_QUERY
from searchblend.synthetic.seeded import SeededRandomness


@dataclass(frozen=True)
class Scored:
    """One release with what the truth says about it."""

    release: BlenderRelease
    truth: Truth

    @property
    def query_errors(self) -> dict[str, float]:
        errors = np.abs(self.release.queries.probability - self.truth.queries)
        return dict(zip(self.release.head.queries, errors.tolist(), strict=False))

    @property
    def record_errors(self) -> dict[Record, float]:
        errors = np.abs(self.release.records.probability - self.truth.cells)
        cells = list(self.release.head.cells())
        return {cells[i]: float(errors[i]) for i in listed_cells(self.release.head).tolist()}

    def top_error(self, top: dict[str, float]) -> float:
        """L1 over the truly most frequent queries; one that is not listed counts as estimated 0."""
        estimated = dict(zip(self.release.head.queries, self.release.queries.probability.tolist(), strict=False))
        return float(sum(abs(estimated.get(query, 0.0) - share) for query, share in top.items()))

    def group_error(self, estimates: Estimates) -> float:
        """Query L1 of one group's own estimates of the same list."""
        return float(np.abs(np.maximum(estimates.probability, 0) - self.truth.queries)[:-1].sum())

    def covered(self) -> tuple[int, int, int, int]:
        """Queries inside their interval, queries, records inside, records."""
        queries = _inside(self.release.queries, self.truth.queries)[:-1]
        records = _inside(self.release.records, self.truth.cells)[listed_cells(self.release.head)]
        return int(queries.sum()), len(queries), int(records.sum()), len(records)

    @property
    def ndcg(self) -> float:
        return nested_ndcg(self.release, self.truth)


def _inside(blended: Blended, truth: Floats) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.abs(blended.raw.probability - truth) <= NORMAL_95 * np.sqrt(blended.raw.variance)
    return inside


def run_scored(
    optin: UserGroup,
    clients: UserGroup,
    params: BlenderParams,
    method: str,
    seed: int,
    truth: Callable[[HeadList], Truth],
) -> Scored | None:
    """A run and its truth over all people of both groups; ``None`` for an empty list."""
    try:
        release = run_blender(optin, clients, params, method=method, randomness=SeededRandomness(seed))
    except EmptyHeadList:
        return None
    return Scored(release, truth(release.head))


def shared_errors(one: Scored, other: Scored) -> tuple[float, float, float, float]:
    """Query L1 of both and record L1 of both, over the queries and records that both list."""
    queries = one.query_errors.keys() & other.query_errors.keys()
    records = one.record_errors.keys() & other.record_errors.keys()
    a, b, c, d = one.query_errors, other.query_errors, one.record_errors, other.record_errors
    return (
        sum(a[query] for query in queries),
        sum(b[query] for query in queries),
        sum(c[record] for record in records),
        sum(d[record] for record in records),
    )


def true_top(population: InMemoryGroup, n: int, truth: Callable[[HeadList], Truth]) -> dict[str, float]:
    """The queries that most drawn records of a synthetic population are of, with their true shares."""
    ranks = population.drawn // URLS_PER_QUERY
    counts = np.bincount(ranks[ranks < 100 * n])
    most = np.argsort(-counts, kind="stable")[:n]
    names = [str(population.record(int(rank) * URLS_PER_QUERY).query) for rank in most]
    return dict(zip(names, truth(HeadList((name, ()) for name in names)).queries.tolist(), strict=False))


def tilted_split(
    population: InMemoryGroup, fraction: float, tilt: float, generator: np.random.Generator
) -> tuple[InMemoryGroup, InMemoryGroup]:
    """Opt-in users unlike clients: the odds of opting in are multiplied by exp(N(0, tilt)), drawn for each query."""
    ranks: Ints = population.drawn // URLS_PER_QUERY
    factor = np.exp(tilt * generator.standard_normal(int(ranks.max()) + 1))[ranks]
    odds = fraction / (1 - fraction) * factor
    opted_in = generator.random(len(ranks)) < odds / (1 + odds)
    return population.select(opted_in), population.select(~opted_in)
