"""A synthetic log of searches as arrays: millions of searches of people who search alike, for comparing mechanisms.

Queries follow Zipf's law with a given exponent; how much a user searches is lognormal with median 10 and 160 at the
99th percentile, 20 on average, at least 1 and at most 2,000. Searches of one user are independent draws in order of
time. It has no clicks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.clickgraph.release.click_log import Cap
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import UNIT
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.mechanisms.gaussian_account import weight
from searchblend.mechanisms.tally import InMemoryTally, Ints

_MEDIAN: Final = 10.0
_SPREAD: Final = math.log(160 / _MEDIAN) / 2.3263478740408408
"""σ of ln(searches): 160 at the 99th percentile"""
_MOST: Final = 2000
_PREFIX: Final = "query "


@dataclass(frozen=True)
class NumberedQueries:
    """⟨query n, ⋆⟩ by number: strings are made only for the few that are asked for."""

    has_urls: bool = False

    def __getitem__(self, number: int) -> Record:
        return Record(f"{_PREFIX}{int(number) + 1}", WILDCARD)

    def query_numbers(self, numbers: Ints) -> Ints:
        return numbers

    def cells(self, head: HeadList, numbers: Ints) -> Ints:
        listed = np.array([number_of(query) for query in head.queries], dtype=np.int64)
        order = np.argsort(listed)
        position = np.minimum(np.searchsorted(listed[order], numbers), max(len(listed) - 1, 0))
        firsts = np.array(head.first_cells(), dtype=np.int64)
        is_listed = listed[order][position] == numbers if len(listed) else np.zeros(len(numbers), dtype=bool)
        cells: Ints = np.where(is_listed, firsts[order[position]] if len(listed) else 0, head.n_cells - 1)
        return cells


def number_of(query: str) -> int:
    """The number of a synthetic query; −1 for any other."""
    digits = query.removeprefix(_PREFIX)
    return int(digits) - 1 if query.startswith(_PREFIX) and digits.isdecimal() else -1


class ZipfLog:
    """A ``ClickLog`` of searches alone: the number of the query by user, users one after the other, in time order."""

    unit = UNIT

    def __init__(self, user: Ints, query: Ints) -> None:
        self._user, self._query = user, query
        self._universe = NumberedQueries()

    @classmethod
    def make(cls, n_users: int, n_queries: int, exponent: float, *, seed: int) -> ZipfLog:
        generator = np.random.Generator(np.random.PCG64(seed))
        drawn = np.exp(generator.normal(math.log(_MEDIAN), _SPREAD, n_users))
        lengths = np.clip(np.rint(drawn), 1, _MOST).astype(np.int64)
        cumulative = np.cumsum(np.arange(1, n_queries + 1, dtype=np.float64) ** -exponent)
        uniform = generator.random(int(lengths.sum())) * cumulative[-1]
        query = np.minimum(np.searchsorted(cumulative, uniform), n_queries - 1)
        return cls(np.repeat(np.arange(n_users, dtype=np.int64), lengths), query.astype(np.int64))

    @property
    def n_searches(self) -> int:
        """Exact: for evaluation, never for a release."""
        return len(self._query)

    def raw_counts(self) -> Ints:
        """All searches by number of the query; exact as well."""
        return np.bincount(self._query).astype(np.int64)

    def searches(self, cap: Cap) -> InMemoryTally:
        user, query = self._distinct if cap.distinct else (self._user, self._query)
        return self._tally(query[_place(user) < cap.first])

    def weighted_searches(self, first: int, units: int, without: Sequence[str]) -> InMemoryTally:
        user, query = self._without(self._distinct, without)
        kept = _place(user) < first
        user, query = user[kept], query[kept]
        held = np.bincount(user, minlength=1)
        weights = np.array([0, *(weight(units, s) for s in range(1, first + 1))], dtype=np.float64)
        totals = np.bincount(query, weights=weights[held[user]]).astype(np.int64)
        numbers = np.flatnonzero(totals)
        return InMemoryTally(self._universe, numbers, totals[numbers])

    def weighted_searches_of(self, queries: Sequence[str], first: int, units: int) -> dict[str, int]:
        numbers = np.array([number_of(query) for query in queries], dtype=np.int64)
        user, query = self._distinct
        kept = (_place(user) < first) & np.isin(query, numbers)
        user, query = user[kept], query[kept]
        held = np.bincount(user, minlength=1)
        weights = np.array([0, *(weight(units, s) for s in range(1, first + 1))], dtype=np.float64)
        totals = np.bincount(query, weights=weights[held[user]], minlength=int(numbers.max(initial=0)) + 1)
        of_queries = np.where(numbers >= 0, totals[numbers], 0).astype(np.int64).tolist()
        return dict(zip(queries, of_queries, strict=True))

    def searches_of(self, queries: Sequence[str], cap: Cap) -> dict[str, int]:
        numbers = np.array([number_of(query) for query in queries], dtype=np.int64)
        user, query = self._distinct if cap.distinct else (self._user, self._query)
        wanted = np.isin(query, numbers)
        user, query = user[wanted], query[wanted]
        counts = np.bincount(query[_place(user) < cap.first], minlength=int(numbers.max(initial=0)) + 1)
        of_queries = np.where(numbers >= 0, counts[numbers], 0).tolist()
        return dict(zip(queries, of_queries, strict=True))

    def clicks(self, queries: Sequence[str], cap: Cap, *, within: Cap) -> InMemoryTally:
        raise InvalidParameter("urls", "expected none: this log has no clicks")

    def clicks_of(
        self, records: Sequence[Record], cap: Cap, *, within: Cap, restrict_first: bool = True
    ) -> Mapping[Record, int]:
        raise InvalidParameter("urls", "expected none: this log has no clicks")

    def reformulations(self, queries: Sequence[str], cap: Cap) -> InMemoryTally:
        raise InvalidParameter("reformulations", "expected none: this log has no times")

    @property
    def _distinct(self) -> tuple[Ints, Ints]:
        """Each user's distinct queries, in the order in which they came first."""
        if not hasattr(self, "_firsts"):
            width = int(self._query.max(initial=0)) + 1
            self._firsts = np.sort(np.unique(self._user * width + self._query, return_index=True)[1])
        return self._user[self._firsts], self._query[self._firsts]

    @staticmethod
    def _without(searches: tuple[Ints, Ints], queries: Sequence[str]) -> tuple[Ints, Ints]:
        user, query = searches
        left = ~np.isin(query, np.array([number_of(text) for text in queries], dtype=np.int64))
        return user[left], query[left]

    def _tally(self, query: Ints) -> InMemoryTally:
        counts = np.bincount(query, minlength=1)
        numbers = np.flatnonzero(counts)
        return InMemoryTally(self._universe, numbers, counts[numbers].astype(np.int64))


def _place(user: Ints) -> Ints:
    """The position of each row among the rows of its user."""
    rows: Ints = np.arange(len(user))
    starts: NDArray[np.bool_] = np.append(True, user[1:] != user[:-1])[: len(user)]
    first = np.maximum.accumulate(np.where(starts, rows, 0))
    return rows - first
