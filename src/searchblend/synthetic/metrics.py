"""How good a release is, against a truth that only an evaluation knows. [BLJ] §4.1.

⋆ is left out of every score. Nothing here is private: scores belong to evaluations, never to releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.estimates import GroupEstimates
from searchblend.blender.release import BlenderRelease
from searchblend.core.records import HeadList
from searchblend.mechanisms.simplex import project_onto_simplex
from searchblend.mechanisms.tally import Ints

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """The true shares of a head list's cells and queries among all users, one random record each."""

    cells: Floats
    queries: Floats

    @classmethod
    def of(cls, head: HeadList, cell_counts: Ints) -> Truth:
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
        factors[i] = ndcg(truth.cells[cells][_ranked(cell_estimates[cells], urls)])
    return factors


def group_scores(head: HeadList, group: GroupEstimates, truth: Truth) -> Metrics:
    """The scores that one group's own estimates of the list would get, projected as the blend is.

    The NDCG is ``None`` where the group was not asked about URLs.
    """
    if not len(head):
        return Metrics(None, None, None)
    listed = listed_cells(head)
    queries = project_onto_simplex(group.queries.probability)
    query_l1 = float(np.abs(queries - truth.queries)[:-1].sum())
    if np.isnan(group.records.probability[listed]).any():
        return Metrics(query_l1, None, None)
    cells = np.zeros(head.n_cells)
    asked = ~np.isnan(group.records.probability)
    cells[asked] = project_onto_simplex(group.records.probability[asked])
    order = _ranked(queries[:-1], head.queries)
    score = ndcg(truth.queries[:-1][order], url_factors(head, cells, truth)[order])
    return Metrics(query_l1, float(np.abs(cells - truth.cells)[listed].sum()), score)


def ndcg_top(release: BlenderRelease, truth: Truth, top: Mapping[str, float]) -> float:
    """The nested NDCG against the true top M (``top``: query → share): what the list misses costs."""
    total = sum(top.values())
    order = release.ranked_queries()
    factors = url_factors(release.head, release.records.probability, truth)[order]
    gains = np.exp2(truth.queries[:-1][order] / total) - 1
    ideal = np.exp2(np.sort(np.array(list(top.values())))[::-1] / total) - 1
    return _discounted(gains * factors) / _discounted(ideal)


def ndcg_rank(release: BlenderRelease, top: Mapping[str, float]) -> float:
    """The NDCG of the queries with relevance by rank alone, as in the comparison of [BLJ] §4.3.2.

    The query of true rank r among the M most frequent has relevance (M + 1 − r)/M, any other 0, however close their
    shares are. URLs play no part.
    """
    ranked = sorted(top, key=lambda query: (-top[query], query.encode()))
    relevance = {query: 1 - position / len(ranked) for position, query in enumerate(ranked)}
    queries = release.head.queries
    released = np.array([relevance.get(queries[i], 0.0) for i in release.ranked_queries()])
    ideal = np.array(list(relevance.values()))
    return _discounted(np.exp2(released) - 1) / _discounted(np.exp2(ideal) - 1)


def top_l1(release: BlenderRelease, top: Mapping[str, float]) -> float:
    """L1 over the truly most frequent queries; one that is not listed counts as estimated 0."""
    estimated = dict(zip(release.head.queries, release.queries.probability.tolist(), strict=False))
    return float(sum(abs(estimated.get(query, 0.0) - share) for query, share in top.items()))


def _ranked(estimates: Floats, names: Sequence[str]) -> list[int]:
    return sorted(range(len(names)), key=lambda i: (-estimates[i], names[i].encode()))


def _discounted(gains: Floats) -> float:
    return float(gains @ (1 / np.log2(np.arange(2, len(gains) + 2))))


def ndcg(true_shares: Floats, factors: Floats | None = None) -> float:
    """DCG/IDCG of items given in their released order, relevance = share of their sum; 1 if nothing can be ranked."""
    total = true_shares.sum()
    if (len(true_shares) <= 1 and factors is None) or total == 0:
        return 1.0
    gains = np.exp2(true_shares / total) - 1
    ideal = _discounted(np.sort(gains)[::-1])
    return _discounted(gains if factors is None else gains * factors) / ideal
