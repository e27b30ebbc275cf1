"""Scores that only the figures show: of one group alone, and against the truly most frequent queries."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from searchblend.blender.estimates import GroupEstimates
from searchblend.blender.paper.blend import project_onto_simplex
from searchblend.blender.release import BlenderRelease
from searchblend.core.records import HeadList
from searchblend.synthetic.metrics import Metrics, Truth, discounted, listed_cells, ndcg, ranked, url_factors


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
    order = ranked(queries[:-1], head.queries)
    score = ndcg(truth.queries[:-1][order], url_factors(head, cells, truth)[order])
    return Metrics(query_l1, float(np.abs(cells - truth.cells)[listed].sum()), score)


def ndcg_top(release: BlenderRelease, truth: Truth, top: Mapping[str, float]) -> float:
    """The nested NDCG against the true top M (``top``: query → share): what the list misses costs."""
    total = sum(top.values())
    order = release.ranked_queries()
    factors = url_factors(release.head, release.records.probability, truth)[order]
    gains = np.exp2(truth.queries[:-1][order] / total) - 1
    ideal = np.exp2(np.sort(np.array(list(top.values())))[::-1] / total) - 1
    return discounted(gains * factors) / discounted(ideal)


def ndcg_rank(release: BlenderRelease, top: Mapping[str, float]) -> float:
    """The NDCG of the queries with relevance by rank alone, as in the comparison of [BLJ] §4.3.2.

    The query of true rank r among the M most frequent has relevance (M + 1 − r)/M, any other 0, however close their
    shares are. URLs play no part.
    """
    frequent = sorted(top, key=lambda query: (-top[query], query.encode()))
    relevance = {query: 1 - position / len(frequent) for position, query in enumerate(frequent)}
    queries = release.head.queries
    released = np.array([relevance.get(queries[i], 0.0) for i in release.ranked_queries()])
    ideal = np.array(list(relevance.values()))
    return discounted(np.exp2(released) - 1) / discounted(np.exp2(ideal) - 1)


def top_l1(release: BlenderRelease, top: Mapping[str, float]) -> float:
    """L1 over the truly most frequent queries; one that is not listed counts as estimated 0."""
    estimated = dict(zip(release.head.queries, release.queries.probability.tolist(), strict=False))
    return float(sum(abs(estimated.get(query, 0.0) - share) for query, share in top.items()))
