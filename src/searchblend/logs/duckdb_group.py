"""A group of people in DuckDB: one drawn record each, in a table of its own."""

# ruff: noqa: S608  every text in the SQL is a literal of ours, a table name of ours, or quoted

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.groups import ONE_RECORD, Spread
from searchblend.errors import InvalidParameter
from searchblend.logs.duckdb_session import DuckDBSession, quoted
from searchblend.mechanisms.tally import Ints
from searchblend.randomness import Randomness, SystemRandomness
from searchblend.records import WILDCARD, HeadList, Record

_SHELF_BITS: Final = 14
_SHELF: Final = f"((n::UBIGINT << {_SHELF_BITS}) | (place >> {64 - _SHELF_BITS}))"


class DuckDBTally:
    """The distinct records of a group with their counts: a table (query, url, n, place).

    Records with the same count are ordered by ``place``, DuckDB's own hash: fixed, and found without sorting texts.
    """

    def __init__(self, session: DuckDBSession, counted: str, parameters: Sequence[object] = ()) -> None:
        """``counted`` is SQL that selects query, url and n."""
        self._session = session
        self._table = session.new_name("tally")
        session.execute(
            f"CREATE TEMP TABLE {self._table} AS SELECT *, hash(query, url) AS place FROM ({counted})", parameters
        )

    def sizes(self) -> Mapping[int, int]:
        return {int(n): size for n, size in self._session.rows(f"SELECT n, count(*) FROM {self._table} GROUP BY n")}

    def pick(self, count: int, ranks: Ints) -> Sequence[Record]:
        return self.pick_each({count: ranks})[count]

    def pick_each(self, ranks: Mapping[int, Ints]) -> dict[int, list[Record]]:
        """Records stand on shelves, by their count and the first bits of their place: a rank is found by counting
        shelves, and only the shelves with wanted records are fetched."""
        if not ranks:
            return {}
        rows = f"FROM {self._table} WHERE n BETWEEN {min(ranks)} AND {max(ranks)}"
        shelves, sizes = self._session.columns(f"SELECT {_SHELF} AS shelf, count(*) {rows} GROUP BY shelf", np.uint64)
        order = np.argsort(shelves)
        shelves, ends = shelves[order], np.cumsum(sizes[order].astype(np.int64))
        wanted = {count: _on_shelves(shelves, ends, count, some) for count, some in ranks.items()}
        standing: dict[int, list[Record]] = defaultdict(list)
        for shelf, query, url in self._session.rows(
            f"SELECT {_SHELF} AS shelf, query, url {rows} AND shelf IN (SELECT unnest(?::UBIGINT[])) "
            "ORDER BY place, query, url",
            [sorted({shelf for places in wanted.values() for shelf, _ in places})],
        ):
            standing[shelf].append(_record(query, url))
        return {count: [standing[shelf][at] for shelf, at in places] for count, places in wanted.items()}

    def at_least(self, count: int) -> Mapping[int, Sequence[Record]]:
        found: dict[int, list[Record]] = defaultdict(list)
        for n, query, url in self._session.rows(
            f"SELECT n::BIGINT, query, url FROM {self._table} WHERE n >= ? ORDER BY place, query, url", [count]
        ):
            found[n].append(_record(query, url))
        return found

    def of_queries(self, queries: Sequence[str]) -> dict[Record, int]:
        rows = self._session.rows(
            f"SELECT query, url, n FROM {self._table} WHERE query IN (SELECT unnest(?::VARCHAR[]))", [list(queries)]
        )
        return {_record(query, url): int(n) for query, url, n in rows}

    def by_query(self, cap: int, without: Sequence[str]) -> DuckDBTally:
        others = f"SELECT * FROM {self._table} WHERE query NOT IN (SELECT unnest(?::VARCHAR[]))"
        return DuckDBTally(
            self._session,
            f"SELECT query, NULL::VARCHAR AS url, sum(least(n, {int(cap)})) AS n FROM ({others}) GROUP BY query",
            [list(without)],
        )


