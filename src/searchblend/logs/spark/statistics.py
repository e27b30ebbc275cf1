"""The lines of a log that were kept, and its exact figures, in Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812


def raw_events(lines: DataFrame, *, suggestions: bool) -> DataFrame:
    """(user, time, rank, query, url, is_used), perhaps with the suggestion: usable lines, and those that only lack a
    URL."""
    return lines.select(
        "user",
        "time",
        "rank",
        "query",
        F.nullif("url", F.lit("")).alias("url"),
        (F.col("problem") == "").alias("is_used"),
        *([F.nullif("suggestion", F.lit("")).alias("suggestion")] if suggestions else []),
    )


def distinct_counts(events: DataFrame) -> tuple[int, int, int]:
    """How many distinct queries, URLs and records the used lines hold."""
    records = events.where("is_used").select("query", "url").distinct()
    figures = records.agg(F.count_distinct("query"), F.count_distinct("url"), F.count(F.lit(1))).collect()[0]
    return int(figures[0]), int(figures[1]), int(figures[2])
