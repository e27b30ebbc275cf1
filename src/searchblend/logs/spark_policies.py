"""What each user may contribute to a count, and the exact figures of a log, in Spark. As ``duckdb_policies``."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from searchblend.errors import InvalidParameter
from searchblend.logs.judge import WITHOUT_URL

_NUMBER: Final = r"\A\s*[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?\s*\z"


def raw_events(lines: DataFrame) -> DataFrame:
    """(user, time, rank, query, url, is_used): usable lines, and those that only lack a URL."""
    return lines.select(
        "user",
        "time",
        "rank",
        "query",
        F.nullif("url", F.lit("")).alias("url"),
        (F.col("problem") != WITHOUT_URL).alias("is_used"),
    )


def _by_time() -> list[Column]:
    """The order of a user's lines: times as numbers if they are, else as texts; ties by rank and by text."""
    columns = []
    for name in ("time", "rank"):
        number = F.when(F.col(name).rlike(_NUMBER), F.trim(name).try_cast("double"))
        columns += [number.asc_nulls_last(), F.col(name).asc_nulls_last()]
    return [*columns, F.col("query").asc_nulls_last(), F.col("url").asc_nulls_last()]


def searches_of(events: DataFrame, first: int | None, *, distinct: bool) -> DataFrame:
    """(query, url NULL, n): how often each query was searched, by the first searches of each user.

    A search is a query at a time: its clicks are lines of their own, with the same query and time. In a log without
    times every line is a search.
    """
    searches = events.select("user", "time", "query")
    timed = F.col("time") != ""
    nothing = F.lit(None).cast("string")
    searches = searches.where(timed).distinct().union(searches.where(~timed))
    return _counted(searches.select("*", nothing.alias("rank"), nothing.alias("url")), first, distinct=distinct)


def clicks_of(events: DataFrame, first: int | None, *, distinct: bool) -> DataFrame:
    """(query, url, n): how often each record was clicked, by the first clicks of each user."""
    return _counted(events.where(F.col("url").isNotNull()), first, distinct=distinct)


def _counted(events: DataFrame, first: int | None, *, distinct: bool) -> DataFrame:
    """Distinct first, then the first of them: a user who repeats one query still has others to contribute."""
    if first is not None and first < 1:
        raise InvalidParameter("first", f"expected a whole number of at least 1, found {first!r}")
    if distinct:
        again = F.row_number().over(Window.partitionBy("user", "query", "url").orderBy(*_by_time()))
        events = events.withColumn("place", again).where(F.col("place") == 1)
    if first is not None:
        place = F.row_number().over(Window.partitionBy("user").orderBy(*_by_time()))
        events = events.withColumn("place", place).where(F.col("place") <= first)
    return events.groupBy("query", "url").agg(F.count(F.lit(1)).alias("n"))


def distinct_counts(events: DataFrame) -> tuple[int, int, int]:
    """How many distinct queries, URLs and records the used lines hold."""
    records = events.where("is_used").select("query", "url").distinct()
    figures = records.agg(F.count_distinct("query"), F.count_distinct("url"), F.count(F.lit(1))).collect()[0]
    return int(figures[0]), int(figures[1]), int(figures[2])
