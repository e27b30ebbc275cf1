"""What both engines ask of drawn records, in SQL that both understand: groups of people, and tallies of their records.

``Words`` holds the little that differs. Whatever depends on how an engine stores lines stays with the engine.
"""

# ruff: noqa: S608  every string in the SQL is a literal of ours, a name of ours, or quoted

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.groups import ONE_RECORD, Spread
from searchblend.core.errors import InvalidParameter
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.mechanisms.tally import Ints

_BIN_DIGITS: Final = 4
_SIDES: Final = ("SEMI", "ANTI")
_Place = tuple[int, int]
"""a shelf, and a slot on it"""


@dataclass(frozen=True)
class Words:
    """Where the SQL of the engines differs."""

    quotient: str
    """the operator of whole division"""
    hash: str
    """the function that hashes columns to 64 bits"""
    md5_number: str
    """MD5 of {} read as a little-endian number, or as digits that are ordered alike"""
    digest: str
    """the column ``digest``, such a number, in 32 hexadecimal digits"""
    each: str
    """the list of {} for i = {} to n"""
    shelf: str
    """the number of a record's shelf, from its count ``n`` and its ``place``: the count, then the first bits of the
    place"""
    shelf_bits: int
    """how many bits of the place are in it"""
    order: str
    """by count, then place as an unsigned number, then by the record"""


class Database(Protocol):
    """What runs the SQL."""

    @property
    def words(self) -> Words: ...

    def make(self, kind: str, select: str) -> str:
        """The name of a new table; it is kept."""
        ...

    def part(self, kind: str, select: str) -> str:
        """The name of a new table with some rows of another; a copy where copies are read faster."""
        ...

    def discard(self, table: str) -> None:
        """The table is needed no more, but for parts that are not copies."""
        ...

    def values(self, kind: str, schema: str, rows: Sequence[tuple[Any, ...]]) -> AbstractContextManager[str]:
        """A small table of values from here, for as long as it is needed."""
        ...

    def rows(self, statement: str) -> list[tuple[Any, ...]]: ...

    def arrays(self, statement: str) -> list[NDArray[Any]]:
        """The columns that a statement yields; where there are NULLs, masked or objects."""
        ...


