"""Made-up people with many records each: what fractional contributions are for.

The number of records per person has the shape of the AOL log (median 17, some have 1, some 100 and more). Half of a
person's records repeat an earlier one of theirs, as people's searches do. Truth: the mean over all people of each
person's own shares, which is what one random record per person measures as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from searchblend.blender.best.stability_histogram import CountedHeadList, count_head_list, curator_design
from searchblend.blender.groups import InMemoryGroup
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.mechanisms.tally import Ints, ListedRecords
from searchblend.synthetic.seeded import SeededRandomness

N_QUERIES, N_RARE = 60, 20_000
_URLS = np.array([0.7, 0.2, 0.1])
_LONGEST = 100


def _records() -> list[Record]:
    common = [Record(f"q{i:02}", f"u{j}") for i in range(N_QUERIES) for j in range(len(_URLS))]
    return [*common, *(Record(f"rare {i}", "u") for i in range(N_RARE))]


def _popularity() -> np.ndarray:
    common = np.outer((np.arange(N_QUERIES) + 2.0) ** -1.1, _URLS).ravel()
    weights: np.ndarray = np.concatenate([common, np.full(N_RARE, common.sum() / N_RARE)])
    total: float = weights.sum()
    return weights / total


UNIVERSE = ListedRecords(_records())
POPULARITY = _popularity()


@dataclass(frozen=True)
class People:
    """Rows of record numbers, the rows of one person next to each other."""

    rows: Ints
    lengths: Ints

    @classmethod
    def made(cls, n: int, seed: int, repeated: float = 0.5) -> People:
        generator = np.random.Generator(np.random.PCG64(seed))
        z = generator.standard_normal(n)
        lengths = np.clip(np.rint(17 * np.exp(np.where(z < 0, 1.785, 1.54) * z)), 1, _LONGEST).astype(np.int64)
        rows = generator.choice(len(POPULARITY), size=int(lengths.sum()), p=POPULARITY)
        starts = np.cumsum(lengths) - lengths
        within = np.arange(len(rows)) - np.repeat(starts, lengths)
        again = (generator.random(len(rows)) < repeated) & (within > 0)
        earlier = np.arange(len(rows)) - within + (generator.random(len(rows)) * within).astype(np.int64)
        for k in range(1, _LONGEST):
            now = np.flatnonzero(again & (within == k))
            rows[now] = rows[earlier[now]]
        return cls(rows, lengths)

    @property
    def starts(self) -> Ints:
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def true_queries(self) -> np.ndarray:
        """The mean share of each common query."""
        query = np.minimum(self.rows // len(_URLS), N_QUERIES)
        weight = np.repeat(1 / self.lengths, self.lengths)
        return np.bincount(query, weights=weight, minlength=N_QUERIES + 1)[:N_QUERIES] / len(self.lengths)

    def group(self, seed: int) -> InMemoryGroup:
        return InMemoryGroup(UNIVERSE, self.rows, self.starts, self.lengths, randomness=SeededRandomness(seed))


def counted(group: InMemoryGroup, budget: Budget, records: int, seed: int) -> CountedHeadList:
    params = BlenderParams(budget, records_per_optin=records)
    return count_head_list(group, params, curator_design(params), randomness=SeededRandomness(seed))


def query_shares(counted: CountedHeadList) -> dict[int, float]:
    """The opt-in users' estimates of the common queries that are listed."""
    totals = np.add.reduceat(counted.counts, counted.head.first_cells()[:-1]) / counted.n_units
    named = zip(counted.head.queries, totals.tolist(), strict=True)
    return {int(query[1:]): share for query, share in named if not query.startswith("rare")}


@dataclass(frozen=True)
class Comparison:
    """Errors of both policies on the queries that both list, one row per replicate."""

    one: np.ndarray
    """L1 with one record per person"""
    many: np.ndarray
    bias: np.ndarray
    """summed error with many records, relative to the summed truth"""

    @property
    def ratio(self) -> float:
        return float(self.many.mean() / self.one.mean())


def compare(budget: Budget, records: int, replicates: int, seed: int, n_optin: int = 3000) -> Comparison:
    """A fifth of the people opts in; the truth is that of all."""
    rows = []
    for replicate in range(replicates):
        people = People.made(5 * n_optin, seed + replicate)
        optin = people.group(seed + replicate).select(np.arange(n_optin))
        one, many = (query_shares(counted(optin, budget, m, seed + replicate)) for m in (1, records))
        both = sorted(set(one) & set(many))
        truth = people.true_queries[both]
        errors = [np.array([said[q] for q in both]) - truth for said in (one, many)]
        rows.append((np.abs(errors[0]).sum(), np.abs(errors[1]).sum(), errors[1].sum() / truth.sum()))
    return Comparison(*(np.array(column) for column in zip(*rows, strict=True)))
