"""Suggestions for a query: what people typed or chose next, where the release is sure of it; else similar queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.similar import similar_queries
from searchblend.core.errors import InvalidParameter


@dataclass(frozen=True)
class Suggestion:
    """One suggestion. Scores of the two sources do not compare; reformulations always come first."""

    query: str
    source: Literal["reformulation", "similar clicks"]
    score: float
    """at least this share of the query's searches went on so (lower end of 95 %), or a cosine of clicks"""


def suggest(graph: ClickGraph, query: str, *, limit: int = 10, cut: float | None = None) -> list[Suggestion]:
    """Next queries, ranked by the lower end of their interval over the query's count; noise cannot win the ranking.

    Where reformulations do not fill the list, queries with similar clicks follow.
    """
    if limit < 1:
        raise InvalidParameter("limit", "expected at least 1")
    found = _reformulations(graph, graph.number_of(query), cut)[:limit]
    known = {suggestion.query for suggestion in found}
    for other in similar_queries(graph, query, limit=limit + len(known), cut=cut):
        if len(found) < limit and other.query not in known:
            found.append(Suggestion(other.query, "similar clicks", other.score))
    return found


def _reformulations(graph: ClickGraph, number: int, cut: float | None) -> list[Suggestion]:
    edges = graph.reformulations
    own = (edges.source == number) & (edges.target != number)
    own &= edges.kept(graph.cut("reformulations", cut)) & (edges.counts.low > 0)
    searches = max(int(graph.searches.count[number]), 1)
    found = [
        Suggestion(graph.queries[edges.target[i]], "reformulation", min(float(edges.counts.low[i]) / searches, 1.0))
        for i in np.flatnonzero(own)
    ]
    return sorted(found, key=lambda suggestion: (-suggestion.score, suggestion.query))