class SqlTally:
    """The distinct records of a group with their counts: a table with ``n``, and ``place``, a fixed 64-bit hash.

    Records of one count stand on shelves by the first bits of their place. A rank is found by counting shelves, without
    sorting, and only the shelves with wanted records are looked at.
    """

    def __init__(self, database: Database, counted: str, hashed: str = "query, url") -> None:
        """``counted`` is SQL that selects the record and n; ``hashed`` names the columns that tell records apart."""
        self._database, self._words = database, database.words
        place = f"{self._words.hash}({hashed})"
        self._table = database.make("tally", f"SELECT *, {place} AS place FROM ({counted})")

    def _chosen(self, condition: str) -> str:
        """SELECT n, place, query, url of the records under a condition on n and place."""
        return f"SELECT n, place, query, url FROM {self._table} WHERE {condition}"

    def sizes(self) -> Mapping[int, int]:
        rows = self._database.rows(f"SELECT n, count(*) FROM {self._table} GROUP BY n")
        return {int(n): size for n, size in rows}

    def pick(self, count: int, ranks: Ints) -> Sequence[Record]:
        return self.pick_each({count: ranks})[count]

    def pick_each(self, ranks: Mapping[int, Ints]) -> dict[int, list[Record]]:
        if not ranks:
            return {}
        shelf, between = self._words.shelf, f"n BETWEEN {min(ranks)} AND {max(ranks)}"
        shelves, sizes = (
            column.astype(np.int64)
            for column in self._database.arrays(
                f"SELECT {shelf} AS shelf, count(*) AS size FROM {self._table} WHERE {between} GROUP BY {shelf}"
            )
        )
        order = np.argsort(shelves)
        shelves, ends = shelves[order], np.cumsum(sizes[order])
        places = {count: self._places(shelves, ends, count, some) for count, some in ranks.items()}
        standing = self._standing(between, sorted({place for some in places.values() for place in some}))
        return {count: [standing[place] for place in some] for count, some in places.items()}

    def _places(self, shelves: Ints, ends: Ints, count: int, ranks: Ints) -> list[_Place]:
        """Where each rank among the records with this count stands. ``ends`` counts the records up to each shelf."""
        starts = np.concatenate([[0], ends[:-1]])
        first = int(np.searchsorted(shelves, count << self._words.shelf_bits))
        position = starts[first] + ranks
        at = np.searchsorted(ends, position, side="right")
        return list(zip(shelves[at].tolist(), (position - starts[at]).tolist(), strict=True))

    def _standing(self, condition: str, places: Sequence[_Place]) -> dict[_Place, Record]:
        """The records that stand at some places."""
        shelf = self._words.shelf
        with self._database.values("wanted", "shelf bigint, slot bigint", places) as wanted:
            chosen = self._chosen(f"{condition} AND {shelf} IN (SELECT shelf FROM {wanted})")
            slot = f"row_number() OVER (PARTITION BY {shelf} ORDER BY place, query, url) - 1"
            rows = self._database.rows(
                f"""
                SELECT shelf, slot, query, url
                FROM (SELECT {shelf} AS shelf, {slot} AS slot, query, url FROM ({chosen}) AS chosen) AS numbered
                JOIN {wanted} USING (shelf, slot)
                """
            )
        return {(shelf, slot): record_of(query, url) for shelf, slot, query, url in rows}

    def at_least(self, count: int) -> Mapping[int, Sequence[Record]]:
        chosen = self._chosen(f"n >= {int(count)}")
        numbers, queries, urls = self._database.arrays(
            f"SELECT CAST(n AS BIGINT) AS n, query, url FROM ({chosen}) AS chosen ORDER BY {self._words.order}"
        )
        counts, starts = np.unique(numbers.astype(np.int64), return_index=True)
        ends = [*starts.tolist(), len(queries)][1:]
        records = list(map(record_of, queries.tolist(), urls.tolist()))  # a masked URL becomes None
        return {n: records[first:last] for n, first, last in zip(counts.tolist(), starts.tolist(), ends, strict=True)}

    def of_queries(self, queries: Sequence[str]) -> dict[Record, int]:
        with self._database.values("wanted", "query string", [(query,) for query in queries]) as wanted:
            rows = self._database.rows(
                f"SELECT query, url, n FROM {self._table} WHERE query IN (SELECT query FROM {wanted})"
            )
        return {record_of(query, url): int(n) for query, url, n in rows}

    def by_query(self, cap: int, without: Sequence[str]) -> SqlTally:
        with self._database.values("without", "query string", [(query,) for query in without]) as left_out:
            total = f"CAST(sum(least(n, {int(cap)})) AS BIGINT)"
            others = f"SELECT query, n FROM {self._table} ANTI JOIN {left_out} USING (query)"
            return SqlTally(
                self._database,
                f"SELECT query, CAST(NULL AS STRING) AS url, {total} AS n FROM ({others}) AS others GROUP BY query",
            )


