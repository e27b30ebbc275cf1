"""Queries that are alike, by what people clicked after them; and suggestions for a query.

Suggestions are what people typed or chose next, where the release is sure of it; else similar queries.

[BYT07] Baeza-Yates, Tiberi: Extracting semantic relations from query logs, KDD 2007.
[CS07] Craswell, Szummer: Random walks on the click graph, SIGIR 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from searchblend.clickgraph.use.graph import ClickGraph, ranked
from searchblend.core.errors import InvalidParameter

Numbers = NDArray[np.float64]
Relation = Literal["identical", "narrower", "broader", "overlapping"]
Direction = Literal["forward", "backward"]
DIRECTIONS: Final[tuple[Direction, ...]] = ("forward", "backward")


@dataclass(frozen=True)
class SimilarQuery:
    """Another query, and how its clicked URLs relate to those of the query that was asked about.

    The relations of [BYT07]: ``identical`` sets; ``narrower``, all of the other's URLs are among ours; ``broader``, it
    has all of ours and more; ``overlapping``, some are shared.
    """

    query: str
    score: float
    """the cosine of the two queries' clicks"""
    relation: Relation
    shared_urls: int


@dataclass(frozen=True)
class Reached:
    """A node of the graph and its probability in a walk."""

    text: str
    score: float


def similar_queries(
    graph: ClickGraph, query: str, *, limit: int | None = 10, idf: bool = False, cut: float | None = None
) -> list[SimilarQuery]:
    """Queries that share clicked URLs with this one, by the cosine of their clicks.

    ``idf`` weighs each URL by ln(queries / queries that lead to it): a portal that all users click is little evidence.
    """
    number, clicks = graph.number_of(query), graph.click_matrix(cut)
    weighted = clicks
    if idf:
        weights = np.log(max(len(graph.queries), 1) / np.maximum(_column_degrees(clicks), 1))
        weighted = sparse.csr_array(clicks @ sparse.diags_array(weights))
    own = weighted[[number]].toarray().ravel()
    norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    scores = _divided(weighted @ own, norms * norms[number])
    shared = (clicks > 0).astype(np.int64) @ (clicks[[number]].toarray().ravel() > 0).astype(np.int64)
    scores[number], scores[shared == 0] = 0.0, 0.0
    degrees = np.diff(clicks.indptr)
    return [
        SimilarQuery(
            graph.queries[i],
            min(float(scores[i]), 1.0),
            _relation(int(degrees[number]), int(degrees[i]), int(shared[i])),
            int(shared[i]),
        )
        for i in ranked(scores, graph.queries, limit)
        if scores[i] > 0
    ]


def _relation(own: int, other: int, shared: int) -> Relation:
    if shared == own == other:
        return "identical"
    if shared == other:
        return "narrower"
    return "broader" if shared == own else "overlapping"


def _column_degrees(clicks: Any) -> NDArray[np.int64]:
    return np.bincount(clicks.indices, minlength=clicks.shape[1])


def _divided(above: Numbers, below: Numbers) -> Numbers:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


@dataclass(frozen=True)
class ClickWalk:
    """The walk of [CS07]: at each step it stays where it is with probability s, else it follows a click.

    ``forward`` scores a node by P(t = node | 0 = query); ``backward`` by P(0 = node | t = query) under a uniform start,
    which [CS07] found better when long and slow.
    """

    direction: Direction = "backward"
    self_transition: float = 0.9
    """s"""
    steps: int = 11
    """t"""

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise InvalidParameter("direction", f"expected {' or '.join(DIRECTIONS)}")
        if not 0 <= self.self_transition < 1:
            raise InvalidParameter("self_transition", "expected a number in [0, 1)")
        if self.steps < 1:
            raise InvalidParameter("steps", "expected at least one step")

    def queries(
        self, graph: ClickGraph, query: str, *, limit: int | None = 10, cut: float | None = None
    ) -> list[Reached]:
        """The queries most likely at the walk's other end, the query itself left out."""
        if self.self_transition == 0 and self.steps % 2:
            raise InvalidParameter(
                "steps", "expected an even number, or a self_transition above 0: odd walks end on URLs"
            )
        number = graph.number_of(query)
        scores = self._walk(graph.click_matrix(cut), number)[0]
        scores[number] = 0.0
        return _reached(scores, graph.queries, limit)

    def urls(self, graph: ClickGraph, query: str, *, limit: int | None = 10, cut: float | None = None) -> list[Reached]:
        """The URLs most likely at the walk's other end: documents for the query, clicked after it or not."""
        if self.self_transition == 0 and self.steps % 2 == 0:
            raise InvalidParameter(
                "steps", "expected an odd number, or a self_transition above 0: even walks end on queries"
            )
        return _reached(self._walk(graph.click_matrix(cut), graph.number_of(query))[1], graph.urls, limit)

    def _walk(self, clicks: Any, start: int) -> tuple[Numbers, Numbers]:
        """Probabilities of queries and of URLs. A node without clicks is left by no step and reached by none."""
        from_query = sparse.csr_array(sparse.diags_array(_inverse(clicks.sum(axis=1))) @ clicks)
        from_url = sparse.csr_array(sparse.diags_array(_inverse(clicks.sum(axis=0))) @ clicks.T.tocsr())
        to_query, to_url = from_query, from_url
        if self.direction == "forward":
            to_query, to_url = from_url.T.tocsr(), from_query.T.tocsr()
        queries, urls = np.zeros(clicks.shape[0]), np.zeros(clicks.shape[1])
        queries[start] = 1.0
        stay = self.self_transition
        for _ in range(self.steps):
            queries, urls = (
                stay * queries + (1 - stay) * (to_query @ urls),
                stay * urls + (1 - stay) * (to_url @ queries),
            )
        total = queries.sum() + urls.sum()
        return (queries / total, urls / total) if total > 0 else (queries, urls)


def _inverse(sums: Any) -> Numbers:
    values = np.asarray(sums, dtype=np.float64)
    return _divided(np.ones_like(values), values)


def _reached(scores: Numbers, strings: Sequence[str], limit: int | None) -> list[Reached]:
    return [Reached(strings[i], float(scores[i])) for i in ranked(scores, strings, limit) if scores[i] > 0]


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
    suggestions = _reformulations(graph, graph.number_of(query), cut)[:limit]
    known = {suggestion.query for suggestion in suggestions}
    for other in similar_queries(graph, query, limit=limit + len(known), cut=cut):
        if len(suggestions) < limit and other.query not in known:
            suggestions.append(Suggestion(other.query, "similar clicks", other.score))
    return suggestions


def _reformulations(graph: ClickGraph, number: int, cut: float | None) -> list[Suggestion]:
    edges = graph.reformulations
    own = (edges.source == number) & (edges.target != number)
    own &= edges.kept(graph.cut("reformulations", cut)) & (edges.counts.low > 0)
    searches = max(int(graph.searches.count[number]), 1)
    suggestions = [
        Suggestion(graph.queries[edges.target[i]], "reformulation", min(float(edges.counts.low[i]) / searches, 1.0))
        for i in np.flatnonzero(own)
    ]
    return sorted(suggestions, key=lambda suggestion: (-suggestion.score, suggestion.query))
