"""Reading a search log: files in, people out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from searchblend.errors import InputError, InvalidColumns, InvalidParameter
from searchblend.logs.delimited import delimited_layout
from searchblend.logs.duckdb_engine import Drawing, DuckDBEngine, Reading
from searchblend.logs.duckdb_session import DuckDBSession
from searchblend.logs.duckdb_sql import WITHOUT_URL
from searchblend.logs.files import LogPaths, expand, first_lines
from searchblend.logs.layout import ROLES, Source
from searchblend.logs.locate import locate
from searchblend.logs.search_log import SearchLog
from searchblend.logs.summary import EXPECTED, InputSummary, Malformed
from searchblend.randomness import SystemRandomness

OnProgress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes there are."""

FORMATS: Final = ("auto", "tsv", "csv")


def read_log(
    paths: LogPaths,
    *,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    optin_column: str | None = None,
    host_only: bool = False,
    strict: bool = False,
    draws: int = 1,
    picks: int = 1,
    key: bytes | None = None,
    memory: str | None = None,
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    on_progress: OnProgress | None = None,
) -> SearchLog:
    """Reads a log once and draws one random record per user.

    ``paths`` may be files, globs and directories, plain, .gz or .zst. ``columns`` maps our names (user, query, url,
    time, rank) to the file's. ``draws`` is how many records are drawn of each user with replacement (m_C), ``picks``
    how many without (m_O); the first of both is the same. ``key`` decides them all: 16 fresh bytes of the operating
    system unless given.
    ``strict`` refuses the log at its first malformed line instead of counting it.
    """
    _check_options(format, columns or {}, draws=draws, picks=picks)
    files = expand(paths)
    sources = _sources(files, format, columns or {}, optin_column)
    _refuse_mixed(sources)
    session = DuckDBSession(memory, threads, temp_directory)
    try:
        engine = DuckDBEngine(
            session, Drawing((SystemRandomness().take(16) if key is None else key).hex(), draws, picks, host_only)
        )
        progress = _Progress(files, on_progress)
        reading = engine.read(sources, progress.add_bytes, progress.set_fraction)
        summary = _summary(sources, reading, host_only=host_only, strict=strict)
        progress.finish()
        return SearchLog(engine, session, summary, by_column=optin_column is not None)
    except BaseException:
        session.close()
        raise


def _check_options(format_name: str, columns: Mapping[str, str], **numbers: int) -> None:
    if format_name not in FORMATS:
        raise InvalidParameter("format", f"expected one of {', '.join(FORMATS)}")
    unknown = sorted(set(columns) - set(ROLES[:-1]))
    if unknown:
        raise InvalidColumns(f"columns: expected names among {', '.join(ROLES[:-1])}, found {', '.join(unknown)}")
    for name, number in numbers.items():
        if number < 1:
            raise InvalidParameter(name, f"expected a whole number of at least 1, found {number!r}")


def _sources(files: list[Path], format_name: str, columns: Mapping[str, str], optin_column: str | None) -> list[Source]:
    """The files, those with the same layout together."""
    sources: list[Source] = []
    for file in files:
        known = None if format_name == "auto" else format_name
        layout = delimited_layout(file, first_lines(file), known, columns, optin_column)
        same = next((paths for other, paths in sources if other == layout), None)
        if same is None:
            sources.append((layout, [file]))
        else:
            same.append(file)
    return sources


def _refuse_mixed(sources: list[Source]) -> None:
    with_urls = {layout.has_urls for layout, _ in sources}
    if len(with_urls) > 1:
        without = next(files[0] for layout, files in sources if not layout.has_urls)
        raise InputError(without, "has no URL column, other files of this log have one")


def _summary(sources: list[Source], reading: Reading, *, host_only: bool, strict: bool) -> InputSummary:
    malformed: dict[str, Malformed] = {}
    for passed in reading.passed:
        for reason, kind in passed.held_back.items():
            known = malformed.setdefault(reason, Malformed())
            known.first = (known.first + kind.first)[:5]
            known.count += kind.count
    in_fields = {problem: n for problem, n in reading.by_problem.items() if problem not in ("", WITHOUT_URL)}
    if in_fields:
        malformed |= locate(sources, in_fields, host_only=host_only)
    if strict and malformed:
        _refuse_first(malformed)
    used = reading.by_problem[""]
    summary = InputSummary(
        format=", ".join(sorted({layout.format for layout, _ in sources})),
        files=len(reading.passed),
        bytes=sum(passed.bytes for passed in reading.passed),
        lines=reading.by_problem.total() + sum(m.count for p in reading.passed for m in p.held_back.values()),
        users=reading.users,
        used=used,
        without_url=reading.by_problem[WITHOUT_URL],
        malformed=malformed,
    )
    if not used:
        _refuse_useless(sources[0][1][0], summary)
    return summary


def _refuse_first(malformed: Mapping[str, Malformed]) -> None:
    place, reason = min((kind.first[0], reason) for reason, kind in malformed.items())
    field, expected = EXPECTED[reason]
    raise InputError(place.path, expected, line=place.line, field=field)


def _refuse_useless(path: Path, summary: InputSummary) -> None:
    if not summary.lines:
        raise InputError(path, "there is nothing after the header", line=1)
    found = [f"{kind.count} {reason}" for reason, kind in summary.malformed.items()]
    found += [f"{summary.without_url} without URL"] if summary.without_url else []
    raise InputError(path, f"no line of the log can be used ({', '.join(found)})")


class _Progress:
    """Adds the bytes that the gate has seen to the part of the statement that is done."""

    def __init__(self, files: list[Path], on_progress: OnProgress | None) -> None:
        self._tell = on_progress
        self._total = sum(file.stat().st_size for file in files)
        self._bytes = 0
        self._told = 0

    def add_bytes(self, n: int) -> None:
        self._bytes += n

    def set_fraction(self, fraction: float) -> None:
        self._report(round(max(fraction * self._total, min(self._bytes, self._total) * 0.05)))

    def finish(self) -> None:
        self._report(self._total)

    def _report(self, done: int) -> None:
        if self._tell is not None and done > self._told:
            self._told = done
            self._tell(done, self._total)
