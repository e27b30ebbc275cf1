"""A group of people in Spark: one drawn record each, kept on the executors. Only head-sized answers come back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from searchblend.blender.groups import ONE_RECORD, Spread
from searchblend.core.errors import InvalidParameter
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.logs.spark.session import SparkRunner, our_words
from searchblend.mechanisms.tally import Ints

_SHELF_BITS: Final = 12
"""Records of one count stand on 4096 shelves by their hash: a rank is found by counting shelves, without sorting."""
_BIN_DIGITS: Final = 4
_Standing = tuple[int, int, int]
"""a count, one of its shelves, and a place on it from 1"""


class SparkTally:
    """The distinct records of a group with their counts: rows (query, url, n), kept on the executors."""

    def __init__(self, runner: SparkRunner, counted: DataFrame) -> None:
        self._runner = runner
        place = F.xxhash64("query", "url")
        self._rows = runner.keep(counted.select("query", "url", "n", place.alias("place")))

    def sizes(self) -> Mapping[int, int]:
        with our_words():
            return {int(n): size for n, size in self._rows.groupBy("n").count().collect()}

    def pick(self, count: int, ranks: Ints) -> Sequence[Record]:
        return self.pick_each({count: ranks})[count]

    def pick_each(self, ranks: Mapping[int, Ints]) -> dict[int, list[Record]]:
        counts = self._runner.frame([(count,) for count in ranks], "n bigint")
        rows = self._rows.join(F.broadcast(counts), "n", "left_semi").withColumn("shelf", _shelf())
        on_shelf: dict[int, list[tuple[int, int]]] = defaultdict(list)
        with our_words():
            for count, shelf, size in sorted(tuple(row) for row in rows.groupBy("n", "shelf").count().collect()):
                on_shelf[count].append((shelf, size))
            wanted = {count: _on_shelves(count, on_shelf[count], some) for count, some in ranks.items()}
            records = self._standing(rows, sorted({place for places in wanted.values() for place in places}))
        return {count: [records[place] for place in places] for count, places in wanted.items()}

    def _standing(self, rows: DataFrame, places: list[_Standing]) -> dict[_Standing, Record]:
        """The records that stand there, of rows with their shelf."""
        wanted = self._runner.frame(places, "n bigint, shelf bigint, there bigint")
        shelves = wanted.select("n", "shelf").distinct()
        there = F.row_number().over(Window.partitionBy("n", "shelf").orderBy("place", "query", "url"))
        found = (
            rows.join(F.broadcast(shelves), ["n", "shelf"], "left_semi")
            .withColumn("there", there)
            .join(F.broadcast(wanted), ["n", "shelf", "there"])
            .select("n", "shelf", "there", "query", "url")
        )
        return {(n, shelf, there): record_of(query, url) for n, shelf, there, query, url in found.collect()}

    def at_least(self, count: int) -> Mapping[int, Sequence[Record]]:
        found: dict[int, list[Record]] = defaultdict(list)
        rows = self._rows.where(F.col("n") >= count).orderBy(_shelf(), "place", "query", "url")
        with our_words():
            for query, url, n in rows.select("query", "url", "n").collect():
                found[int(n)].append(record_of(query, url))
        return found

    def of_queries(self, queries: Sequence[str]) -> dict[Record, int]:
        rows = self._rows.join(F.broadcast(self._queries(queries)), "query", "left_semi")
        with our_words():
            return {record_of(query, url): int(n) for query, url, n in rows.select("query", "url", "n").collect()}

    def by_query(self, cap: int, without: Sequence[str]) -> SparkTally:
        others = self._rows.join(F.broadcast(self._queries(without)), "query", "left_anti")
        total = F.sum(F.least(F.col("n"), F.lit(int(cap))))
        counted = others.groupBy("query").agg(total.alias("n"))
        return SparkTally(self._runner, counted.withColumn("url", F.lit(None).cast("string")))

    def _queries(self, queries: Sequence[str]) -> DataFrame:
        return self._runner.frame([(query,) for query in queries], "query string")


class SparkGroup:
    """People with one random record each: rows (person, draw, pick, query, url), ``person`` a keyed hash."""

    def __init__(
        self,
        runner: SparkRunner,
        rows: DataFrame,
        *,
        has_urls: bool,
        draws: int,
        picks: int,
        n_users: int | None = None,
    ) -> None:
        self._runner, self._rows = runner, rows
        self._has_urls, self._draws, self._picks = has_urls, draws, picks
        if n_users is None:
            with our_words():
                n_users = rows.where(F.col("draw") == 1).count()
        self._n_users = n_users

    def __repr__(self) -> str:
        return f"SparkGroup({self.n_users} users)"

    @property
    def n_users(self) -> int:
        return self._n_users

    @property
    def has_urls(self) -> bool:
        return self._has_urls

    def split(self, fraction: float, *, randomness: Randomness | None = None) -> tuple[SparkGroup, SparkGroup]:
        """Two disjoint random parts; the first holds round(fraction · n) users, those with the smallest fresh hash."""
        if not 0 < fraction < 1:
            raise InvalidParameter("fraction", f"expected a number in (0, 1), found {fraction!r}")
        salt = (randomness or SystemRandomness()).take(16).hex()
        order = F.md5(F.concat(F.lit(salt), F.col("person")))
        n_first = round(fraction * self._n_users)
        last = self._last_of_first(order, n_first)
        inside = F.struct(order, F.col("person")) <= F.struct(F.lit(last[0]), F.lit(last[1]))
        return self._part(inside, n_first), self._part(~inside, self._n_users - n_first)

    def _last_of_first(self, order: Column, n_first: int) -> tuple[str, str]:
        """The hash and the person at which the first part ends: first by bins of hashes, then within one bin."""
        if n_first == 0:
            return "", ""
        hashes = self._rows.where(F.col("draw") == 1).select(order.alias("order"), "person")
        bin_ = F.substring("order", 1, _BIN_DIGITS)
        with our_words():
            before = 0
            for name, n in sorted(hashes.groupBy(bin_.alias("bin")).count().collect()):
                if before + n >= n_first:
                    inside = sorted(tuple(row) for row in hashes.where(bin_ == name).collect())
                    return inside[n_first - before - 1]
                before += n
        raise AssertionError("there are fewer people than were counted")

    def _part(self, condition: Column, n_users: int) -> SparkGroup:
        return SparkGroup(
            self._runner,
            self._rows.where(condition),
            has_urls=self._has_urls,
            draws=self._draws,
            picks=self._picks,
            n_users=n_users,
        )

    def tally(self, spread: Spread = ONE_RECORD, *, randomness: Randomness | None = None) -> SparkTally:
        """All picks were made, by the key of the reading, when the log was read."""
        if spread.records > self._picks:
            raise InvalidParameter("picks", f"the log was read with picks={self._picks}; {spread.records} are needed")
        rows = self._rows.where(F.col("pick") <= spread.records)
        share = F.lit(spread.units)
        if spread.records > 1:
            n = F.count(F.lit(1)).over(Window.partitionBy("person"))
            rows = rows.withColumn("share", F.floor(F.lit(spread.units) / n))
            share = F.col("share")
        return SparkTally(self._runner, rows.groupBy("query", "url").agg(F.sum(share).cast("bigint").alias("n")))

    def cell_counts(self, head: HeadList, draws: int = 1, *, randomness: Randomness | None = None) -> Ints:
        """Drawn records by cell. All draws were made, each with its own hash, when the log was read."""
        if draws > self._draws:
            raise InvalidParameter("draws", f"the log was read with draws={self._draws}; {draws} are needed")
        listed = list(head.cells())[:-1]
        urls = [(q, url, cell) for cell, (q, url) in enumerate(listed) if isinstance(url, str)]
        stars = [(q, cell) for cell, (q, url) in enumerate(listed) if not isinstance(url, str)]
        rows = (
            self._rows.where(F.col("draw") <= draws)
            .join(F.broadcast(self._runner.frame(urls, "query string, url string, cell int")), ["query", "url"], "left")
            .join(F.broadcast(self._runner.frame(stars, "query string, star int")), "query", "left")
        )
        cell = F.coalesce("cell", "star", F.lit(head.n_cells - 1))
        counts = np.zeros(head.n_cells, dtype=np.int64)
        with our_words():
            for number, n in rows.groupBy(cell.alias("cell")).count().collect():
                counts[number] = n
        return counts


def _shelf() -> Column:
    return F.shiftrightunsigned("place", 64 - _SHELF_BITS)


def _on_shelves(count: int, on_shelf: Sequence[tuple[int, int]], ranks: Ints) -> list[_Standing]:
    """For each rank among the records with this count where it is found; ``on_shelf`` has (shelf, records there)."""
    ends = np.fromiter(accumulate(n for _, n in on_shelf), dtype=np.int64, count=len(on_shelf))
    at = np.searchsorted(ends, ranks, side="right")
    return [
        (count, on_shelf[i][0], int(rank - ends[i] + on_shelf[i][1]) + 1)
        for i, rank in zip(at.tolist(), ranks.tolist(), strict=True)
    ]


def record_of(query: str, url: str | None) -> Record:
    return Record(query, WILDCARD if url is None else url)
