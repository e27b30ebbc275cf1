"""How common the distinct records of a log are, in DuckDB: a table of counts, and the records that were chosen."""

# ruff: noqa: S608  every text in the SQL is a literal of ours or a table name of ours

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from searchblend.core.records import WILDCARD, Record
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.mechanisms.tally import Ints

_SHELF_BITS: Final = 14
_SHELF: Final = f"((n::UBIGINT << {_SHELF_BITS}) | (place >> {64 - _SHELF_BITS}))"


class Shelves(Protocol):
    """A table with a row for each distinct record: its count ``n`` and its ``place``, a fixed 64-bit hash."""

    session: DuckDBSession
    table: str

    def chosen(self, condition: str) -> str:
        """SELECT n, place, query, url of the rows under a condition on n and place."""
        ...


class ShelvedTally:
    """A tally over shelves: records of one count stand on shelves by the first bits of their place. A rank is found by
    counting shelves, without sorting, and only the shelves with wanted records are fetched."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves, self._session = shelves, shelves.session

    def sizes(self) -> Mapping[int, int]:
        rows = self._session.rows(f"SELECT n, count(*) FROM {self._shelves.table} GROUP BY n")
        return {int(n): size for n, size in rows}

    def pick(self, count: int, ranks: Ints) -> Sequence[Record]:
        return self.pick_each({count: ranks})[count]

    def pick_each(self, ranks: Mapping[int, Ints]) -> dict[int, list[Record]]:
        if not ranks:
            return {}
        between = f"n BETWEEN {min(ranks)} AND {max(ranks)}"
        shelves, sizes = self._session.columns(
            f"SELECT {_SHELF} AS shelf, count(*) FROM {self._shelves.table} WHERE {between} GROUP BY shelf", np.uint64
        )
        order = np.argsort(shelves)
        shelves, ends = shelves[order], np.cumsum(sizes[order].astype(np.int64))
        wanted = {count: _on_shelves(shelves, ends, count, some) for count, some in ranks.items()}
        rows = self._shelves.chosen(f"{between} AND {_SHELF} IN (SELECT unnest(?::UBIGINT[]))")
        standing = _by_first(
            self._session.rows(
                f"SELECT {_SHELF}, query, url FROM ({rows}) ORDER BY place, query, url",
                [sorted({shelf for places in wanted.values() for shelf, _ in places})],
            )
        )
        return {count: [standing[shelf][at] for shelf, at in places] for count, places in wanted.items()}

    def at_least(self, count: int) -> Mapping[int, Sequence[Record]]:
        rows = self._shelves.chosen("n >= ?")
        numbers, queries, urls = self._session.arrays(
            f"SELECT n::BIGINT AS n, query, url FROM ({rows}) ORDER BY n, place, query, url", [count]
        )
        counts, starts = np.unique(np.asarray(numbers, dtype=np.int64), return_index=True)
        ends = [*starts.tolist(), len(queries)][1:]
        records = records_of(queries.tolist(), urls.tolist())  # a masked URL becomes None
        return {n: records[first:last] for n, first, last in zip(counts.tolist(), starts.tolist(), ends, strict=True)}


class DuckDBTally(ShelvedTally):
    """The distinct records of a group with their counts: a table (query, url, n, place)."""

    def __init__(self, session: DuckDBSession, counted: str, parameters: Sequence[object] = ()) -> None:
        """``counted`` is SQL that selects query, url and n."""
        self._table = session.new_name("tally")
        session.execute(
            f"CREATE TEMP TABLE {self._table} AS SELECT *, hash(query, url) AS place FROM ({counted})", parameters
        )
        super().__init__(_Texts(session, self._table))

    def of_queries(self, queries: Sequence[str]) -> dict[Record, int]:
        rows = self._session.rows(
            f"SELECT query, url, n FROM {self._table} WHERE query IN (SELECT unnest(?::VARCHAR[]))", [list(queries)]
        )
        return {record_of(query, url): int(n) for query, url, n in rows}

    def by_query(self, cap: int, without: Sequence[str]) -> DuckDBTally:
        others = f"SELECT * FROM {self._table} WHERE query NOT IN (SELECT unnest(?::VARCHAR[]))"
        return DuckDBTally(
            self._session,
            f"SELECT query, NULL::VARCHAR AS url, sum(least(n, {int(cap)})) AS n FROM ({others}) GROUP BY query",
            [list(without)],
        )


class _Texts:
    """Shelves whose table holds the texts themselves."""

    def __init__(self, session: DuckDBSession, table: str) -> None:
        self.session, self.table = session, table

    def chosen(self, condition: str) -> str:
        return f"SELECT n, place, query, url FROM {self.table} WHERE {condition}"


def _by_first(rows: Iterable[tuple[int, str, str | None]]) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = defaultdict(list)
    for number, query, url in rows:
        found[number].append(record_of(query, url))
    return found


def _on_shelves(shelves: NDArray[np.uint64], ends: Ints, count: int, ranks: Ints) -> list[tuple[int, int]]:
    """For each rank among the records with this count the shelf where it is found, and its position there.

    ``ends`` says how many records stand on all shelves up to each.
    """
    starts = np.concatenate([[0], ends[:-1]])
    first = int(np.searchsorted(shelves, np.uint64(count << _SHELF_BITS)))
    position = starts[first] + ranks
    at = np.searchsorted(ends, position, side="right")
    return list(zip(shelves[at].tolist(), (position - starts[at]).tolist(), strict=True))


def record_of(query: str, url: str | None) -> Record:
    return tuple.__new__(Record, (query, WILDCARD if url is None else url))  # the fast way: there may be many


def records_of(queries: list[str], urls: list[str | None]) -> list[Record]:
    """As ``record_of``, without a call for each of the hundreds of thousands that a head may have."""
    new, pairs = tuple.__new__, zip(queries, urls, strict=True)
    return [new(Record, (query, WILDCARD if url is None else url)) for query, url in pairs]
