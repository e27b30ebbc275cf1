"""Runs of [KKMN09] on synthetic logs: what is published, over how long, for whom, and what can be done with it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from scipy import sparse

from searchblend.clickgraph.release.click_log import Cap, ClickLog
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release_data import release_data, select_queries
from searchblend.clickgraph.use.absorbing_walk import absorption
from searchblend.clickgraph.use.study import compare_rankings, run_study
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams, Shares
from searchblend.core.privacy import UNIT, Budget
from searchblend.core.records import WILDCARD, Record
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.tally import InMemoryTally, Ints, ListedRecords, RecordUniverse
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.papers.people import LogPeople, generator, people_named, seed_of
from searchblend_lab.zipf_log import NumberedQueries, ZipfLog, number_of

ALGORITHMS: Final = {"paper": "kkmn2009", "best": "gaussian"}
LIMITS: Final = (1, 5, 10, 20, 40, 80, 160)
"""d of Fig. 2 to 4 and Table 1"""
SPAN_LIMITS: Final = (*LIMITS, 320, 640)
"""further than the paper: over a year of our logs the most impressions are beyond 160"""
_LIFETIME: Final = 10.0
"""days that a user id lives: ids are cookies, so a longer log has more of them"""
_CHUNK: Final = 50_000
_DAY: Final = 86_400
"""seconds"""


def selection_params(method: str, searches: int, epsilon: float, delta: float) -> ClickGraphParams:
    """The whole budget on choosing queries, as in the paper's experiments."""
    return ClickGraphParams(
        Budget(epsilon, delta), algorithm=ALGORITHMS[method], max_queries_per_user=searches, query_noise="reuse"
    )


def compute_selection(settings: Mapping[str, Any], run: int, seed: int) -> dict[str, Any]:
    """How much of a week's log is published. [KKMN09] Fig. 2, Tables 2 and 3."""
    log = _searches(settings, run, seed)
    params = selection_params(settings["method"], settings["searches"], settings["epsilon"], settings["delta"])
    raw = log.raw_counts()
    return _published(log, params, SeededRandomness(seed_of(seed, run, sorted(settings.items())))) | {
        "distinct": int(np.count_nonzero(raw)),
        "impressions": log.n_searches,
    }


def _searches(settings: Mapping[str, Any], run: int, seed: int) -> ZipfLog:
    """A synthetic week, or the searches of a log of one's own."""
    if "people" in settings:
        return log_of(settings["people"])
    return _week(settings["users"], settings["vocabulary"], run, seed)


def log_of(people: str, days: float = math.inf) -> ZipfLog:
    """The searches of a log of one's own; with ``days`` those of its first ones, as far as they have a time."""
    log = people_named(people)
    assert isinstance(log, LogPeople)
    searches = log.searches
    if days == math.inf:
        return ZipfLog(searches.user, searches.query)
    end = np.nanmin(searches.moment, initial=math.inf) + days * _DAY
    within = searches.moment < end
    return ZipfLog(searches.user[within], searches.query[within])


@lru_cache(maxsize=1)
def _week(users: int, vocabulary: int, run: int, seed: int) -> ZipfLog:
    return ZipfLog.make(users, vocabulary, 1.0, seed=seed_of(seed, run, "week") % 2**63)


def _published(log: ZipfLog, params: ClickGraphParams, noise: SeededRandomness) -> dict[str, int]:
    chosen, tally = select_queries(log, ClickGraphDesign.of(params), randomness=noise)
    numbers = np.array([number_of(query) for query in chosen], dtype=np.int64)
    counted = tally.of_queries(list(chosen))
    return {
        "published": len(chosen),
        "published_impressions": sum(counted.values()),
        "volume": int(log.raw_counts()[numbers].sum()),
    }


def compute_span(settings: Mapping[str, Any], run: int, seed: int) -> dict[str, Any]:
    """The same for a log of so many days, at every limit d at once. [KKMN09] Fig. 3 and 4."""
    limited, figures = _own_span(settings) if "people" in settings else _made_span(settings, run, seed)
    for searches, log in zip(SPAN_LIMITS, limited, strict=True):
        params = selection_params("paper", searches, settings["epsilon"], settings["delta"])
        noise = SeededRandomness(seed_of(seed, run, settings["days"], searches))
        chosen, tally = select_queries(log, ClickGraphDesign.of(params), randomness=noise)
        figures[f"published_{searches}"] = len(chosen)
        figures[f"published_impressions_{searches}"] = sum(tally.of_queries(list(chosen)).values())
    return figures


