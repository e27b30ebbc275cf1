"""How good a release is, against a truth that only an evaluation knows. [BLJ] §4.1.

⋆ is left out of every score. Nothing here is private: scores belong to evaluations, never to releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.release import BlenderRelease
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """The true shares of a head list's cells and queries among all users: of their own shares or of drawn records."""

    cells: Floats
    queries: Floats

    @classmethod
    def of(cls, head: HeadList, cell_counts: Ints | Floats) -> Truth:
        cells = cell_counts / cell_counts.sum()
        return cls(cells, np.add.reduceat(cells, head.first_cells()))


@dataclass(frozen=True)
class Metrics:
    """The scores of one run; ``None`` for an empty list."""

    query_l1: float | None
    record_l1: float | None
    ndcg: float | None


def score(release: BlenderRelease, truth: Truth) -> Metrics:
    """L1 of queries and records and the nested NDCG of the released list."""
    head = release.head
    if not len(head):
        return Metrics(None, None, None)
    records = listed_cells(head)
    query_l1 = float(np.abs(release.queries.probability - truth.queries)[:-1].sum())
    record_l1 = float(np.abs(release.records.probability - truth.cells)[records].sum())
    return Metrics(query_l1, record_l1, nested_ndcg(release, truth))


def listed_cells(head: HeadList) -> Ints:
    """The cells that are listed records: neither ⟨q,⋆⟩ (unless the list has no URLs) nor ⟨⋆,⋆⟩."""
    if not head.has_urls:
        return np.arange(head.n_cells - 1)
    star = np.cumsum(head.n_urls, dtype=np.int64) - 1
    return np.setdiff1d(np.arange(head.n_cells), star)


def nested_ndcg(release: BlenderRelease, truth: Truth) -> float:
    """The NDCG of the queries, each gain multiplied by the NDCG of that query's own URL list.

    Queries are ranked by the released trend, URLs by the released record; ties by bytes.
    """
    order = release.ranked_queries()
    return ndcg(truth.queries[:-1][order], url_factors(release.head, release.records.probability, truth)[order])


def url_factors(head: HeadList, cell_estimates: Floats, truth: Truth) -> Floats:
    """For every listed query the NDCG of its URL list, ranked by these estimates."""
    first = head.first_cells()
    factors = np.ones(len(head))
    for i, query in enumerate(head.queries):
        urls = head.urls(query)
        cells = slice(first[i], first[i] + len(urls))
        factors[i] = ndcg(truth.cells[cells][ranked(cell_estimates[cells], urls)])
    return factors


def ranked(estimates: Floats, names: Sequence[str]) -> list[int]:
    """The numbers of the names, the highest estimate first; ties by bytes."""
    return sorted(range(len(names)), key=lambda i: (-estimates[i], names[i].encode()))


def discounted(gains: Floats) -> float:
    """DCG of gains in their order."""
    return float(gains @ (1 / np.log2(np.arange(2, len(gains) + 2))))


def ndcg(true_shares: Floats, factors: Floats | None = None) -> float:
    """DCG/IDCG of items given in their released order, relevance = share of their sum; 1 if nothing can be ranked."""
    total = true_shares.sum()
    if (len(true_shares) <= 1 and factors is None) or total == 0:
        return 1.0
    gains = np.exp2(true_shares / total) - 1
    ideal = discounted(np.sort(gains)[::-1])
    return discounted(gains if factors is None else gains * factors) / ideal
