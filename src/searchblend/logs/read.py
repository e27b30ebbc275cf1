"""A search log: files in, people in two groups out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from searchblend.blender.groups import UserGroup
from searchblend.clickgraph.release.click_log import ClickLog
from searchblend.core.attributes import Attribute
from searchblend.core.errors import InputError, InvalidParameter, UsageError
from searchblend.core.silent import SILENT
from searchblend.logs.activity import ActivityRules
from searchblend.logs.duckdb.engine import DuckDBEngine
from searchblend.logs.engine import LogEngine, Reading
from searchblend.logs.formats.files import LogInput, first_lines, other_than_text, size_of
from searchblend.logs.formats.judge import locate
from searchblend.logs.formats.layout import PERSON, UTF_8, ColumnMap, Columns, JsonLines, Layout, ServerLog, Source
from searchblend.logs.formats.remote import LogFile
from searchblend.logs.formats.sources import decided_of, find_sources, is_ubi, refuse_unlike
from searchblend.logs.options import DEFAULT_MEMORY, ReadOptions
from searchblend.logs.summary import EXPECTED, InputSummary, LogStatistics, Malformed
from searchblend.logs.tables.find import inputs_of

OnProgress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes there are."""

OnNotice = Callable[[str], None]
"""Called with what an operator should know of the engine: its version, what it runs on."""

ONE_DOCUMENT: Final = (
    "one JSON document: JSON lines have an object for each search, with its user, in a line; a table that counts terms "
    "has no users, so there is no one to whom anything could be promised"
)
_ONE_DOCUMENT: Final = re.compile(rb"\s*(?:\[|\{\s*\n)")
"""how such a file begins"""
ENGINES: Final = ("duckdb", "spark")
_CHECKING_SHARE: Final = 0.05
"""How much of the reading is done when the gate has checked all bytes."""


