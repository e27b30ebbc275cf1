"""A group of people in DuckDB: one drawn record each, in a table of its own."""

# ruff: noqa: S608  every text in the SQL is a literal of ours, a table name of ours, or quoted

from __future__ import annotations

import numpy as np

from searchblend.blender.groups import ONE_RECORD, Spread
from searchblend.core.errors import InvalidParameter
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import HeadList
from searchblend.logs.duckdb.session import DuckDBSession, quoted
from searchblend.logs.duckdb.tally import DuckDBTally
from searchblend.mechanisms.tally import Ints


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


def _columns_of(head: HeadList) -> list[list[object]]:
    """The cells but for ⟨⋆,⋆⟩ as three columns; ⟨q,⋆⟩ has no URL."""
    listed = list(head.cells())[:-1]
    return [
        [query for query, _ in listed],
        [url if isinstance(url, str) else None for _, url in listed],
        list(range(len(listed))),
    ]
