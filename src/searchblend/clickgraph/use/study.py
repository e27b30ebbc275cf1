"""A study of what people ask, over released counts: [KKMN09] §7.2.1 asked what they fear.

Queries that match a pattern are grouped into categories, their counts summed and ranked. Every pair of neighbours in
the ranking says how likely noise alone has put it in the wrong order.
"""

from __future__ import annotations

import re
from bisect import bisect, insort
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.core.errors import InvalidParameter, RunError
from searchblend.core.normalization import normalize


@dataclass(frozen=True)
class Category:
    """One line of the ranking."""

    name: str
    count: int
    """the sum of the released counts, negative ones included"""
    low: float
    high: float
    queries: int
    """how many released queries make it up; what was not released is missing"""
    swap_probability: float | None
    """the chance that this and the next category are in the wrong order; ``None`` for the last"""


@dataclass(frozen=True)
class Study:
    """Queries of a released graph added up by a pattern, with how sure their order is."""

    categories: Sequence[Category]
    """all of them, the largest first"""
    matched: int
    stopped: int
    """matching queries that the stop list took out"""

    @property
    def ranking(self) -> list[str]:
        """The categories, most frequent first."""
        return [category.name for category in self.categories]


@dataclass(frozen=True)
class RankingComparison:
    """Two rankings of the same thing."""

    k: int
    overlap: float
    """the share of the first k that both have"""
    kendall_tau: float | None
    """1 for the same order, -1 for the opposite, over what both rank among their first k; ``None`` below two"""
    common: int


def run_study(
    graph: ClickGraph, pattern: str, *, stop: Collection[str] = (), categories: Mapping[str, str] | None = None
) -> Study:
    """Sum and rank the queries in which ``pattern`` is found.

    What its first group catches is the term (the whole match if it has no group). ``stop`` holds terms or queries to
    leave out, ``categories`` the category of a term; a term without one is its own. Counts that decided their own
    release are a little too large near the threshold, here as everywhere.
    """
    noise = graph.noise.get("queries")
    if noise is None:
        raise RunError("the statement names no noise of the queries' counts: swap probabilities need it")
    stopped_texts = {_form(string) for string in stop}
    category_of = {_form(term): name for term, name in (categories or {}).items()}
    members: dict[str, list[int]] = {}
    matched = stopped = 0
    for number, term in _terms(graph.queries, pattern):
        matched += 1
        if term in stopped_texts or graph.queries[number] in stopped_texts:
            stopped += 1
        else:
            members.setdefault(category_of.get(term, term), []).append(number)
    sums = {name: int(graph.searches.count[numbers].sum()) for name, numbers in members.items()}
    order = sorted(sums, key=lambda name: (-sums[name], name))
    rows: list[Category] = []
    for name, after in zip_longest(order, order[1:]):
        size, total = len(members[name]), sums[name]
        swap = None if after is None else noise.swap_probability(total - sums[after], size + len(members[after]))
        low, high = _interval(graph, members[name])
        rows.append(Category(name, total, low, high, size, swap))
    return Study(rows, matched, stopped)


def _interval(graph: ClickGraph, numbers: Sequence[int]) -> tuple[float, float]:
    """Of one count its own; of a sum of several by the law of their noise."""
    if len(numbers) == 1:
        return float(graph.searches.low[numbers[0]]), float(graph.searches.high[numbers[0]])
    total = float(graph.searches.count[list(numbers)].sum())
    half = graph.noise["queries"].half_width(terms=len(numbers))
    return total - half, total + half


def _terms(queries: Sequence[str], pattern: str) -> list[tuple[int, str]]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InvalidParameter("pattern", f"expected a regular expression: {error}") from error
    group = 1 if compiled.groups else 0
    matches = [(number, compiled.search(query)) for number, query in enumerate(queries)]
    return [(number, _form(match[group])) for number, match in matches if match and match[group]]


def _form(string: str) -> str:
    return normalize(string) or string


def compare_rankings(first: Sequence[str], second: Sequence[str], k: int) -> RankingComparison:
    """How far two rankings agree: of an original and its release, or of two releases."""
    if k < 1:
        raise InvalidParameter("k", "expected at least 1")
    top, other = list(first[:k]), list(second[:k])
    common = [name for name in top if name in set(other)]
    places = {name: place for place, name in enumerate(other)}
    tau = _kendall_tau([places[name] for name in common]) if len(common) > 1 else None
    return RankingComparison(k, len(common) / max(min(k, max(len(first), len(second))), 1), tau, len(common))


def _kendall_tau(places: Sequence[int]) -> float:
    """1 − 2 · (pairs out of order) / (pairs)."""
    before: list[int] = []
    inversions = 0
    for place in places:
        inversions += len(before) - bisect(before, place)
        insort(before, place)
    return 1 - 4 * inversions / (len(places) * (len(places) - 1))
