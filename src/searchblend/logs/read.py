"""Reading a search log: files in, people out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError, InvalidParameter
from searchblend.logs.duckdb.engine import DuckDBEngine
from searchblend.logs.engine import LogEngine, Reading
from searchblend.logs.formats.column_map import ColumnMap
from searchblend.logs.formats.files import LogPaths, expand, first_lines, other_than_text
from searchblend.logs.formats.layout import Source
from searchblend.logs.formats.locate import locate
from searchblend.logs.formats.sources import find_sources
from searchblend.logs.options import DEFAULT_MEMORY, ReadOptions
from searchblend.logs.search_log import SearchLog
from searchblend.logs.spark.session import load_pyspark
from searchblend.logs.summary import EXPECTED, InputSummary, Malformed

OnProgress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes there are."""

OnNotice = Callable[[str], None]
"""Called with what an operator should know of the engine: its version, what it runs on."""

ENGINES: Final = ("duckdb", "spark")
_LOOKING_SHARE: Final = 0.05
"""How much of the reading is done when the gate has seen all bytes."""


def read_log(
    paths: LogPaths,
    *,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    optin_column: str | None = None,
    urls: bool = True,
    quoted_line_feeds: bool = False,
    host_only: bool = False,
    strict: bool = False,
    draws: int = 1,
    picks: int = 1,
    rows: bool = False,
    keep_lines: bool = False,
    searches_only: bool = False,
    key: bytes | None = None,
    memory: str | None = DEFAULT_MEMORY,
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    engine: str = "duckdb",
    master: str | None = None,
    on_progress: OnProgress | None = None,
    on_notice: OnNotice = lambda text: None,
) -> SearchLog:
    """Reads a log once and draws one random record per user, or none with ``draws=0``.

    The arguments are the fields of ``ReadOptions``, which says what each means. ``on_progress`` is called with the
    bytes read so far and those there are, ``on_notice`` with what the engine runs on.
    """
    options = ReadOptions(
        paths,
        format=format,
        columns=columns or {},
        optin_column=optin_column,
        urls=urls,
        quoted_line_feeds=quoted_line_feeds,
        host_only=host_only,
        strict=strict,
        draws=draws,
        picks=picks,
        rows=rows,
        keep_lines=keep_lines,
        searches_only=searches_only,
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
    on_notice: OnNotice = lambda text: None,
) -> SearchLog:
    """Reads a log as the options say."""
    column_map = ColumnMap(options.columns, options.optin_column, options.urls)
    files = expand(options.paths)
    progress = _Progress(files, on_progress)
    engine = _open_engine(options, on_notice)
    try:
        sources = find_sources(
            files, options.format, column_map, engine.column_types, quoted_line_feeds=options.quoted_line_feeds
        )
        reading = engine.read(sources, progress.add_bytes, progress.set_fraction)
        summary = _summary(sources, reading, host_only=options.host_only)
        _refuse_useless(sources, summary, strict=options.strict)
        progress.finish()
        return SearchLog(engine, options, reading, summary, sources[0][0])
    except BaseException:
        engine.close()
        raise


def _open_engine(options: ReadOptions, on_notice: OnNotice) -> LogEngine:
    """The engine of a name. Memory and threads are DuckDB's: a cluster has its own settings."""
    if options.engine not in ENGINES:
        raise InvalidParameter("engine", f"expected one of {', '.join(ENGINES)}")
    if options.engine == "spark":
        load_pyspark()
        from searchblend.logs.spark.engine import SparkEngine

        return SparkEngine(options, on_notice)
    if options.master is not None:
        raise InvalidParameter("master", "only with the engine spark")
    return DuckDBEngine(options)


def _summary(sources: list[Source], reading: Reading, *, host_only: bool) -> InputSummary:
    found = locate(sources, reading.in_fields, host_only=host_only) if reading.in_fields else {}
    return InputSummary(
        format=sources[0][0].format,
        files=sum(len(paths) for _, paths in sources),
        bytes=reading.bytes,
        lines=reading.lines,
        users=reading.users,
        used=reading.used,
        without_url=reading.without_url,
        malformed={**reading.held_back, **found},
    )


def _refuse_useless(sources: list[Source], summary: InputSummary, *, strict: bool) -> None:
    """No log is made of nothing; a strict caller wants no malformed line either."""
    path = sources[0][1][0]
    if not summary.lines:
        raise InputError(path, "the log holds no line")
    if strict and summary.malformed:
        _refuse_first([path for _, paths in sources for path in paths], summary.malformed)
    if not summary.users:
        found = [f"{kind.count} {reason}" for reason, kind in summary.malformed.items()]
        found += [f"{summary.without_url} without URL"] if summary.without_url else []
        if (other := other_than_text(first_lines(path))) is not None:  # said only now that all is lost
            found.append(f"the first file is {other}")
        if summary.without_url == summary.lines:
            found.append("is it a log of queries alone? then read it with --no-urls")
        raise InputError(path, f"no line of the log can be used ({', '.join(found)})")


def _refuse_first(files: list[Path], malformed: Mapping[str, Malformed]) -> None:
    order = {str(path): number for number, path in enumerate(files)}
    places = [
        (order[kind.first[0].path], kind.first[0].line, reason) for reason, kind in malformed.items() if kind.first
    ]
    file, line, reason = min(places, default=(0, None, next(iter(malformed))))
    field, expected = EXPECTED[reason]
    raise InputError(files[file], expected, line=line, field=field)


class _Progress:
    """Adds up how far the gate's look and the database's statement are."""

    def __init__(self, files: list[Path], on_progress: OnProgress | None) -> None:
        self._tell = on_progress
        self._total = sum(file.stat().st_size for file in files if file.exists())
        self._looked_at = 0
        self._fraction = 0.0
        self._told = 0

    def add_bytes(self, n: int) -> None:
        self._looked_at += n
        self._report()

    def set_fraction(self, fraction: float) -> None:
        self._fraction = fraction
        self._report()

    def finish(self) -> None:
        self._looked_at, self._fraction = self._total, 1.0
        self._report()

    def _report(self) -> None:
        looked = min(self._looked_at, self._total)
        done = round(_LOOKING_SHARE * looked + (1 - _LOOKING_SHARE) * self._fraction * self._total)
        if self._tell is not None and done > self._told:
            self._told = done
            self._tell(done, self._total)
