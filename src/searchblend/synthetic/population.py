"""Synthetic users with the shape of the AOL and Yandex logs: one random record each.

AOL is calibrated to published figures: the shares of the ten most frequent queries ([BLJ] Fig. 9), 8.8 % of the mass
in the 50 most frequent, 4,811,646 clicked queries and 519,371 clicking users (Fig. 8), and 50 head queries first
reached at 5 % opt-in with ε = 4 (footnote 9). For Yandex only sizes are published (13,171,961 clicked queries,
4,970,073 clicking users) and that its head is flatter, the most popular queries having been removed; its shares are a
fit, C/(r + 10) for the first thousand ranks. All queries and URLs are synthetic (world.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.groups import InMemoryGroup
from searchblend.core.errors import InvalidParameter
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.tally import Ints
from searchblend.synthetic.world import rank_of_query, ranked_query, ranked_url

AOL_USERS: Final = 519_371
AOL_QUERIES: Final = 4_811_646
YANDEX_USERS: Final = 4_970_073
YANDEX_QUERIES: Final = 13_171_961
_TOP: Final = (0.0211, 0.0067, 0.0066, 0.0055, 0.0055, 0.0048, 0.0044, 0.0034, 0.0030)
"""the nine published shares ([BLJ] Fig. 9)"""
URLS_PER_QUERY: Final = 11
_MIDDLE_MASS: Final = 0.027
_LAST_OF_MIDDLE: Final = 0.0004
_TAIL_EXPONENT: Final = 0.76
_YANDEX_HEAD: Final = 0.0356
MEDIAN_SEARCHES: Final = 9
_SPREAD_OF_SEARCHES: Final = 1.6
"""of a person's clicked searches, a lognormal law with a mean of 32 (the AOL log has 37 clicks for a clicking user)"""
_MOST_SEARCHES: Final = 10_000
_OTHER_WEIGHTS: Final = np.arange(1, URLS_PER_QUERY, dtype=np.float64) ** -1.5


@dataclass(frozen=True)
class Profile:
    """The shape of a log: how many people, how common each query, and the paper's parameters for it (Fig. 11)."""

    name: str
    n_users: int
    shares: Callable[[], NDArray[np.float64]]
    """p(rank), rank 1 first"""
    delta: float
    optin_fraction: float
    max_head_queries: int

    @property
    def records(self) -> RankedRecords:
        return RankedRecords()

    def population(self, n_users: int | None = None, *, seed: int) -> InMemoryGroup:
        """Synthetic users, one record each."""
        n = n_users or self.n_users
        numbers = self.record_numbers(n, np.random.Generator(np.random.PCG64(seed)))
        each = np.ones(n, dtype=np.int64)
        return InMemoryGroup(self.records, numbers, np.arange(n, dtype=np.int64), each, numbers)

    def record_numbers(self, n: int, generator: np.random.Generator) -> Ints:
        """``n`` independent records, as numbers of ``RankedRecords``.

        URLs of a query: the first holds 40-95 % of its clicks (uniform, fixed for the query), the rest is spread over
        ten more with weights r^-1.5.
        """
        cumulative = _cumulative(self.shares)
        ranks = places(cumulative, generator.random(n) * cumulative[-1])
        ranks = np.minimum(ranks, len(cumulative) - 1)
        others = np.cumsum(_OTHER_WEIGHTS)
        other_url = 1 + np.searchsorted(others, generator.random(n) * others[-1], side="right")
        is_first = generator.random(n) < _first_url_share(ranks)
        url = np.where(is_first, 0, np.minimum(other_url, URLS_PER_QUERY - 1))
        numbers: Ints = ranks * URLS_PER_QUERY + url
        return numbers


def search_counts(n_users: int, median: int, generator: np.random.Generator) -> Ints:
    """How many searches each of these people made; 1 for all of them if that is the median."""
    if median == 1:
        return np.ones(n_users, dtype=np.int64)
    drawn = generator.lognormal(np.log(median), _SPREAD_OF_SEARCHES, n_users)
    counts: Ints = np.clip(np.rint(drawn), 1, _MOST_SEARCHES).astype(np.int64)
    return counts


def usual_searches(median: int) -> float:
    """k with E[1/k] of ``search_counts``: the mean of people's own shares varies as if each had made k searches."""
    if median == 1:
        return 1.0
    quantiles = np.array([NormalDist().inv_cdf((i + 0.5) / 1000) for i in range(1000)])
    counts = np.clip(np.rint(median * np.exp(_SPREAD_OF_SEARCHES * quantiles)), 1, _MOST_SEARCHES)
    return float(1 / np.mean(1 / counts))