class DuckDBGroup:
    """People with one random record each: a table (person, draw, pick, query, url), ``person`` a keyed hash."""

    def __init__(self, session: DuckDBSession, table: str, *, has_urls: bool, draws: int, picks: int) -> None:
        self._session, self._table = session, table
        self._has_urls, self._draws, self._picks = has_urls, draws, picks
        self._n_users = int(session.value(f"SELECT count(*) FROM {table} WHERE draw = 1"))

    def __repr__(self) -> str:
        return f"DuckDBGroup({self.n_users} users)"

    @property
    def n_users(self) -> int:
        return self._n_users

    @property
    def has_urls(self) -> bool:
        return self._has_urls

    def split(self, fraction: float, *, randomness: Randomness | None = None) -> tuple[DuckDBGroup, DuckDBGroup]:
        """Two disjoint random parts; the first holds round(fraction · n) users, those with the smallest fresh hash."""
        if not 0 < fraction < 1:
            raise InvalidParameter("fraction", f"expected a number in (0, 1), found {fraction!r}")
        salt = quoted((randomness or SystemRandomness()).take(16).hex())
        order = self._session.new_name("split")
        self._session.execute(
            f"""
            CREATE TEMP TABLE {order} AS
            SELECT person FROM {self._table} WHERE draw = 1 ORDER BY md5({salt} || person), person
            LIMIT {round(fraction * self._n_users)}
            """
        )
        parts = tuple(
            self._part(f"SELECT * FROM {self._table} {side} JOIN {order} USING (person)") for side in ("SEMI", "ANTI")
        )
        self._session.execute(f"DROP TABLE {order}")
        return parts[0], parts[1]

    def _part(self, selection: str) -> DuckDBGroup:
        table = self._session.new_name("people")
        self._session.execute(f"CREATE TEMP TABLE {table} AS {selection}")
        return DuckDBGroup(self._session, table, has_urls=self._has_urls, draws=self._draws, picks=self._picks)

    def tally(self, spread: Spread = ONE_RECORD, *, randomness: Randomness | None = None) -> DuckDBTally:
        """All picks were made, by the key of the reading, when the log was read."""
        if spread.records > self._picks:
            raise InvalidParameter("picks", f"the log was read with picks={self._picks}; {spread.records} are needed")
        if spread.records == 1:
            counted = (
                f"SELECT query, url, count(*) * {spread.units} AS n FROM {self._table} WHERE pick = 1 GROUP BY ALL"
            )
            return DuckDBTally(self._session, counted)
        share = f"{spread.units} // count(*) OVER (PARTITION BY person)"
        shares = f"SELECT query, url, {share} AS share FROM {self._table} WHERE pick <= {spread.records}"
        return DuckDBTally(self._session, f"SELECT query, url, sum(share) AS n FROM ({shares}) GROUP BY ALL")

    def cell_counts(self, head: HeadList, draws: int = 1, *, randomness: Randomness | None = None) -> Ints:
        """Drawn records by cell. All draws were made, each with its own hash, when the log was read."""
        if draws > self._draws:
            raise InvalidParameter("draws", f"the log was read with draws={self._draws}; {draws} are needed")
        cells = self._session.new_name("cells")
        self._session.execute(
            f"""
            CREATE TEMP TABLE {cells} AS
            SELECT unnest(?::VARCHAR[]) AS query, unnest(?::VARCHAR[]) AS url, unnest(?::INT[]) AS cell
            """,
            _columns_of(head),
        )
        counted = self._session.rows(
            f"""
            SELECT coalesce(listed.cell, other_url.cell, ?) AS cell, count(*)
            FROM {self._table} AS held
            LEFT JOIN {cells} AS listed ON held.query = listed.query AND held.url = listed.url
            LEFT JOIN {cells} AS other_url ON held.query = other_url.query AND other_url.url IS NULL
            WHERE held.draw <= ?
            GROUP BY ALL
            """,
            [head.n_cells - 1, draws],
        )
        self._session.execute(f"DROP TABLE {cells}")
        counts = np.zeros(head.n_cells, dtype=np.int64)
        for cell, n in counted:
            counts[cell] = n
        return counts


def _on_shelves(shelves: NDArray[np.uint64], ends: Ints, count: int, ranks: Ints) -> list[tuple[int, int]]:
    """For each rank among the records with this count the shelf where it is found, and its position there.

    ``ends`` says how many records stand on all shelves up to each.
    """
    starts = np.concatenate([[0], ends[:-1]])
    first = int(np.searchsorted(shelves, np.uint64(count << _SHELF_BITS)))
    position = starts[first] + ranks
    at = np.searchsorted(ends, position, side="right")
    return list(zip(shelves[at].tolist(), (position - starts[at]).tolist(), strict=True))


def _record(query: str, url: str | None) -> Record:
    return tuple.__new__(Record, (query, WILDCARD if url is None else url))  # the fast way: there may be many


def _columns_of(head: HeadList) -> list[list[object]]:
    """The cells but for ⟨⋆,⋆⟩ as three columns; ⟨q,⋆⟩ has no URL."""
    listed = list(head.cells())[:-1]
    return [
        [query for query, _ in listed],
        [url if isinstance(url, str) else None for _, url in listed],
        list(range(len(listed))),
    ]