def _own_span(settings: Mapping[str, Any]) -> tuple[list[ClickLog], dict[str, Any]]:
    log = log_of(settings["people"], settings["days"])
    figures = {"impressions": log.n_searches, "distinct": int(np.count_nonzero(log.raw_counts()))}
    return [log] * len(SPAN_LIMITS), figures


def _made_span(settings: Mapping[str, Any], run: int, seed: int) -> tuple[list[ClickLog], dict[str, Any]]:
    counts, total = _span_counts(
        settings["days"], settings["users"], settings["vocabulary"], generator(seed, run, "span")
    )
    shares = np.arange(1, settings["vocabulary"] + 1, dtype=np.float64) ** -1.0
    shares /= shares.sum()
    # Searches beyond the largest limit are never drawn; how many distinct queries they would add is their mean.
    distinct = float(-np.expm1(total * np.log1p(-shares)).sum())
    numbers = [np.flatnonzero(counted) for counted in counts]
    logs = [CountedSearches(NumberedQueries(), n, c[n]) for n, c in zip(numbers, counts, strict=True)]
    return list(logs), {"impressions": total, "distinct": distinct}


def _span_counts(days: float, users: int, vocabulary: int, draw: np.random.Generator) -> tuple[list[Ints], int]:
    """Counts of every query at each limit d, and all searches. ``users`` ids are alive at any time."""
    cumulative = np.cumsum(np.arange(1, vocabulary + 1, dtype=np.float64) ** -1.0)
    counts = [np.zeros(vocabulary, dtype=np.int64) for _ in SPAN_LIMITS]
    n_ids, total = round(users * (1 + days / _LIFETIME)), 0
    for start in range(0, n_ids, _CHUNK):
        n = min(_CHUNK, n_ids - start)
        new = np.arange(start, start + n) >= users
        begins = np.where(new, draw.random(n) * days, 0.0)
        alive = np.minimum(draw.exponential(_LIFETIME, n), days - begins)
        weekly = np.exp(draw.normal(math.log(10.0), math.log(16.0) / 2.3263, n))
        searches = draw.poisson(weekly * alive / 7)
        total += int(searches.sum())
        kept = np.minimum(searches, SPAN_LIMITS[-1])
        query = np.searchsorted(cumulative, draw.random(int(kept.sum())) * cumulative[-1])
        place = np.arange(len(query)) - np.repeat(np.cumsum(kept) - kept, kept)
        for counted, limit in zip(counts, SPAN_LIMITS, strict=True):
            counted += np.bincount(query[place < limit], minlength=vocabulary)[:vocabulary]
    return counts, total


class CountedSearches:
    """A ``ClickLog`` known by its counts, already limited: for logs whose people were limited when it was made."""

    unit = UNIT

    def __init__(self, universe: RecordUniverse, numbers: Ints, counts: Ints) -> None:
        self._universe, self._numbers, self._counts = universe, numbers, counts

    def searches(self, cap: Cap) -> InMemoryTally:
        return InMemoryTally(self._universe, self._numbers, self._counts)

    def searches_of(self, queries: Sequence[str], cap: Cap) -> dict[str, int]:
        counts = self.searches(cap).of_queries(queries)
        return {query: counts.get(Record(query, WILDCARD), 0) for query in queries}

    def weighted_searches(self, first: int, units: int, without: Sequence[str]) -> InMemoryTally:
        raise InvalidParameter("algorithm", "expected one without weights: this log has counts alone")

    def weighted_searches_of(self, queries: Sequence[str], first: int, units: int) -> dict[str, int]:
        raise InvalidParameter("algorithm", "expected one without weights: this log has counts alone")

    def clicks(self, queries: Sequence[str], cap: Cap, *, within: Cap) -> InMemoryTally:
        raise InvalidParameter("urls", "expected none: this log has no clicks")

    def clicks_of(
        self, records: Sequence[Record], cap: Cap, *, within: Cap, restrict_first: bool = True
    ) -> Mapping[Record, int]:
        raise InvalidParameter("urls", "expected none: this log has no clicks")

    def reformulations(self, queries: Sequence[str], cap: Cap) -> InMemoryTally:
        raise InvalidParameter("reformulations", "expected none: this log has no times")


