"""Spelling corrections that people made themselves: a rare query, seldom clicked, often followed by a common one.

Every condition is asked of the ends of the 95 % intervals, so that noise alone makes no correction. The tail, where
most misspellings live, is what a private release leaves out: expect few corrections, and good ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.core.errors import InvalidParameter

SHORT: Final = 5
"""Queries with fewer letters may differ in one edit only."""


@dataclass(frozen=True)
class SpellingRules:
    """When q → q' is a correction."""

    least_share: float = 0.1
    """of q's searches that go on to q'"""
    largest_click_ratio: float = 0.5
    """clicks per search of q against those of q': a misspelling is clicked less"""
    least_count_ratio: float = 5.0
    """searches of q' against those of q"""
    most_edits: int = 2

    def __post_init__(self) -> None:
        for name in ("least_share", "largest_click_ratio", "least_count_ratio", "most_edits"):
            if not getattr(self, name) > 0:
                raise InvalidParameter(name, "expected a positive number")


@dataclass(frozen=True)
class Correction:
    query: str
    correction: str
    share: float
    """at least this share of the query's searches went on to the correction"""
    edits: int


def spelling_corrections(graph: ClickGraph, rules: SpellingRules | None = None) -> list[Correction]:
    """All corrections that the release is sure of, the most frequent habit first."""
    rules = rules or SpellingRules()
    edges, searches = graph.reformulations, graph.searches
    low_rate, high_rate = _click_rates(graph)
    share = np.maximum(edges.counts.low, 0) / np.maximum(searches.high[edges.source], 1)
    plausible = (edges.counts.count > 0) & (share >= rules.least_share)
    plausible &= searches.low[edges.target] >= rules.least_count_ratio * np.maximum(searches.high[edges.source], 0)
    plausible &= high_rate[edges.source] < rules.largest_click_ratio * low_rate[edges.target]
    corrections: list[Correction] = []
    for i in np.flatnonzero(plausible):
        query, correction = graph.queries[edges.source[i]], graph.queries[edges.target[i]]
        edits = edit_distance(query, correction)
        if 0 < edits <= (rules.most_edits if len(query) >= SHORT else min(1, rules.most_edits)):
            corrections.append(Correction(query, correction, min(float(share[i]), 1.0), edits))
    return sorted(corrections, key=lambda c: (-c.share, c.query, c.correction))


def _click_rates(graph: ClickGraph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the clicks per search of each query; half widths of summed counts add in quadrature."""
    clicks, n = graph.clicks, len(graph.queries)
    total = np.bincount(clicks.source, weights=clicks.counts.count, minlength=n)
    half = (clicks.counts.high - clicks.counts.low) / 2
    spread = np.sqrt(np.bincount(clicks.source, weights=half**2, minlength=n))
    low = np.maximum(total - spread, 0) / np.maximum(graph.searches.high, 1)
    high = np.maximum(total + spread, 0) / np.maximum(graph.searches.low, 1)
    return low, high


def edit_distance(first: str, second: str) -> int:
    """Damerau–Levenshtein: the least number of letters inserted, deleted, replaced, or swapped with a neighbour."""
    rows, columns = len(first), len(second)
    far = rows + columns
    table = [[far] * (columns + 2) for _ in range(rows + 2)]
    for i in range(rows + 1):
        table[i + 1][1] = i
    for j in range(columns + 1):
        table[1][j + 1] = j
    row_of: dict[str, int] = {}
    for i in range(1, rows + 1):
        last_match = 0
        for j in range(1, columns + 1):
            k, m = row_of.get(second[j - 1], 0), last_match
            same = first[i - 1] == second[j - 1]
            if same:
                last_match = j
            table[i + 1][j + 1] = min(
                table[i][j] + (not same),
                table[i + 1][j] + 1,
                table[i][j + 1] + 1,
                table[k][m] + (i - k - 1) + 1 + (j - m - 1),
            )
        row_of[first[i - 1]] = i
    return table[rows + 1][columns + 1]
