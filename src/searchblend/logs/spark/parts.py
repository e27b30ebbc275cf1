"""The parts of a log, and how an executor reads one: with DuckDB, by the very code that reads a log on one machine.

So there is one reader and one judge of lines, and what is proved of it (``proofs/input_reading.md``) holds on a cluster
too. Large plain files and Parquet files are cut into parts; a line belongs to the part in which it begins. Lines leave
their executor with the user as a keyed hash and their strings in normal form.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from searchblend.core.documents import decode, encode
from searchblend.core.errors import InputError, RunError
from searchblend.logs.duckdb.activity import rank_of
from searchblend.logs.duckdb.feed import Feeder
from searchblend.logs.duckdb.load import LineTable, merged, person
from searchblend.logs.duckdb.normal_forms import normal_table, query_form, suggestion_form, url_form
from searchblend.logs.duckdb.session import DatabaseError, DuckDBSession
from searchblend.logs.engine import Drawing, Reading
from searchblend.logs.formats import judge
from searchblend.logs.formats.encodings import may_be_cut
from searchblend.logs.formats.files import Span, compression_of
from searchblend.logs.formats.judge import PROBLEMS, WITHOUT_URL
from searchblend.logs.formats.layout import Columns, Layout, Sessions, Source
from searchblend.logs.summary import Malformed, Place

SCHEMA: Final = (
    "report string, person string, is_used boolean, optin boolean, digest string, moment double, unparsed_time string, "
    "rank double, query string, url string, suggestion string"
)
"""Of the rows that executors yield: lines, and one row with a report for each part."""
LEAST_BYTES: Final = 1 << 22
MOST_BYTES: Final = 1 << 27
"""How large a part of a file is."""
_MEMORY: Final = "1GB"
"""What one task's database may use before it goes on in its temp directory."""
_BATCH: Final = 1 << 16
_N_COLUMNS: Final = SCHEMA.count(",") + 1

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Part:
    """Some lines of one file: all, those that begin in a span of bytes, or rows of a Parquet file."""

    number: int
    """its place in the log"""
    layout: Layout
    path: Path
    """as the caller wrote it"""
    location: Path
    """the same on every machine"""
    span: Span


@dataclass(frozen=True)
class ReadTask:
    """What an executor must know to read a part."""

    drawing: Drawing
    keep_lines: bool


@dataclass(frozen=True)
class Unreadable:
    """A file that could not be read."""

    path: str
    problem: str
    line: int | None


@dataclass(frozen=True)
class PartReport:
    """What an executor counted in a part, or that it cannot be read. It travels as JSON among the lines."""

    part: int = -1
    """its number; −1 where lines of several parts were read together"""
    lines_read: int = 0
    reading: Reading = field(default_factory=Reading)
    """the places in it are counted from the part's beginning"""
    unreadable: Unreadable | None = None

    @property
    def row(self) -> Row:
        return (json.dumps(encode(self)), *[None] * (_N_COLUMNS - 1))


def parts_of(sources: Sequence[Source], bytes_each: int) -> list[Part]:
    """The files in parts of about this many bytes, in the order of the log. What can only be read from its beginning
    (compressed files, UTF-16, and CSV where a quote may reach over lines) is one part."""
    parts: list[Part] = []
    for layout, path in [(layout, path) for layout, paths in sources for path in paths]:
        assert isinstance(path, Path), "stores are refused before"
        for span in _spans(layout, path, max(LEAST_BYTES, min(MOST_BYTES, bytes_each))):
            parts.append(Part(len(parts), layout, path, path.absolute(), span))
    return parts


