"""Reading a log with Apache Spark: the same answers as DuckDB, to the last record, from many machines.

Two jobs read the files: the first counts every line by what is wrong with it, the second brings each user's usable
lines to one place and draws. Everything is a column expression; executors need nothing but Spark.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from searchblend.core.errors import InvalidParameter, RunError
from searchblend.logs.activity import ActivityRules
from searchblend.logs.duckdb.scan import parquet_types
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.engine import OPTIN_DIGITS, Drawing, Reading
from searchblend.logs.formats.files import compression_of, open_text_bytes
from searchblend.logs.formats.gate import OnBytes
from searchblend.logs.formats.judge import WITHOUT_URL
from searchblend.logs.formats.layout import Columns, Source
from searchblend.logs.options import ReadOptions
from searchblend.logs.spark.activity import SparkActivity
from searchblend.logs.spark.draws import contents_of, joined, people_of
from searchblend.logs.spark.files import SparkFiles, clean, files_for_spark, first_places, name_as_path
from searchblend.logs.spark.formats import SILENT
from searchblend.logs.spark.group import SparkGroup
from searchblend.logs.spark.look import Look, all_lines, look, rows_of_problems, usable
from searchblend.logs.spark.scan import IN_BYTES
from searchblend.logs.spark.session import OnNotice, SparkRunner, our_words
from searchblend.logs.spark.statistics import distinct_counts, raw_events
from searchblend.logs.spark.texts import normal_records
from searchblend.logs.summary import FIRST_PLACES, LogStatistics, Malformed, Place

_LOOKING_SHARE: Final = 0.4
"""How much of the reading is done after the first look."""


class SparkEngine:
    """A log in Spark; the drawn records are kept on its executors."""

    def __init__(self, options: ReadOptions, on_notice: OnNotice) -> None:
        self._drawing = Drawing.of(options)
        self._keep_lines = options.keep_lines or not options.draws
        self._runner = SparkRunner(options.master, options.temp_directory, on_notice)
        self.has_urls = self._has_suggestions = False
        self._sources: list[SparkFiles] = []
        self._types: dict[Path, Mapping[str, str]] = {}
        self._look = Look()
        self._drawn: DataFrame | None = None
        self._lines: DataFrame | None = None
        self._events: DataFrame | None = None

    def close(self) -> None:
        self._runner.close()

    def column_types(self, path: Path) -> Mapping[str, str]:
        """From the file's end, which DuckDB reads on this machine."""
        if path not in self._types:
            session = DuckDBSession(None, 1, self._runner.directory)
            try:
                self._types[path] = parquet_types(session, path)
            finally:
                session.close()
        return self._types[path]

    def read(self, sources: Sequence[Source], on_bytes: OnBytes, on_fraction: Callable[[float], None]) -> Reading:
        self.has_urls = sources[0][0].has_urls
        self._has_suggestions = any(layout.has_suggestions for layout, _ in sources)
        self._runner.set_partitions(sum(path.stat().st_size for _, paths in sources for path in paths))
        directory = self._runner.directory
        self._sources = [files_for_spark(layout, paths, directory) for layout, paths in sources]
        try:
            with our_words(), self._runner.watched(lambda part: on_fraction(_LOOKING_SHARE * part)):
                self._look_at_lines()
            reading = self._counted()
            lines = self._all_lines(self._look.repeated_headers)
            if reading.in_fields and isinstance(sources[0][0], Columns):
                reading = self._with_rows(reading, lines)
            if self._keep_lines:
                self._lines = usable(self._runner, lines, self._look, with_urls_only=False)
            if reading.used or not self._drawing.draws:
                with our_words(), self._runner.watched(lambda f: on_fraction(_LOOKING_SHARE * (1 - f) + f)):
                    users = self._draw(lines, reading.used) if self._drawing.draws else self._count_users(reading.used)
                reading = replace(reading, users=users)
        except RunError:
            self._find_damaged()
            raise
        return reading

    def _all_lines(self, repeated: Counter[str]) -> DataFrame:
        return all_lines(
            self._runner,
            self._sources,
            self.column_types,
            host_only=self._drawing.host_only,
            searches=not self._drawing.draws,
            repeated=repeated,
        )

    def _look_at_lines(self) -> None:
        self._look = self._looked()
        if self._look.for_gate:
            for files in self._sources:
                for path in files.take_out(self._look.for_gate):
                    clean(files, path, self._runner.directory)
            self._look = self._looked()

    def _looked(self) -> Look:
        headers = sum((files.headers() for files in self._sources), Counter[str]())
        found = look(self._all_lines(Counter()), headers, host_only=self._drawing.host_only)
        if any(found.repeated_headers.get(text, -1) < 0 for text in headers):
            raise RunError("a file has no header any more: did the log change while it was read?")
        return found

    def _counted(self) -> Reading:
        by_problem = Counter(self._look.by_problem)
        used, without_url = by_problem.pop("", 0), by_problem.pop(WITHOUT_URL, 0)
        by_problem.pop(SILENT, None)
        in_bytes = {reason: by_problem.pop(reason) for reason in IN_BYTES if reason in by_problem}
        held_back = first_places(self._sources, in_bytes) if in_bytes else {}
        passed = [one for files in self._sources for one in files.passed]
        for reason, kind in (item for one in passed for item in one.held_back.items()):
            known = held_back.get(reason, Malformed())
            held_back[reason] = Malformed(known.count + kind.count, (known.first + kind.first)[:FIRST_PLACES])
        plain = [size for files in self._sources for size in files.plain_sizes()]
        return Reading(
            bytes=self._look.bytes + sum(plain) + sum(one.bytes for one in passed),
            lines=self._look.by_problem.total() + sum(kind.count for one in passed for kind in one.held_back.values()),
            used=used,
            without_url=without_url,
            held_back=held_back,
            in_fields=by_problem,
        )

    def _with_rows(self, reading: Reading, lines: DataFrame) -> Reading:
        """The places of malformed rows of Parquet, which nobody else can find."""
        with our_words():
            rows = rows_of_problems(self._runner, lines, self._look)
        files = [item for source in self._sources for item in source.raw.items()]
        order = {name_as_path(name): (number, path) for number, (name, path) in enumerate(files)}
        held_back = {}
        for reason, count in reading.in_fields.items():
            first = sorted((order[name], row) for name, row in rows[reason])[:FIRST_PLACES]
            held_back[reason] = Malformed(count, [Place(str(path), row) for (_, path), row in first])
        return replace(reading, held_back=held_back, in_fields=Counter())

    def _draw(self, lines: DataFrame, expected: int) -> int:
        """Makes ``drawn`` (person, optin, draw, pick, query, url), after checking that no line got lost."""
        contents = contents_of(usable(self._runner, lines, self._look), self._drawing.key)
        people = self._runner.keep(people_of(contents, self._drawing))
        n_lines, users = people.agg(F.sum("lines"), F.count(F.lit(1))).collect()[0]
        _refuse_change(expected, n_lines)
        drawn = people.select("person", "optin", F.inline("drawn"))
        if not self.has_urls:
            drawn = drawn.withColumn("url", F.lit(None).cast("string"))
        self._drawn = self._runner.keep(normal_records(self._runner, drawn, host_only=self._drawing.host_only))
        self._drawn.count()
        self._runner.forget(people)
        return int(users)

    def _count_users(self, expected: int) -> int:
        n_lines, users = self._kept_events().agg(F.count_if("is_used"), F.count_distinct("user")).collect()[0]
        _refuse_change(expected, n_lines)
        return int(users)

    def split_by_fraction(self, fraction: float) -> tuple[SparkGroup, SparkGroup]:
        cut = f"{math.ceil(fraction * 16**OPTIN_DIGITS):0{OPTIN_DIGITS}x}"
        opted_in = F.substring(F.md5(joined("opt-in", F.col("person"))), 1, OPTIN_DIGITS) < cut
        return self._group(opted_in), self._group(~opted_in)

    def split_by_column(self) -> tuple[SparkGroup, SparkGroup]:
        return self._group(F.col("optin")), self._group(~F.col("optin"))

    def _group(self, condition: Column) -> SparkGroup:
        if self._drawn is None:
            raise RunError("the log is closed")
        return SparkGroup(
            self._runner,
            self._drawn.where(condition).drop("optin"),
            has_urls=self.has_urls,
            draws=self._drawing.draws,
            picks=self._drawing.picks,
        )

    def statistics(self, reading: Reading) -> LogStatistics:
        malformed = reading.in_fields.total() + sum(kind.count for kind in reading.held_back.values())
        with our_words():
            distinct = distinct_counts(self._kept_events())
        return LogStatistics(reading.bytes, reading.lines, reading.users, *distinct, malformed)

    def activity(self, rules: ActivityRules) -> SparkActivity:
        if self._drawing.draws:
            raise InvalidParameter("draws", "expected a log that was read with draws=0")
        return SparkActivity(self._runner, self._kept_events(), self._drawing.key, rules)

    def _kept_events(self) -> DataFrame:
        """Lines with records in normal form; their texts are kept on the executors as they stand in the log."""
        if self._lines is None:
            raise InvalidParameter("keep_lines", "expected a log that was read with keep_lines=True")
        if self._events is None:
            with our_words():
                raw = self._runner.keep(raw_events(self._lines, suggestions=self._has_suggestions))
                self._events = normal_records(self._runner, raw, host_only=self._drawing.host_only)
        return self._events

    def _find_damaged(self) -> None:
        """After a failure: a file that is cut off or damaged says so itself, by name."""
        for files in self._sources:
            for path in files.raw.values() if not isinstance(files.layout, Columns) else ():
                if compression_of(path) is not None:
                    with open_text_bytes(path) as (source, _):
                        while source.read(1 << 20):
                            pass


def _refuse_change(counted: int, found: int) -> None:
    if counted != found:
        raise RunError(f"{counted} usable lines were counted and {found} read again: did the log change?")
