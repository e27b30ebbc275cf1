"""What both engines ask of drawn records, in SQL that both understand: groups of people, and tallies of their records.

``Words`` holds the little that differs. Whatever depends on how an engine stores lines stays with the engine.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.groups import OwnShares, Weights
from searchblend.core.errors import InvalidParameter, OutputError
from searchblend.core.privacy import UNIT
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


class SqlEngine(Protocol):
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


def private_directory(parent: str | os.PathLike[str] | None) -> Path:
    """A new directory for its owner alone, in the system's if none is named."""
    try:
        return Path(tempfile.mkdtemp(prefix="searchblend-", dir=parent))
    except OSError as error:
        raise OutputError(f"{parent or tempfile.gettempdir()}: no temporary directory can be made") from error


def removal(owner: object, directory: Path, close: Callable[[], object] = lambda: None) -> Callable[[], object]:
    """A function that closes what is in a directory and removes it.

    It runs by itself when the owner is forgotten, or when the process ends: a log need not be closed by its reader.
    """
    process = os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # a fork that forgets its copy of the owner must not take the directory away
            close()
            shutil.rmtree(directory, ignore_errors=True)

    return weakref.finalize(owner, remove)


@contextmanager
def polled(poll: Callable[[], None], seconds: float) -> Iterator[None]:
    """Calls a function every so many seconds, in a thread of its own, for as long as the block lasts."""
    done = threading.Event()

    def run() -> None:
        while not done.wait(seconds):
            poll()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class SqlTally:
    """The distinct records of a group with their counts: a table with ``n``, and ``place``, a fixed 64-bit hash.

    Records of one count stand on shelves by the first bits of their place. To locate a rank shelves are counted, not
    sorted, and only those with wanted records are read.
    """

    def __init__(self, database: SqlEngine, counted: str, hashed: str = "query, url") -> None:
        """``counted`` is SQL that selects the record and n; ``hashed`` names the columns that distinguish records."""
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
    """People with one random record each: a table (person, draw, query, url), ``person`` a keyed hash."""

    def __init__(
        self,
        database: SqlEngine,
        table: str,
        *,
        has_urls: bool,
        draws: int,
        n_users: int | None = None,
        rows_of: Callable[[str], str] | None = None,
        unit: str = UNIT,
    ) -> None:
        """
        Args:
            database: holds the table
            table: its name
            has_urls: whether the records have URLs
            draws: how many records of each person were drawn with replacement
            n_users: how many people there are; None: they are counted
            rows_of: makes the table (person, digest, query, url) of all rows of the people in a table; None: not kept
            unit: what is called a person, in the words of a guarantee
        """
        self.unit: Final = unit
        self._rows_of, self._rows = rows_of, ""
        self._database, self._table = database, table
        self._has_urls, self._draws = has_urls, draws
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

    @property
    def has_rows(self) -> bool:
        return self._rows_of is not None

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
            self._database,
            table,
            has_urls=self._has_urls,
            draws=self._draws,
            n_users=n_users,
            rows_of=self._rows_of,
            unit=self.unit,
        )

    def tally(self) -> SqlTally:
        counted = f"SELECT query, url, count(*) AS n FROM {self._table} WHERE draw = 1 GROUP BY query, url"
        return SqlTally(self._database, counted)

    def cell_counts(self, head: HeadList, draws: int = 1, *, randomness: Randomness | None = None) -> Ints:
        """Drawn records by cell. All draws were made, each with its own hash, when the log was read."""
        if draws > self._draws:
            raise InvalidParameter("draws", f"the log was read with draws={self._draws}; {draws} are needed")
        drawn = f"(SELECT query, url FROM {self._table} WHERE draw <= {int(draws)})"
        with self._cells(head) as cells:
            counted = self._database.rows(_by_cell(drawn, cells, head, "count(*)"))
        return _in_order(counted, head)

    def weighted_queries(self, weights: Weights, *, randomness: Randomness | None = None) -> SqlTally:
        """Which queries of a user take part is decided by the digests of the user's own lines."""
        mine = f"SELECT person, query, min(digest) AS first FROM {self._held()} GROUP BY person, query"
        return self._weighted(mine, weights, "query", "CAST(NULL AS STRING) AS url")

    def weighted_records(
        self, queries: Sequence[str], weights: Weights, *, randomness: Randomness | None = None
    ) -> SqlTally:
        with self._database.values("wanted", "query string", [(query,) for query in queries]) as wanted:
            mine = f"""
                SELECT person, query, url, min(digest) AS first FROM {self._held()}
                WHERE query IN (SELECT query FROM {wanted}) GROUP BY person, query, url
            """
            return self._weighted(mine, weights, "query, url", "url")

    def _weighted(self, mine: str, weights: Weights, item: str, url: str) -> SqlTally:
        """``mine`` selects each person's different items with the smallest of their digests as ``first``."""
        placed = (
            f"SELECT *, row_number() OVER (PARTITION BY person ORDER BY first, {item}) AS place FROM ({mine}) AS mine"
        )
        kept = f"""
            SELECT *, CAST(count(*) OVER (PARTITION BY person) AS INT) AS held
            FROM ({placed}) AS placed WHERE place <= {weights.items}
        """
        table = list(enumerate(weights.table))[1:]
        with self._database.values("weights", "held int, weight bigint", table) as by_held:
            return SqlTally(
                self._database,
                f"""
                SELECT query, {url}, CAST(sum(weight) AS BIGINT) AS n
                FROM ({kept}) AS kept JOIN {by_held} USING (held) GROUP BY {item}
                """,
            )

    def own_shares(self, head: HeadList, units: int, *, randomness: Randomness | None = None) -> OwnShares:
        """The order of a user's rows is that of their digests; lines that are the same stand side by side."""
        within, whole = "OVER (PARTITION BY person ORDER BY digest)", "OVER (PARTITION BY person)"
        placed = f"""(
            SELECT person, query, url, row_number() {within} AS place, count(*) {whole} AS n FROM {self._held()}
        )"""
        quotient, units = self._database.words.quotient, int(units)
        share = f"{units} * place {quotient} n - {units} * (place - 1) {quotient} n"
        total = f"CAST(sum({share}) AS BIGINT)"
        with self._cells(head) as cells:
            shares = self._database.make("shares", _by_cell(placed, cells, head, total, person=True))
        sums = self._database.rows(f"SELECT cell, CAST(sum(n) AS BIGINT) FROM {shares} GROUP BY cell")
        up = f"CAST(squares + {units - 1} AS BIGINT) {quotient} {units}"
        numbers = list(enumerate(head.query_of_cells()))[:-1]
        with self._database.values("numbers", "cell int, number int", numbers) as listed:
            own = f"SELECT person, sum(n) AS n FROM {shares} JOIN {listed} USING (cell) GROUP BY person, number"
            each = f"SELECT sum(n * n) AS squares FROM ({own}) AS own GROUP BY person"
            (squares,) = self._database.rows(f"SELECT CAST(coalesce(sum({up}), 0) AS BIGINT) FROM ({each}) AS each")[0]
        self._database.discard(shares)
        return OwnShares(_in_order(sums, head), int(squares))

    def numbered_rows(self) -> tuple[list[Record], list[list[int]]]:
        """The distinct records, and the numbers of each user's. NOT PRIVATE: to evaluate."""
        records = f"SELECT DISTINCT query, url FROM {self._held()}"
        numbered = f"SELECT query, url, row_number() OVER (ORDER BY query, url) - 1 AS number FROM ({records}) AS found"
        listed = self._database.make("listed", numbered)
        names = self._database.rows(f"SELECT query, url FROM {listed} ORDER BY number")
        of_each = f"""
            SELECT array_agg(number) FROM {self._held()} AS held JOIN {listed} AS listed
            ON held.query = listed.query AND held.url IS NOT DISTINCT FROM listed.url GROUP BY person ORDER BY person
        """
        users = [sorted(numbers) for (numbers,) in self._database.rows(of_each)]
        self._database.discard(listed)
        return [record_of(query, url) for query, url in names], users

    def _held(self) -> str:
        """All rows of these people, fetched when they are first asked for."""
        if self._rows_of is None:
            raise InvalidParameter("rows", "expected a log that was read with rows=True")
        self._rows = self._rows or self._rows_of(self._table)
        return self._rows

    def _cells(self, head: HeadList) -> AbstractContextManager[str]:
        """⟨q,⋆⟩ has no URL; ⟨⋆,⋆⟩ is whatever is not listed."""
        listed = enumerate(list(head.cells())[:-1])
        cells = [(query, url if isinstance(url, str) else None, cell) for cell, (query, url) in listed]
        return self._database.values("cells", "query string, url string, cell int", cells)


def _by_cell(held: str, cells: str, head: HeadList, counted: str, *, person: bool = False) -> str:
    """SELECT of what is counted of each cell, or of each person's cells."""
    cell, key = f"coalesce(listed.cell, other_url.cell, {head.n_cells - 1})", "person, " if person else ""
    return f"""
        SELECT /*+ BROADCAST(listed, other_url) */ {key}{cell} AS cell, {counted} AS n
        FROM {held} AS held
        LEFT JOIN {cells} AS listed ON held.query = listed.query AND held.url = listed.url
        LEFT JOIN (SELECT query, cell FROM {cells} WHERE url IS NULL) AS other_url
            ON held.query = other_url.query
        GROUP BY {key}{cell}
    """


def _in_order(counted: Sequence[tuple[Any, ...]], head: HeadList) -> Ints:
    counts = np.zeros(head.n_cells, dtype=np.int64)
    for cell, n in counted:
        counts[cell] = n
    return counts


def record_of(query: str, url: str | None) -> Record:
    return tuple.__new__(Record, (query, WILDCARD if url is None else url))  # the fast way: there may be many