def _spans(layout: Layout, path: Path, bytes_each: int) -> Iterator[Span]:
    size = path.stat().st_size
    n = -(-size // bytes_each)
    whole = not isinstance(layout, Columns) and (
        compression_of(path) is not None or layout.rules.quoted_line_feeds or not may_be_cut(layout.encoding)
    )
    if n <= 1 or whole:
        yield Span()
        return
    if isinstance(layout, Columns):
        with closing(DuckDBSession(None, 1, None)) as session:
            link = Feeder(session.directory).link(path)
            size = int(session.value("SELECT num_rows FROM parquet_file_metadata(?)", [str(link)]))
    cuts = [size * i // n for i in range(n + 1)]
    for start, end in pairwise(cuts):
        yield Span(start, end)


def read_parts(task: ReadTask, parts: Iterable[Part]) -> Iterator[Row]:
    """On an executor: the rows of some parts. A file that cannot be read is named in its report, and not by an
    exception: what an executor raises is written into Spark's logs, with all that caused it."""
    for part in parts:
        with _without_causes():
            try:
                with closing(DuckDBSession(_MEMORY, 1, None)) as session:
                    yield from _read_part(session, task, part)
            except InputError as error:
                where = f"{error.path}" if error.line is None else f"{error.path}:{error.line}"
                problem = str(error).removeprefix(f"{where}: ")
                yield PartReport(unreadable=Unreadable(str(part.path), problem, error.line)).row
            except DatabaseError:
                if not isinstance(part.layout, Columns):
                    raise
                yield PartReport(unreadable=Unreadable(str(part.path), "the Parquet file is damaged", None)).row


@contextmanager
def _without_causes() -> Iterator[None]:
    """Raises our own words alone: what caused them may quote the log. Forgets the strings that were judged."""
    try:
        yield
    except RunError as error:
        raise RunError(str(error)) from None
    except Exception as error:
        raise RunError(f"a part of the log could not be read ({type(error).__name__})") from None
    finally:
        judge.forget()


def _read_part(session: DuckDBSession, task: ReadTask, part: Part) -> Iterator[Row]:
    table = LineTable(session, task.drawing, keep_lines=task.keep_lines, searches_only=False)
    reading, lines = table.read_span(part.layout, part.location, part.span)
    yield PartReport(part.number, lines, reading).row
    if isinstance(part.layout, Sessions):
        yield from session.stream("SELECT kind, session, moment, page, id FROM yandex_rows")
    else:
        yield from _lines(session, task, optin=table.has_optin, suggestions=part.layout.has_suggestions)


def keyed_by_session(row: Row) -> tuple[int, Row]:
    """A report, or a line of a session that is not valid, may go anywhere."""
    return (row[1] if len(row) < _N_COLUMNS and row[1] is not None else 0), row


def session_of(key: int) -> int:
    return key


def read_sessions(task: ReadTask, rows: Iterable[tuple[int, Row]]) -> Iterator[Row]:
    """On an executor: the lines of whole sessions, and the reports of the parts that they came from."""
    with _without_causes(), closing(DuckDBSession(_MEMORY, 1, None)) as session:
        table = LineTable(session, task.drawing, keep_lines=task.keep_lines, searches_only=False)
        session.execute(
            "CREATE TEMP TABLE yandex_rows (kind VARCHAR, session UBIGINT, moment UBIGINT, page UBIGINT, id UBIGINT)"
        )
        batch: list[Row] = []
        for _, row in rows:
            if len(row) == _N_COLUMNS:
                yield row
                continue
            batch.append(row)
            if len(batch) == _BATCH:
                _insert(session, batch)
                batch = []
        _insert(session, batch)
        used, without_url, in_fields = table.judge_session_rows()
        yield PartReport(reading=Reading(used=used, without_url=without_url, in_fields=in_fields)).row
        yield from _lines(session, task, optin=False, suggestions=False)


def _insert(session: DuckDBSession, batch: Sequence[Row]) -> None:
    columns = ", ".join(f"unnest(?::{kind}[])" for kind in ("VARCHAR", *("UBIGINT",) * 4))
    if batch:
        session.execute(
            f"INSERT INTO yandex_rows SELECT {columns}", [list(column) for column in zip(*batch, strict=True)]
        )


def _lines(session: DuckDBSession, task: ReadTask, *, optin: bool, suggestions: bool) -> Iterator[Row]:
    """The rows of the table ``lines``, in the order of the schema."""
    problems = f"(0, {PROBLEMS.index(WITHOUT_URL)})" if task.keep_lines else "(0)"
    columns = [f"{person(task.drawing.key)} AS person", "problem = 0 AS is_used"]
    columns.append(f"{'optin' if optin else 'NULL::BOOLEAN'} AS optin")
    if task.drawing.draws:
        columns += [
            f"{session.words.digest} AS digest",
            "NULL::DOUBLE AS moment",
            "NULL AS unparsed_time",
            "NULL::DOUBLE AS rank",
        ]
    else:
        columns += ["NULL AS digest", "moment", "unparsed_time", f"{rank_of('rank')} AS rank"]
    columns += ["query", "nullif(url, '') AS url", "suggestion" if suggestions else "NULL::VARCHAR AS suggestion"]
    kept = f"(SELECT {', '.join(columns)} FROM lines WHERE problem IN {problems}) AS kept"
    names = ["person", "is_used", "optin", "digest", "moment", "unparsed_time", "rank"]
    forms = [query_form(), url_form(host_only=task.drawing.host_only), suggestion_form()]
    normal_table(session, "normal_lines", kept, names, forms)
    yield from session.stream("SELECT NULL, * FROM normal_lines")


def reading_of(parts: Sequence[Part], reports: Iterable[str]) -> Reading:
    """What all parts held together. A part of text counts its lines from its own beginning."""
    decoded = [decode(PartReport, json.loads(report)) for report in reports]
    for unreadable in (report.unreadable for report in decoded if report.unreadable):
        raise InputError(unreadable.path, unreadable.problem, line=unreadable.line)
    by_part = {report.part: report for report in decoded if report.part >= 0}
    held_back: list[dict[str, Malformed]] = []
    lines_before: Counter[Path] = Counter()
    for part in parts:
        report, before = by_part[part.number], lines_before[part.path]
        held_back.append(
            {
                reason: Malformed(kind.count, [Place(str(part.path), before + place.line) for place in kind.first])
                for reason, kind in report.reading.held_back.items()
            }
        )
        lines_before[part.path] += report.lines_read
    of_parquet = {part.path for part in parts if isinstance(part.layout, Columns)}
    readings = [report.reading for report in decoded]
    return Reading(
        bytes=sum(path.stat().st_size for path in of_parquet) or sum(one.bytes for one in readings),
        lines=sum(one.lines for one in readings),
        used=sum(one.used for one in readings),
        without_url=sum(one.without_url for one in readings),
        held_back=merged(held_back),
        in_fields=sum((Counter(one.in_fields) for one in readings), Counter[str]()),
    )