PATTERN: Final = r"fear of (.+?)(?: symptoms| help)?$"
FEARS: Final[tuple[tuple[str, tuple[str, ...], int], ...]] = (
    # category, terms, searches in the synthetic log; the order is that of the original log in Table 4
    ("Flying", ("flying", "planes"), 2900),
    ("Heights", ("heights",), 2350),
    ("Snakes, spiders", ("spiders", "snakes"), 1830),
    ("Death", ("death", "dying"), 1790),
    ("Public speaking", ("public speaking",), 1760),
    ("Commitment", ("commitment",), 1150),
    ("Intimacy", ("intimacy",), 860),
    ("Abandonment", ("abandonment",), 840),
    ("The dark", ("the dark",), 820),
    ("Water", ("water",), 560),
    ("Crowds", ("crowds",), 470),
    ("Needles", ("needles",), 420),
    ("Dogs", ("dogs",), 330),
    ("Bridges", ("bridges", "tunnels"), 260),
    ("Thunder", ("thunder",), 180),
    ("Mirrors", ("mirrors",), 120),
    ("Buttons", ("buttons",), 60),
)
FILMS: Final = {"clowns": 3100, "music": 900}
"""not phobias: the study's stop list takes them out"""
_VARIANTS: Final = (("fear of {}", 0.7), ("fear of {} symptoms", 0.2), ("overcoming fear of {}", 0.1))


