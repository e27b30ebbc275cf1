"""A released query click graph in memory: counts with their intervals, and the matrices that its users compute with.

Everything here is post-processing of a release and costs no privacy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from searchblend.clickgraph.release.noise_law import NoiseLaw
from searchblend.core.errors import InvalidParameter
from searchblend.core.normalization import normalize
from searchblend.core.tables import Tables, chosen

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
TableName = Literal["queries", "clicks", "reformulations"]
CountRow = tuple[int, float, float] | tuple[int, float, float, float]
"""count, lower and upper end of its 95 % interval, and the estimate where that is not the count itself"""


@dataclass(frozen=True, eq=False)
class Counts:
    """Released counts as they were drawn, negative ones included, and their 95 % intervals."""

    count: Integers
    low: Numbers
    high: Numbers
    estimate: Numbers = field(default_factory=lambda: np.empty(0))
    """counts corrected for having been selected by their own noise; the counts themselves unless given"""

    def __post_init__(self) -> None:
        if not len(self.estimate) and len(self.count):
            object.__setattr__(self, "estimate", self.count.astype(np.float64))
        if not len(self.count) == len(self.low) == len(self.high) == len(self.estimate):
            raise InvalidParameter("counts", "expected as many interval ends and estimates as counts")
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all() and (self.low <= self.high).all()):
            raise InvalidParameter("counts", "expected intervals whose lower end is not above the upper one")
        for array in (self.count, self.low, self.high, self.estimate):
            array.setflags(write=False)

    @classmethod
    def of(cls, rows: Iterable[CountRow]) -> Counts:
        table = list(rows)
        return cls(
            np.array([row[0] for row in table], dtype=np.int64),
            np.array([row[1] for row in table], dtype=np.float64),
            np.array([row[2] for row in table], dtype=np.float64),
            np.array([row[3] if len(row) > 3 else row[0] for row in table], dtype=np.float64),
        )

    @property
    def clamped(self) -> Integers:
        """No count is below zero. Sums of clamped counts are too large: use ``count`` in sums."""
        return np.maximum(self.count, 0)

    def __len__(self) -> int:
        return len(self.count)

    def __getitem__(self, chosen: Integers) -> Counts:
        return Counts(self.count[chosen], self.low[chosen], self.high[chosen], self.estimate[chosen])


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges from queries to URLs (clicks) or to queries (reformulations), each end by its number."""

    source: Integers
    target: Integers
    counts: Counts

    def __post_init__(self) -> None:
        if not len(self.source) == len(self.target) == len(self.counts):
            raise InvalidParameter("edges", "expected one source, one target and one count for each edge")
        for array in (self.source, self.target):
            array.setflags(write=False)

    @classmethod
    def none(cls) -> Edges:
        empty = np.empty(0, dtype=np.int64)
        return cls(empty, empty.copy(), Counts.of([]))

    def __len__(self) -> int:
        return len(self.source)

    def in_order(self, ranks: tuple[Integers, Integers], numbers: tuple[Integers, Integers]) -> Edges:
        """Sorted by count and by the ranks of both ends, and with new numbers for them."""
        order = np.lexsort((ranks[1][self.target], ranks[0][self.source], -self.counts.count))
        return Edges(numbers[0][self.source[order]], numbers[1][self.target[order]], self.counts[order])

    def kept(self, cut: float) -> NDArray[np.bool_]:
        """Which edges count for something: positive, and not below the cut."""
        count = self.counts.count
        return (count > 0) & (count >= cut)

    def matrix(self, shape: tuple[int, int], cut: float) -> Any:
        keep = self.kept(cut)
        values = self.counts.count[keep].astype(np.float64)
        return sparse.csr_array((values, (self.source[keep], self.target[keep])), shape=shape)


