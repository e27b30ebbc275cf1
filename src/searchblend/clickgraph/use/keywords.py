"""Keywords for seed URLs: queries from which a random walk over clicks ends at a seed. [FTAA08], [KKMN09] §7.2.2."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.clickgraph.use.absorbing_walk import Absorption, OnIteration, WalkSettings, absorption
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.core.errors import InvalidParameter
from searchblend.core.normalization import normalize_url
from searchblend.core.silent import SILENT

ONE_CLASS: Final = "seed"
_DIGITS: Final = 9
"""Relevances that agree so far are equal: the more frequent query comes first."""


@dataclass(frozen=True)
class Keyword:
    """One query for one class of seeds."""

    query: str
    seed_class: str
    relevance: float
    """the chance that a walk from the query ends at a seed of the class"""
    count: int
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Keywords:
    """The queries at or above the threshold, most relevant first, and how the walk went."""

    keywords: Sequence[Keyword]
    threshold: float
    classes: tuple[str, ...]
    seed_urls: Mapping[str, int]
    """how many URLs of the graph are seeds of each class"""
    unmatched_seeds: int
    """entries that no URL of the graph fits"""
    kept_edges: int
    """click edges that are positive and not below the cut; the others took no part"""
    all_edges: int
    iterations: int
    error_bound: float | None


def generate_keywords(
    graph: ClickGraph,
    seeds: Sequence[str] | Mapping[str, Sequence[str]],
    *,
    threshold: float = 0.7,
    settings: WalkSettings | None = None,
    cut: float | None = None,
    on_iteration: OnIteration = SILENT,
) -> Keywords:
    """Queries whose walk ends at a seed with probability ``threshold`` or more.

    Seeds are URLs, or domains that stand for all URLs of their hosts and sub-hosts; a mapping gives several classes,
    which classify queries. Before the walk negative counts are clamped and edges below the cut (the release's own
    unless given) are left out: noise-only edges act as random links and lower every probability.
    """
    settings = settings or WalkSettings()
    if not 0 < threshold <= 1 - settings.alpha:
        raise InvalidParameter(
            "threshold", f"expected a number in (0, {1 - settings.alpha:g}]: no walk is surer than 1 - alpha"
        )
    named = seeds if isinstance(seeds, Mapping) else {ONE_CLASS: seeds}
    matches = find_seeds(graph, named)
    numbers = {name: np.unique(np.concatenate(lists)) for name, lists in matches.items()}
    clicks = graph.click_matrix(cut)
    walked = absorption(clicks, list(numbers.values()), settings, on_iteration=on_iteration)
    return Keywords(
        _above(graph, tuple(named), walked, threshold),
        threshold,
        tuple(named),
        {name: len(urls) for name, urls in numbers.items()},
        sum(not len(urls) for lists in matches.values() for urls in lists),
        int(clicks.nnz),
        len(graph.clicks),
        walked.iterations,
        walked.error_bound,
    )


@dataclass(frozen=True)
class KeywordComparison:
    """Keywords of two graphs at one threshold; [KKMN09] Table 5 compares an original with its release."""

    threshold: float
    first: int
    second: int
    ratio: float | None
    """second / first; ``None`` if the first has none"""
    shared: float | None
    """the share of the second's keywords that the first has too; ``None`` if the second has none"""


def compare_keywords(first: Keywords, second: Keywords, thresholds: Sequence[float]) -> list[KeywordComparison]:
    """How many keywords the second graph keeps, and how many of its own the first confirms, by threshold."""
    rows: list[KeywordComparison] = []
    for threshold in thresholds:
        if threshold < max(first.threshold, second.threshold):
            raise InvalidParameter("thresholds", "expected none below the thresholds of the keywords")
        one, other = (
            {(word.seed_class, word.query) for word in keywords.keywords if word.relevance >= threshold}
            for keywords in (first, second)
        )
        ratio = len(other) / len(one) if one else None
        shared = len(one & other) / len(other) if other else None
        rows.append(KeywordComparison(threshold, len(one), len(other), ratio, shared))
    return rows


def _above(graph: ClickGraph, classes: Sequence[str], walked: Absorption, threshold: float) -> list[Keyword]:
    rows, columns = np.nonzero(walked.probability >= threshold)
    counts = graph.searches
    above = [
        Keyword(
            graph.queries[row],
            classes[column],
            float(walked.probability[row, column]),
            int(counts.count[row]),
            float(counts.low[row]),
            float(counts.high[row]),
        )
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    return sorted(above, key=lambda word: (-round(word.relevance, _DIGITS), -word.count, word.query))


def find_seeds(graph: ClickGraph, classes: Mapping[str, Sequence[str]]) -> dict[str, list[NDArray[np.int64]]]:
    """The numbers of the URLs that each entry of each class stands for.

    An entry with ``://`` is a URL; one without is a URL of the graph if there is such a one, else a domain. A class
    without any URL of the graph is an error, and so is a URL in two classes.
    """
    if not classes or not all(classes.values()):
        raise InvalidParameter("seeds", "expected at least one seed in each class")
    index = _UrlIndex(graph.urls)
    matched = {name: [index.matching(entry) for entry in entries] for name, entries in classes.items()}
    for name, lists in matched.items():
        if not any(len(urls) for urls in lists):
            raise InvalidParameter("seeds", f"class {name}: none of its {len(lists)} seeds is in the released graph")
    distinct = [np.unique(np.concatenate(lists)) for lists in matched.values()]
    together = np.concatenate(distinct)
    if twice := len(together) - len(np.unique(together)):
        raise InvalidParameter("seeds", f"expected each URL in one class; {twice} are in two or more")
    return matched


class _UrlIndex:
    """URLs by text, and by every domain that their hosts lie under."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._numbers = {url: i for i, url in enumerate(urls)}

    def matching(self, entry: str) -> NDArray[np.int64]:
        exact = self._numbers.get(entry, self._numbers.get(normalize_url(entry) or ""))
        numbers: Sequence[int] = () if exact is None else (exact,)
        if exact is None and "/" not in entry:
            numbers = self._under.get(normalize_url(entry.strip().strip("."), host_only=True) or "", ())
        return np.array(numbers, dtype=np.int64)

    @cached_property
    def _under(self) -> Mapping[str, Sequence[int]]:
        of_host: dict[str, list[int]] = {}
        for number, url in enumerate(self._urls):
            of_host.setdefault(_BEFORE_PATH.match(url)[0], []).append(number)  # type: ignore[index]  # matches always
        under: dict[str, list[int]] = {}
        for beginning, numbers in of_host.items():
            for domain in _domains(normalize_url(beginning, host_only=True) or ""):
                under.setdefault(domain, []).extend(numbers)
        return under


_BEFORE_PATH: Final = re.compile(r"(?:[^/?#]*://)?[^/?#]*")


def _domains(host: str) -> Iterator[str]:
    """The host itself, with its port and without, and every domain above it: a.b.c, b.c, c."""
    name = host if host.startswith("[") else host.partition(":")[0]
    if name != host:
        yield host
    while name:
        yield name
        name = name.partition(".")[2]
