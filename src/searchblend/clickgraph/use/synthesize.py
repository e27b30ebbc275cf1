"""A synthetic log drawn from a release alone: [KKMN09] §8. Post-processing, so it costs no privacy.

A session starts with q in proportion to max(n_q − Σ r_{q'q}, 0), the searches that no released reformulation leads to.
Each search clicks URL u with probability c_qu / max(n_q, Σ_u c_qu), else nothing, and goes on to q' with probability
r_{qq'} / max(n_q, Σ_q' r_{qq'}), else the session ends. So the searches of q come out in proportion to n_q: starting
in proportion to n_q itself would count reformulated queries twice. Counts below 0 or below the cut are 0.

All weights are integers. A draw is a 64-bit word modulo a total: off from exact by less than total/2^64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.core.errors import InvalidParameter, RunError
from searchblend.core.randomness import Randomness, SystemRandomness

Integers = NDArray[np.int64]
NOTHING: Final = -1
LONGEST_SESSION: Final = 100
SEARCHES_PER_USER: Final = 10
WHAT_IT_IS_NOT: Final = (
    "synthetic: no line is a person's search; lines were drawn from released counts alone",
    "no times: sessions have an order, but neither hours nor days",
    "users are numbers given to sessions at random: no one has interests, habits or a history",
    "at most one click follows a search, and depends on its query alone",
    "a reformulation depends on the query before it alone; longer habits are not in it",
    "rare queries are missing: what was not released cannot be drawn",
)


@dataclass(frozen=True, eq=False)
class SyntheticLog:
    """Searches in order of users and their sessions, everything by number."""

    user: Integers
    session: Integers
    query: Integers
    url: Integers
    """``NOTHING`` where nothing was clicked"""
    reformulated: NDArray[np.bool_]
    """whether the search follows from the one before it"""

    def __len__(self) -> int:
        return len(self.query)


def synthesize_log(
    graph: ClickGraph,
    searches: int,
    *,
    users: int | None = None,
    cut: float | None = None,
    randomness: Randomness | None = None,
) -> SyntheticLog:
    """Draw a log with this many searches; sessions belong to random users (a tenth as many as searches)."""
    if searches < 1:
        raise InvalidParameter("searches", "expected at least 1")
    n_users = max(searches // SEARCHES_PER_USER, 1) if users is None else users
    if n_users < 1:
        raise InvalidParameter("users", "expected at least 1")
    source = randomness or SystemRandomness()
    session, query, reformulated = _sessions(graph, searches, cut, source)
    clicks = _Choice(graph.click_matrix(cut), graph.searches.clamped)
    user_of_session = _uniform(np.full(int(session[-1]) + 1, n_users), source)
    url = clicks.draw(query, source)
    order = np.argsort(user_of_session[session], kind="stable")
    return SyntheticLog(user_of_session[session][order], session[order], query[order], url[order], reformulated[order])


def _sessions(
    graph: ClickGraph, searches: int, cut: float | None, source: Randomness
) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    """Whole sessions until there are enough searches; the last one is cut short."""
    following = graph.reformulation_matrix(cut)
    next_query = _Choice(following, graph.searches.clamped)
    arriving = np.asarray(following.sum(axis=0)).ravel().astype(np.int64)
    starts = np.maximum(graph.searches.clamped - arriving, 0)
    if not starts.sum():
        raise RunError("no released query has a positive count from which a session could start")
    ends = np.cumsum(starts)
    pieces: list[tuple[Integers, Integers, Integers]] = []
    drawn = n_sessions = 0
    while drawn < searches:
        wanted = max(searches - drawn, 64)
        first = np.searchsorted(ends, _uniform(np.full(wanted, ends[-1]), source), side="right").astype(np.int64)
        for piece in _followed(first, next_query, n_sessions, source):
            pieces.append(piece)
            drawn += len(piece[0])
        n_sessions += wanted
    session, step, query = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
    order = np.lexsort((step, session))[:searches]
    return session[order], query[order], step[order] > 0


def _followed(first: Integers, next_query: _Choice, n_sessions: int, source: Randomness) -> Any:
    """Session number, step and query of sessions that start with these queries, one array for each step."""
    session, query = n_sessions + np.arange(len(first)), first
    for step in range(LONGEST_SESSION):
        yield session, np.full(len(query), step), query
        query = next_query.draw(query, source)
        session, query = session[query != NOTHING], query[query != NOTHING]
        if not len(query):
            return


class _Choice:
    """Which column follows a row: in proportion to integer weights, or none in proportion to what a row has left."""

    def __init__(self, weights: Any, row_total: Integers) -> None:
        counts = weights.data.astype(np.int64)
        self._columns = weights.indices
        self._ends = np.concatenate([[0], np.cumsum(counts)])
        self._before = self._ends[weights.indptr[:-1]]
        self._sum = self._ends[weights.indptr[1:]] - self._before
        self._total = np.maximum(np.maximum(row_total, self._sum), 1)

    def draw(self, rows: Integers, source: Randomness) -> Integers:
        drawn = _uniform(self._total[rows], source)
        entry = np.searchsorted(self._ends, self._before[rows] + drawn, side="right") - 1
        chosen = np.full(len(rows), NOTHING, dtype=np.int64)
        hit = drawn < self._sum[rows]
        chosen[hit] = self._columns[entry[hit]]
        return chosen


def _uniform(totals: Integers, source: Randomness) -> Integers:
    """Uniform integers, each in [0, its total)."""
    words = np.frombuffer(source.take(8 * len(totals)), dtype="<u8")
    return (words % totals.astype(np.uint64)).astype(np.int64)
