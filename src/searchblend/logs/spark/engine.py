"""Reading a log with Apache Spark: the same answers as DuckDB, to the last record, from many machines.

One job reads the files, each executor its parts (``parts``), and leaves the usable lines on the executors. Everything
that follows is SQL over those lines. To it a ``line`` is a struct of its strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Final

from pyspark.sql import DataFrame

from searchblend.clickgraph.release.click_log import SUGGESTION
from searchblend.core.errors import InvalidParameter
from searchblend.logs.activity import UNTIMED, ActivityRules, Kind, SqlActivity
from searchblend.logs.duckdb.scan import parquet_types
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.engine import LogEngine, Reading
from searchblend.logs.formats.files import size_of
from searchblend.logs.formats.gate import OnBytes
from searchblend.logs.formats.layout import Sessions, Source
from searchblend.logs.formats.remote import LogFile
from searchblend.logs.options import ReadOptions
from searchblend.logs.relational import SqlTally
from searchblend.logs.spark.parts import (
    SCHEMA,
    Part,
    ReadTask,
    keyed_by_session,
    parts_of,
    read_parts,
    read_sessions,
    reading_of,
    session_of,
)
from searchblend.logs.spark.session import OnNotice, SparkRunner, our_words

_READING_SHARE: Final = 0.8
"""How much of the work is done when all lines are read."""


class SparkEngine(LogEngine):
    """A log in Spark; its lines, or the drawn records, are kept on the executors."""

    _lines = _contents = ""
    """views: the usable lines, if they are kept, and the lines to draw from"""

    def __init__(self, options: ReadOptions, on_notice: OnNotice) -> None:
        self._runner = SparkRunner(options.master, options.temp_directory, on_notice)
        super().__init__(self._runner, options)
        self._has_optin = options.optin_column is not None

    def close(self) -> None:
        self._runner.close()

    def column_types(self, path: LogFile) -> Mapping[str, str]:
        """From the file's end, which DuckDB reads on this machine."""
        with closing(DuckDBSession(None, 1, self._runner.directory)) as session:
            return parquet_types(session, path)

    def read(self, sources: Sequence[Source], on_bytes: OnBytes, on_fraction: Callable[[float], None]) -> Reading:
        self.has_urls = sources[0][0].has_urls
        n_bytes = sum(size_of(path) for _, paths in sources for path in paths)
        self._runner.set_partitions(n_bytes)
        parts = parts_of(sources, n_bytes // self._runner.cores)
        with our_words(), self._runner.watched(lambda part: on_fraction(_READING_SHARE * part)):
            rows = self._runner.keep(self._rows(parts))
            reports = [report for (report,) in rows.where("report IS NOT NULL").select("report").collect()]
        reading = reading_of(parts, reports)
        self._lines = self._runner.view("lines", rows.where("report IS NULL").drop("report"))
        with self._runner.watched(lambda part: on_fraction(_READING_SHARE * (1 - part) + part)):
            if not self._drawing.draws:
                ((users,),) = self._runner.rows(f"SELECT count(DISTINCT person) FROM {self._lines}")
                reading = replace(reading, users=users)
            elif reading.used:
                reading = replace(reading, users=self._draw())
        if not (self._keep_lines or self._keep_rows):
            self._runner.forget(rows)
        return reading

    def _rows(self, parts: Sequence[Part]) -> DataFrame:
        """What the executors read of the parts. Lines of one session may be in several parts: they come together."""
        task = ReadTask(self._drawing, self._keep_lines)
        rows = self._runner.spark.sparkContext.parallelize(parts, len(parts)).mapPartitions(partial(read_parts, task))
        if isinstance(parts[0].layout, Sessions):
            by_session = rows.map(keyed_by_session).partitionBy(self._runner.cores, session_of)
            rows = by_session.mapPartitions(partial(read_sessions, task))
        return self._runner.spark.createDataFrame(rows, SCHEMA, verifySchema=False)

    def _draw(self) -> int:
        """Makes ``drawn``. All lines of a person come to one place, and stay there for everything that follows."""
        used = f"SELECT /*+ REPARTITION(person) */ person, digest, query, url, optin FROM {self._lines} WHERE is_used"
        if self._has_optin:
            used = (
                f"SELECT person, digest, query, url, bool_and(optin) OVER (PARTITION BY person) AS optin FROM ({used})"
            )
        several = self._drawing.draws > 1  # then they are read several times
        self._contents = (self._runner.make if several else self._runner.part)(
            "contents",
            f"""
            SELECT person, digest, count(*) AS n, first(struct(query, url, optin)) AS line FROM ({used})
            GROUP BY person, digest
            """,
        )
        strings = "line.query AS query, line.url AS url, line.optin AS optin"
        chosen = f"SELECT person, draw, {strings} FROM ({self._chosen_lines()})"
        self.drawn, self.opted_in = self._runner.make("drawn", chosen), "optin"
        ((users,),) = self._runner.rows(f"SELECT count(*) FROM {self.drawn} WHERE draw = 1")
        return int(users)

    def rows_of(self, people: str) -> str:
        mine = f"SELECT person FROM {people} WHERE draw = 1"
        used = f"SELECT person, digest, query, url FROM {self._lines} WHERE is_used"
        return self._runner.make("rows", f"SELECT * FROM ({used}) AS used SEMI JOIN ({mine}) AS mine USING (person)")

    def _smallest_scores(self, draw: int) -> str:
        score = f"array_min({self._scores(draw)})"
        if draw == 1:
            score = f"CASE WHEN n = 1 THEN digest ELSE {score} END"
        return f"SELECT person, line, {score} AS score FROM {self._contents}"

    @contextmanager
    def _used_records(self) -> Iterator[str]:
        yield f"(SELECT query, url FROM {self._lines} WHERE is_used)"

    def _activity(self, rules: ActivityRules) -> SqlActivity:
        if rules.account is not None:
            raise InvalidParameter("account", "only with the engine duckdb; on a cluster releases have no windows yet")
        return _SparkActivity(self._runner, self._lines, self._drawing.key, rules)


class _SparkActivity(SqlActivity):
    """Over lines (person, moment, unparsed_time, rank, query, url, suggestion). What a cap keeps is found by windows
    over a person's lines, which come to one place, and stay there for every question."""

    def __init__(self, runner: SparkRunner, lines: str, key: str, rules: ActivityRules) -> None:
        super().__init__(runner, key)
        self._runner, self._given, self._rules = runner, lines, rules

    def _lines(self, *columns: str, clicks: bool = False) -> str:
        select = f"SELECT person, q, line, {', '.join(columns)} FROM {self._counted_lines}"
        return f"{select} WHERE u IS NOT NULL" if clicks else select

    @cached_property
    def _counted_lines(self) -> str:
        """The lines that count, each with its place in time; ``own`` numbers those of a user and query without one."""
        query, suggestion, joins = "query", "suggestion", ""
        if self._rules.synonyms:
            pairs = self._runner.frame(list(self._rules.synonyms.items()), "string string, meant string")
            synonyms = self._runner.view("synonyms", pairs)
            joins = f"LEFT JOIN {synonyms} AS typed ON query = typed.string"
            joins += f" LEFT JOIN {synonyms} AS shown ON suggestion = shown.string"
            query, suggestion = "coalesce(typed.meant, query)", "coalesce(shown.meant, suggestion)"
        lines = f"""
            SELECT /*+ REPARTITION(person) */ person, moment, unparsed_time, rank, {query} AS query,
                coalesce(url, '{SUGGESTION}' || {suggestion}) AS url
            FROM {self._given} {joins} WHERE {" AND ".join(["true", *self._rules.window()])}
        """
        events = f"""
            SELECT person, moment, unparsed_time, rank, struct(query, url) AS line,
                {self._id("query")} AS q, {self._id("url")} AS u
            FROM ({lines})
        """
        alike = "PARTITION BY person, q, moment, unparsed_time ORDER BY rank NULLS LAST, u NULLS LAST"
        own = f"CASE WHEN {UNTIMED} THEN row_number() OVER ({alike}) END"
        return self._runner.make("events", f"SELECT *, {own} AS own FROM ({events})")

    def _tally(self, kind: Kind, events: str, n: str = "count(*)") -> SqlTally:
        url = {"searches": "CAST(NULL AS STRING)", "clicks": "line.url", "pairs": "next.query"}[kind]
        records = f"SELECT line.query AS query, {url} AS url, * FROM ({events})"
        return SqlTally(self._runner, f"SELECT query, url, {n} AS n FROM ({records}) GROUP BY query, url")