def places(ordered: NDArray[np.float64], values: NDArray[np.float64]) -> Ints:
    """``np.searchsorted`` from the right, several times as fast for millions of values: neighbours are looked up
    after each other, in memory that is still at hand."""
    order = np.argsort(values)
    positions = np.empty(len(values), dtype=np.int64)
    positions[order] = np.searchsorted(ordered, values[order], side="right")
    return positions


@lru_cache(maxsize=2)
def _cumulative(shares: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.cumsum(shares())


def aol_query_shares() -> NDArray[np.float64]:
    """p(rank), rank 1 first: ranks 1-9 as published, 10-50 falling to .0004 with 2.7 % together, then a power law.

    The tail's exponent is the one with which an ε = 4 list first reaches 50 queries at 5 % opt-in.
    """
    top = np.array(_TOP)
    middle = _middle_shares(first=top[-1], last=_LAST_OF_MIDDLE, n=41, mass=_MIDDLE_MASS)
    return _with_tail(np.concatenate([top, middle]), AOL_QUERIES, _TAIL_EXPONENT)


def yandex_query_shares() -> NDArray[np.float64]:
    """p(rank), rank 1 first: C/(r + 10) for a thousand ranks, then a power law that continues it."""
    head = _YANDEX_HEAD / (np.arange(1, 1001) + 10)
    return _with_tail(head, YANDEX_QUERIES, 0.83)


def _with_tail(head: NDArray[np.float64], n: int, exponent: float) -> NDArray[np.float64]:
    tail = np.arange(len(head) + 1, n + 1, dtype=np.float64) ** -exponent
    tail *= (1 - head.sum()) / tail.sum()
    return np.concatenate([head, tail])


def _middle_shares(first: float, last: float, n: int, mass: float) -> NDArray[np.float64]:
    """n shares falling from just under ``first`` to ``last`` with a given sum: first·(last/first)^(x^g), g solved."""
    x = np.arange(1, n + 1) / n
    low, high = 0.05, 5.0
    for _ in range(80):
        bend = (low + high) / 2
        shares = first * (last / first) ** (x**bend)
        low, high = (low, bend) if shares.sum() > mass else (bend, high)
    return shares


AOL: Final = Profile("aol", AOL_USERS, aol_query_shares, 1e-5, 0.05, 50)
YANDEX: Final = Profile("yandex", YANDEX_USERS, yandex_query_shares, 1e-7, 0.03, 500)
PROFILES: Final = {profile.name: profile for profile in (AOL, YANDEX)}


def profile_named(name: str) -> Profile:
    if name not in PROFILES:
        raise InvalidParameter("profile", f"expected one of {', '.join(PROFILES)}")
    return PROFILES[name]


@dataclass(frozen=True)
class RankedRecords:
    """Records numbered rank·11 + url: strings are made only for the few that are asked for."""

    has_urls: bool = True

    def __getitem__(self, number: int) -> Record:
        rank, url = divmod(int(number), URLS_PER_QUERY)
        return Record(ranked_query(rank), ranked_url(rank, url))

    def query_numbers(self, numbers: Ints) -> Ints:
        return numbers // URLS_PER_QUERY

    def cells(self, head: HeadList, numbers: Ints) -> Ints:
        """Only numbers of listed queries are looked at one by one."""
        ranks = numbers // URLS_PER_QUERY
        listed = np.array([rank_of_query(query) for query in head.queries], dtype=np.int64)
        cells = np.full(len(numbers), head.n_cells - 1, dtype=np.int64)
        inside = np.flatnonzero(np.isin(ranks, listed))
        distinct, where = np.unique(numbers[inside], return_inverse=True)
        cells[inside] = np.array([head.cell_of(self[number]) for number in distinct.tolist()], dtype=np.int64)[where]
        return cells


def url_shares(ranks: Ints) -> NDArray[np.float64]:
    """The shares of a query's eleven URLs, one row per rank (0 is the most frequent query)."""
    first = _first_url_share(ranks)[:, None]
    return np.hstack([first, (1 - first) * _OTHER_WEIGHTS / _OTHER_WEIGHTS.sum()])


def _first_url_share(ranks: Ints) -> NDArray[np.float64]:
    return 0.40 + 0.55 * _fixed_uniform(ranks)


def _fixed_uniform(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """A number in [0, 1) that belongs to the rank (the top bits of a multiplicative hash), the same for every seed."""
    mixed = (ranks.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