class SearchLog:
    """One random record of each user of a log, and what the log held. Close it, or use it in a ``with``."""

    def __init__(
        self, engine: LogEngine, options: ReadOptions, reading: Reading, summary: InputSummary, layout: Layout
    ) -> None:
        """
        Args:
            engine: holds the records
            options: how the log was read
            reading: what the one pass over it counted
            summary: the same with the places of malformed lines
            layout: of the first file
        """
        self._engine, self._options, self._reading = engine, options, reading
        self.summary: Final = summary
        """What was read. NOT FOR RELEASE."""
        self.decided: Final[dict[str, str | bool]] = {
            **decided_of(layout),
            "host_only": options.host_only,
            "quoted_line_feeds": options.quoted_line_feeds,
            "encoding": options.encoding,
            **unit_of(options),
            **snapshot_of(layout),
        }
        """How the log was read. It rests on names, headers and options alone, and may be published."""

    @property
    def has_urls(self) -> bool:
        return self._engine.has_urls

    def split(self, *, optin_fraction: float | None = None) -> tuple[UserGroup, UserGroup]:
        """Opt-in users and clients: a fraction of the users by a keyed hash, or by the opt-in column of the log.

        By column, a user has opted in if every usable line of theirs says so.
        """
        if (optin_fraction is None) is not (self._options.optin_column is not None):
            raise InvalidParameter("opt-in", "expected either a fraction or a column of the log, not both or none")
        if not self._options.draws:
            raise InvalidParameter("draws", "expected a log that was read with at least one draw per user")
        if optin_fraction is None:
            return self._engine.split_by_column()
        if not 0 < optin_fraction < 1:
            raise InvalidParameter("opt-in", f"expected a share in (0, 1), found {optin_fraction!r}")
        return self._engine.split_by_fraction(optin_fraction)

    def statistics(self) -> LogStatistics:
        """The columns of [BLJ] Fig. 8. NOT PRIVATE. The log must have been read with ``keep_lines``."""
        return self._engine.statistics(self._reading)

    def activity(self, rules: ActivityRules | None = None) -> ClickLog:
        """Searches and clicks, with each user's activity limited. The log must have been read with ``draws=0``."""
        return self._engine.activity(rules or ActivityRules())

    def close(self) -> None:
        """Forget everything, and remove the temporary files."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SearchLog({self.summary.format})"


def read_log(
    paths: LogInput,
    *,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    query_parameter: str | None = None,
    optin_column: str | None = None,
    unit: str = PERSON,
    urls: bool = True,
    quoted_line_feeds: bool = False,
    encoding: str = UTF_8,
    host_only: bool = False,
    strict: bool = False,
    draws: int = 1,
    rows: bool = True,
    keep_lines: bool = False,
    searches_only: bool = False,
    timed: bool = False,
    attributes: Sequence[Attribute] = (),
    key: bytes | None = None,
    memory: str | None = DEFAULT_MEMORY,
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    engine: str = "duckdb",
    master: str | None = None,
    on_progress: OnProgress | None = None,
    on_notice: OnNotice = SILENT,
) -> SearchLog:
    """Reads a log of files, or a table in memory, once and draws one random record per user, or none with ``draws=0``.

    The arguments are the fields of ``ReadOptions``, which says what each means. ``on_progress`` is called with the
    bytes read so far and those there are, ``on_notice`` with what the engine runs on.

    Example:
        ``sb.read_log("searches.tsv").split(optin_fraction=0.05)``
    """
    options = ReadOptions(
        paths,
        format=format,
        columns=columns or {},
        delimiter=delimiter,
        query_parameter=query_parameter,
        optin_column=optin_column,
        unit=unit,
        urls=urls,
        quoted_line_feeds=quoted_line_feeds,
        encoding=encoding,
        host_only=host_only,
        strict=strict,
        draws=draws,
        rows=rows,
        keep_lines=keep_lines,
        searches_only=searches_only,
        timed=timed,
        attributes=attributes,
        key=key,
        memory=memory,
        threads=threads,
        temp_directory=temp_directory,
        engine=engine,
        master=master,
    )
    return open_log(options, on_progress=on_progress, on_notice=on_notice)


def open_log(
    options: ReadOptions,
    *,
    on_progress: OnProgress | None = None,
    on_notice: OnNotice = SILENT,
) -> SearchLog:
    """Reads a log with these options."""
    column_map = options.column_map
    files, tables = inputs_of(options)
    _refuse_on_cluster(files, options)
    progress = _Progress(files, on_progress)
    engine = _open_engine(options, on_notice)
    try:
        sources = _sources(files, tables, options, column_map, engine)
        reading = engine.read(sources, progress.add_bytes, progress.set_fraction)
        summary = summarize(sources, reading, host_only=options.host_only)
        refuse_useless(sources, summary, strict=options.strict)
        progress.finish()
        return SearchLog(engine, options, reading, summary, sources[0][0])
    except BaseException:
        engine.close()
        raise


def _sources(
    files: list[LogFile], tables: list[object], options: ReadOptions, columns: ColumnMap, engine: LogEngine
) -> list[Source]:
    if files:
        return find_sources(files, options, columns, engine.column_types)
    sources = [engine.take(table, columns) for table in tables]
    for layout, [file] in sources:
        refuse_unlike(sources[0][0], layout, file)
    return sources


def unit_of(options: ReadOptions) -> dict[str, str]:
    """What is called a user, for a statement; nothing where it is a person."""
    return {} if options.unit == PERSON else {"unit": options.unit}


def snapshot_of(layout: Layout) -> dict[str, str]:
    """Which version of a table was read, for a statement; nothing of what has no versions."""
    snapshot = layout.snapshot if isinstance(layout, Columns) else None
    return {} if snapshot is None else {"snapshot": snapshot}


def _refuse_on_cluster(files: Sequence[LogFile], options: ReadOptions) -> None:
    remote = next((file for file in files if not isinstance(file, Path)), None)
    if options.engine == "spark" and remote is not None:
        raise UsageError(f"{remote}: only with --engine duckdb; executors read files of a file system that they share")
    if options.engine == "spark" and files and is_ubi(files[0], options.format):
        raise UsageError(f"{files[0]}: UBI is read only with --engine duckdb")


def _open_engine(options: ReadOptions, on_notice: OnNotice) -> LogEngine:
    """The engine of a name. Memory and threads are DuckDB's: a cluster has its own settings."""
    if options.engine not in ENGINES:
        raise InvalidParameter("engine", f"expected one of {', '.join(ENGINES)}")
    if options.engine == "spark":
        from searchblend.logs.spark.session import load_pyspark

        load_pyspark()
        from searchblend.logs.spark.engine import SparkEngine

        return SparkEngine(options, on_notice)
    if options.master is not None:
        raise InvalidParameter("master", "only with the engine spark")
    return DuckDBEngine(options)


