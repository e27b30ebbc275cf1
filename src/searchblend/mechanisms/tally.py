"""How common the distinct records of a log are: all that a mechanism with a threshold needs to know.

Records with the same count are exchangeable to a mechanism, so a tally says how many there are of each count, and
fetches those that were chosen by their rank. It can be a table in a database as well as an array in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from searchblend.core.records import WILDCARD, HeadList, Record

Ints = NDArray[np.int64]


class Tally(Protocol):
    """How common the distinct records of a group are: their users, or the units that users gave them."""

    def sizes(self) -> Mapping[int, int]:
        """For each count N that occurs, how many distinct records have it."""
        ...

    def pick(self, count: int, ranks: Ints) -> Sequence[Record]:
        """The records at these positions among those with this count, in any fixed order."""
        ...

    def pick_each(self, ranks: Mapping[int, Ints]) -> Mapping[int, Sequence[Record]]:
        """As ``pick``, for several counts in one answer."""
        ...

    def at_least(self, count: int) -> Mapping[int, Sequence[Record]]:
        """All records with this count or a larger one, by count, in the order of ``pick``."""
        ...

    def of_queries(self, queries: Sequence[str]) -> Mapping[Record, int]:
        """All records of these queries with their counts."""
        ...


class RecordTally(Tally, Protocol):
    """A tally of ⟨query, URL⟩ that can also be taken by query."""

    def by_query(self, cap: int, without: Sequence[str]) -> RecordTally:
        """The tally of ⟨q,⋆⟩ for all other queries, each record counted up to ``cap``."""
        ...


class RecordUniverse(Protocol):
    """The distinct records behind the numbers in an ``InMemoryGroup``."""

    @property
    def has_urls(self) -> bool: ...

    def __getitem__(self, number: int) -> Record: ...

    def query_numbers(self, numbers: Ints) -> Ints:
        """A number for each record's query: equal for records of the same query."""
        ...

    def cells(self, head: HeadList, numbers: Ints) -> Ints:
        """The cell of the head list for each record number."""
        ...


class ListedRecords:
    """A universe held as a list of distinct records."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self.has_urls = any(record.url is not WILDCARD for record in records)
        known: dict[object, int] = {}
        self._queries = np.array([known.setdefault(record.query, len(known)) for record in records], dtype=np.int64)

    def __getitem__(self, number: int) -> Record:
        return self._records[number]

    def query_numbers(self, numbers: Ints) -> Ints:
        queries: Ints = self._queries[numbers]
        return queries

    def cells(self, head: HeadList, numbers: Ints) -> Ints:
        needed = np.unique(numbers)
        cell_of = {number: head.cell_of(self._records[number]) for number in needed.tolist()}
        cells = np.fromiter(cell_of.values(), dtype=np.int64, count=len(needed))
        return cells[np.searchsorted(needed, numbers)]


class InMemoryTally:
    """The tally of distinct record numbers with their counts."""

    def __init__(self, universe: RecordUniverse, numbers: Ints, counts: Ints) -> None:
        order = np.argsort(counts, kind="stable")
        self._universe = universe
        self._numbers, self._counts = numbers[order], counts[order]
        self._sizes: dict[int, int] | None = None

    def sizes(self) -> dict[int, int]:
        if self._sizes is None:
            values, how_many = np.unique(self._counts, return_counts=True)
            self._sizes = dict(zip(values.tolist(), how_many.tolist(), strict=True))
        return dict(self._sizes)

    def pick(self, count: int, ranks: Ints) -> list[Record]:
        first = int(np.searchsorted(self._counts, count))
        return [self._universe[number] for number in self._numbers[first + ranks].tolist()]

    def pick_each(self, ranks: Mapping[int, Ints]) -> dict[int, list[Record]]:
        return {count: self.pick(count, wanted) for count, wanted in ranks.items()}

    def at_least(self, count: int) -> dict[int, list[Record]]:
        return {n: self.pick(n, np.arange(size)) for n, size in self.sizes().items() if n >= count}

    def of_queries(self, queries: Sequence[str]) -> dict[Record, int]:
        wanted = HeadList((query, ()) for query in queries)
        positions = np.flatnonzero(self._universe.cells(wanted, self._numbers) < wanted.n_cells - 1)
        counts = self._counts[positions].tolist()
        return {self._universe[number]: n for number, n in zip(self._numbers[positions].tolist(), counts, strict=True)}

    def by_query(self, cap: int, without: Sequence[str]) -> InMemoryTally:
        excluded = HeadList((query, ()) for query in without)
        other = self._universe.cells(excluded, self._numbers) == excluded.n_cells - 1
        numbers, counts = self._numbers[other], np.minimum(self._counts[other], cap)
        _, first, where = np.unique(self._universe.query_numbers(numbers), return_index=True, return_inverse=True)
        totals = np.bincount(where, weights=counts, minlength=len(first)).astype(np.int64)
        return InMemoryTally(QueriesOnly(self._universe), numbers[first], totals)


class QueriesOnly:
    """A universe seen as ⟨q,⋆⟩: each record stands for its query."""

    has_urls = False

    def __init__(self, universe: RecordUniverse) -> None:
        self._universe = universe

    def __getitem__(self, number: int) -> Record:
        return Record(self._universe[number].query, WILDCARD)

    def query_numbers(self, numbers: Ints) -> Ints:
        return self._universe.query_numbers(numbers)

    def cells(self, head: HeadList, numbers: Ints) -> Ints:
        return np.array([head.cell_of(self[number]) for number in numbers.tolist()], dtype=np.int64)
