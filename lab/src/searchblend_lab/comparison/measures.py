"""How much of a log each release and each rule publishes, measured against the log itself. NOT PRIVATE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final, TypeVar

from searchblend.clickgraph.release.click_log import ClickLog
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.keywords import generate_keywords
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.comparison.published import Pair, Published, TrueCounts, publish
from searchblend_lab.comparison.rules import Rule

SEEDS: Final = 10
"""the most clicked URLs of the log, for which keywords are generated"""
RELEVANCE: Final = 0.5
"""least probability that a walk from a keyword ends at its seed"""
HEAD_SHARE: Final = 0.5
"""the head are the most searched queries that make up this share of the searches; all others are the long tail"""
MEASURES: Final[Mapping[str, str]] = {
    "queries": "distinct queries published",
    "search_volume": "share of all searches that are for published queries",
    "pairs": "distinct pairs of query and URL published",
    "click_volume": "share of all clicks that are on published pairs",
    "keywords_kept": (
        f"share of the log's own keywords that the published graph gives too: queries from which a walk over clicks "
        f"ends at one of the {SEEDS} most clicked URLs with probability {RELEVANCE:g} or more"
    ),
    "long_tail": (
        "share of the searches of the long tail that are for published queries; the tail is what is left when the "
        f"most searched queries that make up {HEAD_SHARE:.0%} of all searches are taken away"
    ),
    "count_error": "median relative error of the published counts of queries",
}
HEADINGS: Final[Mapping[str, str]] = {
    "queries": "queries",
    "search_volume": "searches",
    "pairs": "pairs",
    "click_volume": "clicks",
    "keywords_kept": "keywords",
    "long_tail": "long tail",
    "count_error": "error",
}
"""as columns of a table are called"""
SHARES: Final = ("search_volume", "click_volume", "keywords_kept", "long_tail", "count_error")
Figures = dict[str, float | None]
Key = TypeVar("Key", str, Pair)


@dataclass(frozen=True)
class Row:
    """What one release or rule publishes: the mean over its runs, and the least and the most."""

    name: str
    about: str
    private: bool
    mean: Figures
    least: Figures
    most: Figures


class Yardstick:
    """The log itself, and what follows from it once for all comparisons."""

    def __init__(self, truth: TrueCounts) -> None:
        self.truth = truth
        self.n_searches, self.n_clicks = sum(truth.searches.values()), sum(truth.clicks.values())
        self._tail = _long_tail(truth.searches, self.n_searches)
        self._tail_searches = sum(truth.searches[query] for query in self._tail)
        clicked: dict[str, int] = {}
        for (_, url), clicks in truth.clicks.items():
            clicked[url] = clicked.get(url, 0) + clicks
        self._seeds = sorted(clicked, key=lambda url: (-clicked[url], url))[:SEEDS]
        self._keywords = self._keywords_of(Published(truth.searches, truth.clicks))

    def all_of_it(self) -> Figures:
        """The log's own figures, for scale."""
        truth = self.truth
        return {"queries": len(truth.users), "pairs": len(truth.clicks) or None, "search_volume": 1.0}

    def measure(self, published: Published, counted: Mapping[str, int]) -> Figures:
        """``counted`` are the true counts in the unit that was published: users or searches."""
        searches, clicks = self.truth.searches, self.truth.clicks
        errors = [abs(count - counted[query]) / counted[query] for query, count in published.queries.items()]
        kept = self._keywords & self._keywords_of(published) if self._keywords else set()
        return {
            "queries": len(published.queries),
            "search_volume": _share(sum(searches[query] for query in published.queries), self.n_searches),
            "pairs": len(published.pairs) if self.n_clicks else None,
            "click_volume": _share(sum(clicks[pair] for pair in published.pairs), self.n_clicks),
            "keywords_kept": _share(len(kept), len(self._keywords)),
            "long_tail": _share(sum(searches[q] for q in published.queries if q in self._tail), self._tail_searches),
            "count_error": median(errors) if errors else None,
        }

    def _keywords_of(self, published: Published) -> set[Pair]:
        """(query, URL) for each keyword of the seeds that the graph has."""
        graph = ClickGraph.of(_rows(published.queries), _rows(published.pairs))
        seeds = {url: [url] for url in self._seeds if url in graph.urls}
        if not seeds:
            return set()
        generated = generate_keywords(graph, seeds, threshold=RELEVANCE, cut=0)
        return {(word.query, word.seed_class) for word in generated.keywords}


def _rows(counts: Mapping[Key, int]) -> dict[Key, tuple[int, float, float]]:
    return {key: (count, count, count) for key, count in counts.items()}


def _long_tail(searches: Mapping[str, int], total: int) -> set[str]:
    tail, taken = set(searches), 0
    for query in sorted(searches, key=lambda query: (-searches[query], query)):
        if taken >= HEAD_SHARE * total:
            break
        taken += searches[query]
        tail.discard(query)
    return tail


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def rule_row(rule: Rule, yardstick: Yardstick) -> Row:
    """A rule is deterministic."""
    figures = yardstick.measure(rule.publish(yardstick.truth), yardstick.truth.searches)
    return Row(rule.name, rule.about, False, figures, figures, figures)


def release_row(
    name: str, design: ClickGraphDesign, log: ClickLog, yardstick: Yardstick, *, runs: int, seed: int
) -> Row:
    """Releases of the same log with seeded noise: a simulation, and never published."""
    truth, params = yardstick.truth, design.params
    counted = truth.users if params.distinct else truth.searches
    measured = [
        yardstick.measure(publish(log, design, SeededRandomness(seed * 1_000_003 + run)), counted)
        for run in range(runs)
    ]
    about = f"ε = {params.budget.epsilon:g}, δ = {params.budget.delta:g} for adding or removing a user"
    return Row(name, about, True, *(_over(measured, summary) for summary in (fmean, min, max)))


def _over(measured: Sequence[Figures], summary: object) -> Figures:
    columns = {name: [figures[name] for figures in measured if figures[name] is not None] for name in MEASURES}
    return {name: summary(values) if values else None for name, values in columns.items()}  # type: ignore[operator]


def where_rules_publish_more(rows: Sequence[Row]) -> list[str]:
    """To be fair: for each measure, the rules that are ahead of the best release here."""
    lines = []
    for name in MEASURES:
        known = [(value, row) for row in rows if (value := row.mean[name]) is not None]
        releases = [(value, row.name) for value, row in known if row.private]
        if not releases:
            continue
        best, named = (min if name == "count_error" else max)(releases, key=lambda one: one[0])
        sign = -1 if name == "count_error" else 1
        ahead = [
            f"{row.name} ({shown(name, value)})"
            for value, row in known
            if not row.private and sign * value > sign * best
        ]
        if ahead:
            lines.append(f"{HEADINGS[name]}: {', '.join(ahead)} against {shown(name, best)} of {named}")
    return lines


def shown(name: str, value: float | None) -> str:
    """A figure for people."""
    if value is None:
        return "–"
    return f"{100 * value:.1f} %" if name in SHARES else f"{value:,.0f}"