def summarize(sources: Sequence[Source], reading: Reading, *, host_only: bool) -> InputSummary:
    """What was read, with the places of malformed lines."""
    located = locate(sources, reading.in_fields, host_only=host_only) if reading.in_fields else {}
    return InputSummary(
        format=sources[0][0].format,
        files=sum(len(paths) for _, paths in sources),
        bytes=reading.bytes,
        lines=reading.lines,
        users=reading.users,
        used=reading.used,
        without_url=reading.without_url,
        malformed={**reading.held_back, **located},
    )


def refuse_useless(sources: Sequence[Source], summary: InputSummary, *, strict: bool) -> None:
    """Refuse a log without a usable line and, for a strict caller, one with a malformed line."""
    layout, path = sources[0][0], sources[0][1][0]
    if not summary.lines:
        raise InputError(path, "the log holds no line")
    if strict and summary.malformed:
        _refuse_first([path for _, paths in sources for path in paths], summary.malformed)
    if not summary.users:
        reasons = [f"{kind.count} {reason}" for reason, kind in summary.malformed.items()]
        if isinstance(layout, ServerLog):
            reasons += ["no search was clicked: is the query in the parameter that --query-parameter says?"]
        elif summary.without_url:
            reasons += [f"{summary.without_url} without URL"]
        in_utf8 = getattr(layout, "encoding", None) == UTF_8  # the bytes matter only now that no line can be used
        if in_utf8 and (other := other_than_text(first_lines(path))) is not None:
            reasons.append(f"the first file is {other}")
        if isinstance(layout, JsonLines) and _ONE_DOCUMENT.match(first_lines(path)):
            reasons.append(f"the first file is {ONE_DOCUMENT}")
        if summary.without_url == summary.lines and not isinstance(layout, ServerLog):
            reasons.append("is it a log of queries alone? then read it with --no-urls")
        raise InputError(path, f"no line of the log can be used ({', '.join(reasons)})")


def _refuse_first(files: list[LogFile], malformed: Mapping[str, Malformed]) -> None:
    order = {str(path): number for number, path in enumerate(files)}
    places = [
        (order[kind.first[0].path], kind.first[0].line, reason) for reason, kind in malformed.items() if kind.first
    ]
    file, line, reason = min(places, default=(0, None, next(iter(malformed))))
    field, expected = EXPECTED[reason]
    raise InputError(files[file], expected, line=line, field=field)


class _Progress:
    """Adds up how far the gate's check and the database's statement are."""

    def __init__(self, files: list[LogFile], on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._total = sum(size_of(file) for file in files) if on_progress is not None else 0
        self._bytes_checked = 0
        self._fraction = 0.0
        self._reported = 0

    def add_bytes(self, n: int) -> None:
        self._bytes_checked += n
        self._report()

    def set_fraction(self, fraction: float) -> None:
        self._fraction = fraction
        self._report()

    def finish(self) -> None:
        self._bytes_checked, self._fraction = self._total, 1.0
        self._report()

    def _report(self) -> None:
        checked = min(self._bytes_checked, self._total)
        done = round(_CHECKING_SHARE * checked + (1 - _CHECKING_SHARE) * self._fraction * self._total)
        if self._on_progress is not None and done > self._reported:
            self._reported = done
            self._on_progress(done, self._total)
