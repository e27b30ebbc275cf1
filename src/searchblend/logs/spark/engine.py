"""Reading a log with Apache Spark: the same answers as DuckDB, to the last record, from many machines.

One job reads the files, each executor its parts (``parts``), and leaves the usable lines on the executors. Everything
that follows is a column expression over those lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from searchblend.core.errors import InvalidParameter
from searchblend.logs.activity import ActivityRules
from searchblend.logs.duckdb.scan import parquet_types
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.engine import Drawing, Reading
from searchblend.logs.formats.gate import OnBytes
from searchblend.logs.formats.layout import Sessions, Source
from searchblend.logs.options import ReadOptions
from searchblend.logs.relational import DrawnLog
from searchblend.logs.spark.activity import SparkActivity
from searchblend.logs.spark.draws import drawn_records
from searchblend.logs.spark.parts import (
    SCHEMA,
    Part,
    Task,
    keyed_by_session,
    parts_of,
    read_parts,
    read_sessions,
    reading_of,
    session_of,
)
from searchblend.logs.spark.session import OnNotice, SparkRunner, our_words
from searchblend.logs.summary import LogStatistics

_READING_SHARE: Final = 0.8
"""How much of the work is done when all lines are read."""


class SparkEngine(DrawnLog):
    """A log in Spark; its lines, or the drawn records, are kept on the executors."""

    def __init__(self, options: ReadOptions, on_notice: OnNotice) -> None:
        self._runner = SparkRunner(options.master, options.temp_directory, on_notice)
        super().__init__(self._runner, Drawing.of(options))
        self._keep_lines = options.keep_lines or not options.draws
        self._keep_rows = options.rows
        self._lines: DataFrame | None = None
        self._used = ""

    def close(self) -> None:
        self._runner.close()

    def column_types(self, path: Path) -> Mapping[str, str]:
        """From the file's end, which DuckDB reads on this machine."""
        with closing(DuckDBSession(None, 1, self._runner.directory)) as session:
            return parquet_types(session, path)

    def read(self, sources: Sequence[Source], on_bytes: OnBytes, on_fraction: Callable[[float], None]) -> Reading:
        self.has_urls = sources[0][0].has_urls
        n_bytes = sum(path.stat().st_size for _, paths in sources for path in paths)
        self._runner.set_partitions(n_bytes)
        parts = parts_of(sources, n_bytes // self._runner.cores)
        with our_words(), self._runner.watched(lambda part: on_fraction(_READING_SHARE * part)):
            rows = self._runner.keep(self._rows(parts))
            reports = [report for (report,) in rows.where("report IS NOT NULL").select("report").collect()]
        reading = reading_of(parts, reports)
        lines = rows.where("report IS NULL").drop("report")
        with our_words(), self._runner.watched(lambda part: on_fraction(_READING_SHARE * (1 - part) + part)):
            if not self._drawing.draws:
                reading = replace(reading, users=lines.select("person").distinct().count())
            elif reading.used:
                reading = replace(reading, users=self._draw(lines.where("is_used")))
        if self._keep_rows:
            self._used = self._runner.view("used", lines.where("is_used"))
        if self._keep_lines:
            self._lines = lines
        elif not self._keep_rows:
            self._runner.forget(rows)
        return reading

    def _rows(self, parts: Sequence[Part]) -> DataFrame:
        """What the executors read of the parts. Lines of one session may be in several parts: they come together."""
        task = Task(self._drawing, self._keep_lines)
        rows = self._runner.spark.sparkContext.parallelize(parts, len(parts)).mapPartitions(partial(read_parts, task))
        if isinstance(parts[0].layout, Sessions):
            by_session = rows.map(keyed_by_session).partitionBy(self._runner.cores, session_of)
            rows = by_session.mapPartitions(partial(read_sessions, task))
        return self._runner.spark.createDataFrame(rows, SCHEMA, verifySchema=False)

    def _draw(self, lines: DataFrame) -> int:
        """Makes ``drawn`` (person, optin, draw, pick, query, url)."""
        drawn = self._runner.keep(drawn_records(lines, self._drawing))
        self.drawn, self.opted_in = self._runner.view("drawn", drawn), "optin"
        return drawn.where("draw = 1").count()

    def rows_of(self, people: str) -> str:
        if not self._used:
            return super().rows_of(people)
        mine = self._runner.spark.table(people).where("draw = 1").select("person")
        used = self._runner.spark.table(self._used).select("person", "digest", "query", "url")
        return self._runner.view("rows", self._runner.keep(used.join(mine, "person", "left_semi")))

    def statistics(self, reading: Reading) -> LogStatistics:
        records = self._kept_lines().where("is_used").select("query", "url").distinct()
        with our_words():
            counted = records.agg(F.count_distinct("query"), F.count_distinct("url"), F.count(F.lit(1)))
            n_queries, n_urls, n_records = counted.collect()[0]
        sizes = (reading.bytes, reading.lines, reading.users)
        return LogStatistics(*sizes, n_queries, n_urls, n_records, reading.malformed)

    def activity(self, rules: ActivityRules) -> SparkActivity:
        if self._drawing.draws:
            raise InvalidParameter("draws", "expected a log that was read with draws=0")
        return SparkActivity(self._runner, self._kept_lines(), self._drawing.key, rules)

    def _kept_lines(self) -> DataFrame:
        if self._lines is None:
            raise InvalidParameter("keep_lines", "expected a log that was read with keep_lines=True")
        return self._lines
