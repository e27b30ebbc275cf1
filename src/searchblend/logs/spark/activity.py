"""Searches and clicks of a log in Spark, with each user's activity limited. The rules are those of ``activity``.

All lines of a person come to one place, and stay there for every question: what a cap keeps is found by windows over a
person's lines. Strings are ordered by their keyed MD5, ``q`` of the query and ``u`` of the URL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812

from searchblend.clickgraph.release.click_log import SESSION_GAP, SUGGESTION, Cap
from searchblend.core.records import Record
from searchblend.logs.activity import ActivityRules
from searchblend.logs.relational import SqlTally, record_of
from searchblend.logs.spark.draws import md5_number
from searchblend.logs.spark.session import SparkRunner, our_words
from searchblend.mechanisms.gaussian_account import weight

_TIME: Final = ("moment", "unparsed_time")
_SEARCHES: Final = (*_TIME, "q", "own")
_CLICKS: Final = (*_TIME, "q", "rank", "u")


class SparkActivity:
    """A ``ClickLog`` over lines (person, moment, unparsed_time, rank, query, url, suggestion)."""

    def __init__(self, runner: SparkRunner, lines: DataFrame, key: str, rules: ActivityRules) -> None:
        self._runner, self._given, self._key, self._rules = runner, lines, key, rules

    def searches(self, cap: Cap) -> SqlTally:
        return self._tally(self._kept(self._searches(cap), cap).withColumn("url", _nothing()))

    def weighted_searches(self, first: int, units: int, without: Sequence[str]) -> SqlTally:
        others = self._distinct_searches.join(self._queries(without), "query", "left_anti")
        weights = self._runner.frame([(s, weight(units, s)) for s in range(1, first + 1)], "s bigint, weight bigint")
        s = F.count(F.lit(1)).over(Window.partitionBy("person"))
        mine = self._kept(others, Cap(first)).withColumn("s", s).join(F.broadcast(weights), "s")
        counted = mine.groupBy("query").agg(F.sum("weight").alias("n")).where("n > 0")
        return self._counted(counted.withColumn("url", _nothing()))

    def searches_of(self, queries: Sequence[str], cap: Cap) -> Mapping[str, int]:
        wanted = self._searches(cap).join(self._queries(queries), "query", "left_semi")
        with our_words():
            found = self._kept(wanted, cap).groupBy("query").count().collect()
        return dict.fromkeys(queries, 0) | dict(found)

    def clicks(self, queries: Sequence[str], cap: Cap, *, within: Cap) -> SqlTally:
        wanted = self._clicks_within(within).join(self._queries(queries), "query", "left_semi")
        return self._tally(_limited(wanted, cap))

    def clicks_of(
        self, records: Sequence[Record], cap: Cap, *, within: Cap, restrict_first: bool = True
    ) -> Mapping[Record, int]:
        texts = [(str(query), str(url)) for query, url in records]
        wanted = F.broadcast(self._runner.frame(texts, "query string, url string").distinct())
        clicks = self._clicks_within(within)
        if restrict_first:
            kept = _limited(clicks.join(wanted, ["query", "url"], "left_semi"), cap)
        else:
            kept = _limited(clicks, cap).join(wanted, ["query", "url"], "left_semi")
        with our_words():
            found = kept.groupBy("query", "url").count().collect()
        return dict.fromkeys(records, 0) | {record_of(query, url): n for query, url, n in found}

    def reformulations(self, queries: Sequence[str], cap: Cap) -> SqlTally:
        following = _each_user(_SEARCHES)
        pairs = self._all_searches.select(
            "*",
            F.lead("query").over(following).alias("url"),
            F.lead("moment").over(following).alias("next_moment"),
            _nothing().alias("rank"),
            _nothing().alias("u"),
        )
        in_a_row = (F.col("query") != F.col("url")) & (F.col("next_moment") - F.col("moment") <= SESSION_GAP)
        wanted = self._queries(queries)
        pairs = pairs.where(in_a_row).join(wanted, "query", "left_semi")
        return self._tally(_limited(pairs.join(wanted.withColumnRenamed("query", "url"), "url", "left_semi"), cap))

    def _kept(self, searches: DataFrame, cap: Cap) -> DataFrame:
        return _first(searches, cap.first, _SEARCHES)

    def _searches(self, cap: Cap) -> DataFrame:
        return self._distinct_searches if cap.distinct else self._all_searches

    def _clicks_within(self, within: Cap) -> DataFrame:
        """The clicks of the searches that ``within`` keeps."""
        is_click = F.col("url").isNotNull()
        if within.distinct:
            kept = self._kept(self._distinct_searches, within)
            return self._lines.where(is_click).join(kept.select("person", "query"), ["person", "query"], "left_semi")
        search = F.dense_rank().over(_each_user(_SEARCHES))
        return self._lines.withColumn("search", search).where(is_click & (F.col("search") <= within.first))

    @cached_property
    def _distinct_searches(self) -> DataFrame:
        """Each user's queries, each at its first time."""
        found = self._lines.groupBy("person", "query", "q").agg(
            F.min("moment").alias("moment"), F.min("unparsed_time").alias("unparsed_time")
        )
        unparsed = F.when(F.col("moment").isNull(), F.col("unparsed_time"))
        return self._runner.keep(found.withColumn("unparsed_time", unparsed).withColumn("own", F.lit(None).cast("int")))

    @cached_property
    def _all_searches(self) -> DataFrame:
        """Each user's searches: those with the same query and time are one."""
        return self._runner.keep(self._lines.select("person", "query", *_SEARCHES).distinct())

    @cached_property
    def _lines(self) -> DataFrame:
        """The lines that count, each with its place in time.

        A line without a time is a search of its own: ``own`` numbers those of one user and query.
        """
        lines = self._with_targets(self._with_synonyms(self._given, "query")).select(
            "person",
            "query",
            "url",
            *_TIME,
            "rank",
            self._id("query").alias("q"),
            self._id("url").alias("u"),
        )
        first, last = self._rules.first_moment, self._rules.last_moment
        if first is not None:
            lines = lines.where(F.col("moment") >= first)
        if last is not None:
            lines = lines.where(F.col("moment") < last)
        alike = Window.partitionBy("person", "query", *_TIME).orderBy(*_in_order(("rank", "u")))
        untimed = F.col("moment").isNull() & F.col("unparsed_time").isNull()
        own = F.when(untimed, F.row_number().over(alike))
        return self._runner.keep(lines.repartition("person").withColumn("own", own))

    def _with_targets(self, lines: DataFrame) -> DataFrame:
        """``url`` is what was clicked: a URL, or a suggestion."""
        suggested = F.concat(F.lit(SUGGESTION), F.col("suggestion"))
        return self._with_synonyms(lines, "suggestion").withColumn("url", F.coalesce(F.col("url"), suggested))

    def _with_synonyms(self, lines: DataFrame, name: str) -> DataFrame:
        if not self._rules.synonyms:
            return lines
        synonyms = self._runner.frame(list(self._rules.synonyms.items()), f"{name} string, meant string")
        found = lines.join(F.broadcast(synonyms), name, "left")
        return found.withColumn(name, F.coalesce("meant", name)).drop("meant")

    def _id(self, name: str) -> Column:
        """The keyed MD5 of a text, as a number."""
        return md5_number(F.concat(F.lit(self._key), F.col(name)))

    def _queries(self, queries: Sequence[str]) -> DataFrame:
        return F.broadcast(self._runner.frame([(query,) for query in queries], "query string"))

    def _tally(self, events: DataFrame) -> SqlTally:
        return self._counted(events.groupBy("query", "url").agg(F.count(F.lit(1)).alias("n")))

    def _counted(self, records: DataFrame) -> SqlTally:
        return SqlTally(self._runner, f"SELECT query, url, n FROM {self._runner.view('counted', records)}")  # noqa: S608


def _in_order(names: Sequence[str]) -> list[Column]:
    return [F.col(name).asc_nulls_last() for name in names]


def _each_user(names: Sequence[str]) -> WindowSpec:
    return Window.partitionBy("person").orderBy(*_in_order(names))


def _first(events: DataFrame, first: int, names: Sequence[str]) -> DataFrame:
    """The first events of each user."""
    place = F.row_number().over(_each_user(names))
    return events.withColumn("place", place).where(F.col("place") <= first)


def _limited(clicks: DataFrame, cap: Cap) -> DataFrame:
    """The clicks (or pairs) that a cap keeps; distinct ones first, each at its first time."""
    if cap.distinct:
        again = F.row_number().over(Window.partitionBy("person", "query", "url").orderBy(*_in_order(_CLICKS)))
        clicks = clicks.withColumn("again", again).where(F.col("again") == 1)
    return _first(clicks, cap.first, _CLICKS)


def _nothing() -> Column:
    return F.lit(None).cast("string")