class SqlGroup:
    """People with one random record each: a table (person, draw, pick, query, url), ``person`` a keyed hash."""

    def __init__(
        self,
        database: Database,
        table: str,
        *,
        has_urls: bool,
        draws: int,
        picks: int,
        n_users: int | None = None,
    ) -> None:
        """
        Args:
            database: holds the table
            table: its name
            has_urls: whether the records have URLs
            draws: how many records of each person were drawn with replacement
            picks: how many without
            n_users: how many people there are; None: they are counted
        """
        self._database, self._table = database, table
        self._has_urls, self._draws, self._picks = has_urls, draws, picks
        if n_users is None:
            n_users = int(database.rows(f"SELECT count(*) FROM {table} WHERE draw = 1")[0][0])
        self._n_users = n_users

    def __repr__(self) -> str:
        return f"SqlGroup({self.n_users} users)"

    @property
    def n_users(self) -> int:
        return self._n_users

    @property
    def has_urls(self) -> bool:
        return self._has_urls

    def split(self, fraction: float, *, randomness: Randomness | None = None) -> tuple[SqlGroup, SqlGroup]:
        """Two disjoint random parts; the first holds round(fraction · n) users, those with the smallest fresh hash."""
        if not 0 < fraction < 1:
            raise InvalidParameter("fraction", f"expected a number in (0, 1), found {fraction!r}")
        salt = (randomness or SystemRandomness()).take(16).hex()
        n_first = round(fraction * self._n_users)
        hashes = self._database.make(
            "split", f"SELECT md5('{salt}' || person) AS hash, person FROM {self._table} WHERE draw = 1"
        )
        last_hash, last_person = self._last_of_first(hashes, n_first)
        order = f"SELECT person FROM {hashes} WHERE hash < '{last_hash}' OR "
        order += f"(hash = '{last_hash}' AND person <= '{last_person}')"
        parts = [f"SELECT * FROM {self._table} {side} JOIN ({order}) AS chosen USING (person)" for side in _SIDES]
        groups = self._part(parts[0], n_first), self._part(parts[1], self._n_users - n_first)
        self._database.discard(hashes)
        return groups

    def _last_of_first(self, hashes: str, n_first: int) -> tuple[str, str]:
        """The hash and the person at which the first part ends: first by bins of hashes, then within one bin. So
        neither database sorts everyone."""
        if n_first == 0:
            return "", ""
        bin_of, before = f"substr(hash, 1, {_BIN_DIGITS})", 0
        for name, n in sorted(self._database.rows(f"SELECT {bin_of}, count(*) FROM {hashes} GROUP BY {bin_of}")):
            if before + n >= n_first:
                inside = self._database.rows(f"SELECT hash, person FROM {hashes} WHERE {bin_of} = '{name}'")
                hash_, person = sorted(inside)[n_first - before - 1]
                return hash_, person
            before += n
        raise AssertionError("there are fewer people than were counted")

    def _part(self, select: str, n_users: int) -> SqlGroup:
        table = self._database.part("people", select)
        return SqlGroup(
            self._database, table, has_urls=self._has_urls, draws=self._draws, picks=self._picks, n_users=n_users
        )

    def tally(self, spread: Spread = ONE_RECORD, *, randomness: Randomness | None = None) -> SqlTally:
        """All picks were made, by the key of the reading, when the log was read."""
        if spread.records > self._picks:
            raise InvalidParameter("picks", f"the log was read with picks={self._picks}; {spread.records} are needed")
        if spread.records == 1:
            counted = f"SELECT query, url, count(*) * {spread.units} AS n FROM {self._table} WHERE pick = 1"
            return SqlTally(self._database, f"{counted} GROUP BY query, url")
        share = f"{spread.units} {self._database.words.quotient} count(*) OVER (PARTITION BY person)"
        shares = f"SELECT query, url, {share} AS share FROM {self._table} WHERE pick <= {spread.records}"
        counted = f"SELECT query, url, CAST(sum(share) AS BIGINT) AS n FROM ({shares}) AS shares GROUP BY query, url"
        return SqlTally(self._database, counted)

    def cell_counts(self, head: HeadList, draws: int = 1, *, randomness: Randomness | None = None) -> Ints:
        """Drawn records by cell. All draws were made, each with its own hash, when the log was read."""
        if draws > self._draws:
            raise InvalidParameter("draws", f"the log was read with draws={self._draws}; {draws} are needed")
        listed = enumerate(list(head.cells())[:-1])  # ⟨q,⋆⟩ has no URL; ⟨⋆,⋆⟩ is whatever is not listed
        cells = [(query, url if isinstance(url, str) else None, cell) for cell, (query, url) in listed]
        with self._database.values("cells", "query string, url string, cell int", cells) as table:
            counted = self._database.rows(
                f"""
                SELECT /*+ BROADCAST(listed, other_url) */
                    coalesce(listed.cell, other_url.cell, {head.n_cells - 1}) AS cell, count(*) AS n
                FROM {self._table} AS held
                LEFT JOIN {table} AS listed ON held.query = listed.query AND held.url = listed.url
                LEFT JOIN (SELECT query, cell FROM {table} WHERE url IS NULL) AS other_url
                    ON held.query = other_url.query
                WHERE held.draw <= {int(draws)}
                GROUP BY coalesce(listed.cell, other_url.cell, {head.n_cells - 1})
                """
            )
        counts = np.zeros(head.n_cells, dtype=np.int64)
        for cell, n in counted:
            counts[cell] = n
        return counts


def record_of(query: str, url: str | None) -> Record:
    return tuple.__new__(Record, (query, WILDCARD if url is None else url))  # the fast way: there may be many