def fear_queries() -> tuple[list[Record], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """All queries of the study with their mean number of searches."""
    records, means = [], []
    wanted = [(term, total / len(terms)) for _, terms, total in FEARS for term in terms]
    for term, total in [*wanted, *FILMS.items()]:
        for form, share in _VARIANTS:
            records.append(Record(form.format(term), WILDCARD))
            means.append(total * share)
    return records, np.array(means)


def compute_study(settings: Mapping[str, Any], run: int, seed: int) -> dict[str, Any]:
    """What people fear: the ranking from the log and from its release. [KKMN09] §7.2.1, Table 4.

    ε is that of the selection; the counts have as much again, with noise of their own.
    """
    records, means = fear_queries()
    counts = generator(seed, run, "fears").poisson(means)
    log: ClickLog = CountedSearches(ListedRecords(records), np.arange(len(records)), counts)
    params = ClickGraphParams(
        Budget(2 * settings["epsilon"], settings["delta"]),
        algorithm=ALGORITHMS[settings["method"]],
        max_queries_per_user=settings["searches"],
        query_noise="fresh",
        shares=Shares(0.5, 0.5, 0.1),
    )
    noise = SeededRandomness(seed_of(seed, run, "fears", settings["method"]))
    release = release_data(log, params, randomness=noise)
    categories = {term: name for name, terms, _ in FEARS for term in terms}
    ranking = run_study(release.graph(), PATTERN, stop=FILMS, categories=categories).ranking
    sums: dict[str, int] = {}
    for record, count in zip(records, counts.tolist(), strict=True):
        for name, terms, _ in FEARS:
            if any(f"fear of {term}" in str(record.query) for term in terms):
                sums[name] = sums.get(name, 0) + count
    original = sorted(sums, key=lambda name: (-sums[name], name))
    compared = compare_rankings(original, ranking, 9)
    return {"original": original[:9], "released": ranking[:9], "overlap": compared.overlap, "tau": compared.kendall_tau}


THRESHOLDS: Final = (0.5, 0.7, 0.9, 0.95)
SEED_SETS: Final = {"colleges": (0, 10), "shoes": (1, 1), "suicide": (2, 6)}
"""topic and number of seed URLs, as many as the paper's domains"""
_TOPIC_SHARES: Final = (0.04, 0.03, 0.004)
_LEAST_CLICKS: Final = 10


def compute_keywords(settings: Mapping[str, Any], run: int, seed: int) -> dict[str, Any]:
    """Keywords for seeds, on the original graph and on the released one. [KKMN09] §7.2.2, Table 5."""
    draw = generator(seed, run, "keywords")
    searches, clicks, seeds = _topical(settings["queries"], draw)
    log = CountedSearches(NumberedQueries(), np.arange(len(searches)), searches)
    params = selection_params(settings["method"], settings["searches"], settings["epsilon"], settings["delta"])
    noise = SeededRandomness(seed_of(seed, run, "keywords", settings["method"]))
    chosen, _ = select_queries(log, ClickGraphDesign.of(params), randomness=noise)
    published = np.zeros(len(searches), dtype=np.bool_)
    published[[number_of(query) for query in chosen]] = True
    released = clicks.tocoo()
    click_noise = DiscreteLaplace(Fraction(settings["click_noise"]).limit_denominator(1000) ** -1)
    values = np.where(published[released.row], released.data + click_noise.sample(released.nnz, noise), 0)
    both = {
        "original": _pruned(clicks.data, clicks.tocoo(), clicks.shape),
        "released": _pruned(values, released, clicks.shape),
    }
    figures: dict[str, Any] = {
        "queries_kept": _rows(both["released"]) / _rows(both["original"]),
        "edges_kept": both["released"].nnz / both["original"].nnz,
    }
    relevance = {name: absorption(matrix, list(seeds.values())).probability for name, matrix in both.items()}
    for i, name in enumerate(seeds):
        for threshold in THRESHOLDS:
            original, kept = (relevance[graph][:, i] >= threshold for graph in ("original", "released"))
            figures[f"{name}_{threshold}_original"] = int(original.sum())
            figures[f"{name}_{threshold}_released"] = int(kept.sum())
            figures[f"{name}_{threshold}_shared"] = float((original & kept).sum() / max(kept.sum(), 1))
    return figures


def _pruned(values: Any, edges: Any, shape: tuple[int, int]) -> Any:
    """Pairs with 10 clicks or more, as the paper kept."""
    keep = values >= _LEAST_CLICKS
    return sparse.csr_array((values[keep].astype(np.float64), (edges.row[keep], edges.col[keep])), shape=shape)


def _rows(matrix: Any) -> int:
    return int(np.count_nonzero(np.diff(matrix.indptr)))


def _topical(n_queries: int, draw: np.random.Generator) -> tuple[Ints, Any, dict[str, Ints]]:
    """Searches, clicks and seeds of a synthetic log: queries have topics, and most clicks stay within them.

    Searches follow a Pareto law with exponent 1.05 from 17 on: about a tenth of the queries with an edge of ten clicks
    then passes the paper's threshold, as in its log.
    """
    n_urls, n_topics = 2 * n_queries, 200
    weights = np.array([*_TOPIC_SHARES, *([(1 - sum(_TOPIC_SHARES)) / (n_topics - 3)] * (n_topics - 3))])
    topic_of_query = draw.choice(n_topics, n_queries, p=weights)
    topic_of_url = np.sort(draw.choice(n_topics, n_urls, p=weights))
    first = np.searchsorted(topic_of_url, np.arange(n_topics))
    size = np.bincount(topic_of_url, minlength=n_topics)
    searches = np.minimum(17 * draw.random(n_queries) ** (-1 / 1.05), 5_000_000).astype(np.int64)
    per_query = draw.integers(1, 8, n_queries)
    row = np.repeat(np.arange(n_queries), per_query)
    place = np.arange(len(row)) - np.repeat(np.cumsum(per_query) - per_query, per_query)
    topic = np.where(draw.random(len(row)) < 0.92, topic_of_query[row], draw.integers(0, n_topics, len(row)))
    column = first[topic] + (size[topic] * draw.random(len(row)) ** 3).astype(np.int64)
    share = 0.55 ** (place + 1.0)
    counts = draw.poisson(searches[row] * 0.8 * share)
    clicks = sparse.csr_array((counts.astype(np.float64), (row, column)), shape=(n_queries, n_urls))
    clicks.sum_duplicates()
    seeds = {
        name: np.arange(first[topic], first[topic] + min(count * 4, size[topic]))
        for name, (topic, count) in SEED_SETS.items()
    }
    return searches, clicks, seeds
