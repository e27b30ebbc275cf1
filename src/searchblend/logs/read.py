"""Reading a search log: files in, people out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from searchblend.core.errors import InputError, InvalidParameter
from searchblend.core.randomness import SystemRandomness
from searchblend.logs.duckdb.draws import Drawing
from searchblend.logs.engine import Reading
from searchblend.logs.engines import OnNotice, open_engine
from searchblend.logs.formats.column_map import ColumnMap
from searchblend.logs.formats.files import LogPaths, expand, first_lines, other_than_text
from searchblend.logs.formats.layout import Source
from searchblend.logs.formats.locate import locate
from searchblend.logs.formats.sources import find_sources
from searchblend.logs.search_log import SearchLog
from searchblend.logs.summary import EXPECTED, InputSummary, Malformed

OnProgress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes there are."""

DEFAULT_MEMORY: Final = "2GB"
"""What the database may use before it goes on in the temp directory."""
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

    ``paths`` may be files, globs and directories, plain, .gz or .zst. ``format`` is told from names and headers; JSON
    lines under other names, Yandex and Excite must be named. ``columns`` maps our names (user, query, url, time,
    rank, suggestion) to the file's; ``urls=False`` reads queries alone. A record of CSV is one line, and one whose
    quotes do not balance is held back alone. With ``quoted_line_feeds`` a quoted field may go on in the next lines;
    then the privacy promise rests on every line's quotes being well formed: one person's line can swallow those of
    others. ``draws`` is how many records are drawn of each user with replacement (m_C), ``picks`` how many without
    (m_O); the first of both is the same. ``key`` decides them all: 16 fresh bytes of the operating system unless
    given. ``keep_lines`` keeps every usable line until the log is closed, for ``statistics``; else only the drawn
    records are kept. ``draws=0`` keeps every line too, for ``activity``, and draws none; with ``searches_only`` it
    keeps no more than each user's distinct queries, which is faster, and counts nothing else. ``strict`` refuses the
    log at its first malformed line instead of counting it. ``memory`` bounds the database (None: 80 % of the
    machine's), the rest goes to ``temp_directory``. ``engine`` is duckdb, or spark on the cluster of ``master``; both
    draw the same records by the same key.
    """
    for name, number, least in (("draws", draws, 0), ("picks", picks, 1)):
        if number < least:
            raise InvalidParameter(name, f"expected a whole number of at least {least}, found {number!r}")
    if searches_only and (draws or keep_lines):
        raise InvalidParameter("searches_only", "expected with draws=0, and without keep_lines")
    column_map = ColumnMap(columns or {}, optin_column, urls)
    files = expand(paths)
    progress = _Progress(files, on_progress)
    drawing = Drawing((SystemRandomness().take(16) if key is None else key).hex(), draws, picks, host_only)
    opened = open_engine(
        engine,
        drawing,
        memory=memory,
        threads=threads,
        temp_directory=temp_directory,
        master=master,
        on_notice=on_notice,
    )
    try:
        sources = find_sources(files, format, column_map, opened.column_types, quoted_line_feeds=quoted_line_feeds)
        reading = opened.read(
            sources,
            progress.add_bytes,
            progress.set_fraction,
            keep_lines=keep_lines or not draws,
            searches_only=searches_only,
        )
        summary = _summary(sources, reading, host_only=host_only)
        _refuse_useless(sources, summary, strict=strict)
        progress.finish()
        return SearchLog(
            opened,
            reading,
            summary,
            by_column=optin_column is not None,
            draws=draws,
            decided=_decided(sources, host_only=host_only, quoted_line_feeds=quoted_line_feeds),
        )
    except BaseException:
        opened.close()
        raise


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


def _decided(sources: list[Source], *, host_only: bool, quoted_line_feeds: bool) -> dict[str, Any]:
    layout = sources[0][0]
    return {
        "format": layout.format,
        "urls": layout.has_urls,
        "host_only": host_only,
        "quoted_line_feeds": quoted_line_feeds,
    }


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