@dataclass(frozen=True, eq=False, repr=False)
class ClickGraph(Tables[TableName]):
    """Query nodes with counts of searches, URL nodes, click edges and reformulation edges. [KKMN09] §2, §7.2.

    ``cuts`` are the least counts at which an edge is taken for real, by table: an edge without any click passes them
    only rarely (``NoiseLaw.false_edge_cut``).
    """

    queries: tuple[str, ...]
    urls: tuple[str, ...]
    searches: Counts
    clicks: Edges
    reformulations: Edges = field(default_factory=Edges.none)
    noise: Mapping[TableName, NoiseLaw] = field(default_factory=dict)
    cuts: Mapping[TableName, float] = field(default_factory=dict)
    notice: str | None = None
    """why the statement says that the guarantee does not hold, if it says so; whatever is made of it inherits that"""

    def __post_init__(self) -> None:
        if len(self.searches) != len(self.queries):
            raise InvalidParameter("searches", "expected one count for each query")
        if len(set(self.queries)) < len(self.queries) or len(set(self.urls)) < len(self.urls):
            raise InvalidParameter("queries, urls", "expected each query and each URL once")
        _check_edges("clicks", self.clicks, len(self.queries), len(self.urls))
        _check_edges("reformulations", self.reformulations, len(self.queries), len(self.queries))

    @classmethod
    def of(
        cls,
        searches: Mapping[str, CountRow],
        clicks: Mapping[tuple[str, str], CountRow],
        reformulations: Mapping[tuple[str, str], CountRow] | None = None,
        *,
        noise: Mapping[TableName, NoiseLaw] | None = None,
        cuts: Mapping[TableName, float] | None = None,
    ) -> ClickGraph:
        """A graph from tables by text, for graphs of modest size."""
        queries = tuple(searches)
        urls = tuple(dict.fromkeys(url for _, url in clicks))
        number_of_query = {query: i for i, query in enumerate(queries)}
        number_of_url = {url: i for i, url in enumerate(urls)}
        return cls(
            queries,
            urls,
            Counts.of(searches.values()),
            _edges(clicks, number_of_query, number_of_url),
            _edges(reformulations or {}, number_of_query, number_of_query),
            noise or {},
            cuts or {},
        )

    def __repr__(self) -> str:
        return (
            f"ClickGraph({len(self.queries)} queries, {len(self.urls)} URLs, {len(self.clicks)} clicks, "
            f"{len(self.reformulations)} reformulations)"
        )

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {query: i for i, query in enumerate(self.queries)}

    def number_of(self, query: str) -> int:
        """The number of a query as it is typed; released queries are in normal form."""
        number = self._numbers.get(query, self._numbers.get(normalize(query) or ""))
        if number is None:
            raise InvalidParameter("query", "expected a query of the released graph; this one was not released")
        return number

    def __contains__(self, query: object) -> bool:
        return isinstance(query, str) and (query in self._numbers or normalize(query) in self._numbers)

    def click_matrix(self, cut: float | None = None) -> Any:
        """F: queries × URLs, a SciPy CSR array of the counts that are positive and not below the cut."""
        return self.clicks.matrix((len(self.queries), len(self.urls)), self.cut("clicks", cut))

    def reformulation_matrix(self, cut: float | None = None) -> Any:
        """Queries × queries, a SciPy CSR array of the counts that are positive and not below the cut."""
        return self.reformulations.matrix((len(self.queries),) * 2, self.cut("reformulations", cut))

    def cut(self, table: TableName, cut: float | None = None) -> float:
        """The cut to use: the caller's, else the release's, else none."""
        return self.cuts.get(table, 0.0) if cut is None else cut

    def in_order(self) -> ClickGraph:
        """The same graph, numbered and sorted by counts and strings alone: no order of an input shows."""
        query_rank, url_rank = _text_ranks(self.queries), _text_ranks(self.urls)
        query_order, url_order = np.lexsort((query_rank, -self.searches.count)), np.argsort(url_rank)
        new_query, new_url = np.argsort(query_order), url_rank
        return ClickGraph(
            tuple(self.queries[i] for i in query_order),
            tuple(self.urls[i] for i in url_order),
            self.searches[query_order],
            self.clicks.in_order((query_rank, url_rank), (new_query, new_url)),
            self.reformulations.in_order((query_rank, query_rank), (new_query, new_query)),
            self.noise,
            self.cuts,
            self.notice,
        )

    def columns(self, table: TableName | None = None) -> dict[str, NDArray[Any]]:
        """One table of the release (``queries`` unless named), column by column, as arrays of one length."""
        names: Any = np.array(self.queries, dtype=object)
        name = chosen(table, "queries", "clicks", "reformulations")
        if name == "queries":
            return {"query": names, **_count_columns(self.searches)}
        if name == "clicks":
            urls: Any = np.array(self.urls, dtype=object)
            edges, ends = self.clicks, {"query": names[self.clicks.source], "url": urls[self.clicks.target]}
        else:
            edges = self.reformulations
            ends = {"query": names[edges.source], "next_query": names[edges.target]}
        return {**ends, **_count_columns(edges.counts)}


def _text_ranks(strings: Sequence[str]) -> Integers:
    """The place of each string in their alphabetical order."""
    ranks = np.empty(len(strings), dtype=np.int64)
    ranks[sorted(range(len(strings)), key=strings.__getitem__)] = np.arange(len(strings))
    return ranks


def _count_columns(counts: Counts) -> dict[str, Integers | Numbers]:
    return {
        "count": counts.count,
        "count_clamped": counts.clamped,
        "estimate": counts.estimate,
        "lo95": counts.low,
        "hi95": counts.high,
    }


def _edges(rows: Mapping[tuple[str, str], CountRow], sources: Mapping[str, int], targets: Mapping[str, int]) -> Edges:
    if any(source not in sources or target not in targets for source, target in rows):
        raise InvalidParameter("edges", "expected edges of released queries only")
    return Edges(
        np.array([sources[source] for source, _ in rows], dtype=np.int64),
        np.array([targets[target] for _, target in rows], dtype=np.int64),
        Counts.of(rows.values()),
    )


def _check_edges(name: str, edges: Edges, n_sources: int, n_targets: int) -> None:
    if not len(edges):
        return
    if min(edges.source.min(), edges.target.min()) < 0 or edges.source.max() >= n_sources:
        raise InvalidParameter(name, "expected the numbers of queries and URLs of the graph")
    if edges.target.max() >= n_targets:
        raise InvalidParameter(name, "expected the numbers of queries and URLs of the graph")
    if len(np.unique(edges.source * n_targets + edges.target)) < len(edges):
        raise InvalidParameter(name, "expected each edge once")


def ranked(scores: Sequence[float] | Numbers, strings: Sequence[str], limit: int | None = None) -> list[int]:
    """Numbers from the best score to the worst; ties by text, so that no order of input shows."""
    values = np.asarray(scores, dtype=np.float64)
    chosen = np.arange(len(values))
    if limit is not None and limit < len(values):
        least = np.partition(values, len(values) - limit)[len(values) - limit] if limit else np.inf
        chosen = np.flatnonzero(values >= least)
    best = sorted((int(i) for i in chosen), key=lambda i: (-values[i], strings[i]))
    return best[:limit]
