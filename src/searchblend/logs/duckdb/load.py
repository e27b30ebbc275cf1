"""Files into a table of lines in DuckDB, every line with what is wrong with it: the one reader of logs.

Spark's executors use it too, each for its part of the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from searchblend.core.attributes import Attribute
from searchblend.core.errors import InputError, RunError
from searchblend.logs.duckdb.activity import (
    LogStrings,
    attribute_column,
    attribute_of,
    count_problems,
    grouped_searches,
    moment_of,
    normalize_other_queries,
)
from searchblend.logs.duckdb.feed import Feed, Feeder, Known, WrongGuess
from searchblend.logs.duckdb.given import GivenTable
from searchblend.logs.duckdb.normal_forms import ODD_BYTES
from searchblend.logs.duckdb.scan import (
    REJECTED_TABLE,
    Scan,
    column_texts,
    mended_rows,
    parquet_name,
    queries_without_click,
    scan_columns,
    scan_delimited,
    scan_json,
    scan_server_log,
    scan_yandex,
    yandex_rows,
)
from searchblend.logs.duckdb.session import DatabaseError, DuckDBSession, quoted
from searchblend.logs.duckdb.ubi import UBI_ROWS, n_lines, scan_ubi, ubi_rows
from searchblend.logs.engine import Drawing, Reading
from searchblend.logs.formats import judge
from searchblend.logs.formats.files import WHOLE, Span, size_of
from searchblend.logs.formats.gate import OnBytes
from searchblend.logs.formats.judge import PROBLEMS, WITHOUT_URL
from searchblend.logs.formats.layout import (
    ColumnMap,
    Columns,
    Delimited,
    JsonLines,
    Layout,
    ServerLog,
    Sessions,
    Source,
    UbiTable,
)
from searchblend.logs.formats.remote import LogFile
from searchblend.logs.formats.server_log import decoded_query
from searchblend.logs.formats.sources import columns_layout
from searchblend.logs.summary import BAD_COUNT, FIRST_PLACES, TOO_MANY_FIELDS, Malformed, Place

_COUNTED: Final = "counted_lines"
VALUE_ROWS: Final = "value_rows"
"""the table (problem, person, held), perhaps with a count n; what is missing of person and held is NULL"""
_USED: Final = f"FROM {VALUE_ROWS} WHERE problem = 0 AND person IS NOT NULL AND held IS NOT NULL"
Result = TypeVar("Result")


@dataclass(frozen=True)
class Loaded:
    """What is in the database now."""

    scanned: int
    """lines that came to be fields"""
    used: int
    without_url: int
    by_problem: Counter[str]


class LineTable:
    """The table ``lines`` of a log: its usable lines and those with a problem; or the table ``searches``.

    What is in ``lines``: problem (its number), user, query, url, perhaps optin; for draws the digest, else moment,
    unparsed_time, rank and perhaps suggestion, and the number of each attribute's value.
    """

    def __init__(
        self,
        session: DuckDBSession,
        drawing: Drawing,
        *,
        keep_lines: bool,
        searches_only: bool,
        attributes: Sequence[Attribute] = (),
    ) -> None:
        """
        Args:
            session: the database
            drawing: which records will be drawn of the lines
            keep_lines: whether lines without URL are kept; else they are only counted
            searches_only: whether ``searches`` is made instead of ``lines``, if the log has times
            attributes: of which the number of the value is kept
        """
        self._attributes = tuple(attributes)
        self._session, self._drawing, self._keep_lines = session, drawing, keep_lines
        self.searches_only = searches_only
        self.has_optin = self._has_suggestions = False
        self._given: list[GivenTable] = []
        session.add_function("query_is_usable", judge.query_is_usable)
        session.add_function("url_is_usable", judge.url_is_usable)
        session.add_function("host_is_usable", judge.host_is_usable)
        session.add_function("decoded_query", decoded_query, returns="VARCHAR")

    def take(self, given: object, columns: ColumnMap) -> Source:
        """A table of a caller, a library or a database as a source of the lines."""
        table, layout = take_table(self._session, given, columns)
        self._given.append(table)
        return layout, [table.label]

    def read(self, sources: Sequence[Source], on_bytes: OnBytes, on_fraction: Callable[[float], None]) -> Reading:
        """The one pass over the files."""
        self._has_suggestions = any(layout.has_suggestions for layout, _ in sources)
        feeds, loaded = _guessing(self._session, lambda known: self._load(sources, on_bytes, on_fraction, known))
        if self.searches_only and self._session.value("SELECT count(*) FROM searches WHERE moment IS NULL"):
            self._session.drop_all_tables()  # searches without a moment are ordered by more than was kept of them
            self.searches_only = False
            return self.read(sources, on_bytes, on_fraction)
        self.strings = self._known_strings(sources, feeds)
        reading = reading_of(self._session, sources, feeds, loaded, self._given)
        if reading.in_fields and isinstance(sources[0][0], Columns):
            parts = [
                self._rows_of_problems(layout, paths, feed)
                for (layout, paths), feed in zip(sources, feeds, strict=True)
                if isinstance(layout, Columns)
            ]
            reading = replace(reading, held_back=merged(parts), in_fields={})
        return reading

    def read_span(self, layout: Layout, path: LogFile, span: Span) -> tuple[Reading, int]:
        """A part of one file: what was counted, and how many lines of text it has. Sessions become ``yandex_rows``."""
        self._has_suggestions = layout.has_suggestions
        feeder = Feeder(self._session.directory, name=self._session.new_name("input"))
        if isinstance(layout, Columns):
            part = Feed([parquet_name(self._session, feeder, path)])
            loaded = self._load_rows([(layout, [path])], [part], self._load_lines, span)
            reading = reading_of(self._session, [(layout, [path])], [], loaded)
            if reading.in_fields:
                held_back = self._rows_of_problems(layout, [path], part, span)
                reading = replace(reading, held_back=held_back, in_fields={})
            return reading, 0
        feed, gate = feeder.feed_span(path, layout.rules, span)
        if isinstance(layout, Delimited) and span.start:
            layout = replace(layout, header=False)
        with feeder.running(self._session.interrupt):
            if isinstance(layout, Sessions):
                loaded = Loaded(self._load_session_rows(feed), 0, 0, Counter())
            else:
                loaded = self._load_lines([scan_layout(layout, feed)])
        return reading_of(self._session, [(layout, [path])], [feed], loaded), gate.lines_read

    def _known_strings(self, sources: Sequence[Source], feeds: Sequence[Feed]) -> LogStrings:
        """What the gate knows of the strings; in JSON an ASCII file may hold other ones."""
        as_they_are = all(isinstance(layout, Delimited | Sessions) and not layout.in_folders for layout, _ in sources)
        return LogStrings(
            self._drawing.key,
            self._drawing.host_only,
            ascii_only=as_they_are and all(feed.ascii_only for feed in feeds),
            no_odd_bytes=as_they_are and all(feed.no_odd_bytes for feed in feeds),
            suggestions=self._has_suggestions,
            attributes=self._attributes,
        )

    def _load(
        self,
        sources: Sequence[Source],
        on_bytes: OnBytes,
        on_fraction: Callable[[float], None],
        known: Known | None,
    ) -> tuple[list[Feed], Loaded]:
        """Fills ``lines``, or ``searches``: how the files were fed, and what was found in them."""
        feeder = Feeder(self._session.directory, on_bytes, name=self._session.new_name("input"), known=known)
        feeds = [feed_layout(self._session, feeder, layout, paths) for layout, paths in sources]
        with feeder.running(self._session.interrupt), self._session.watched(on_fraction):
            if isinstance(sources[0][0], Sessions):
                self.searches_only = False
                return feeds, self._load_sessions(feeds[0])
            if isinstance(sources[0][0], UbiTable):
                self.searches_only = False
                return feeds, self._load_ubi(sources, feeds)
            scans = [scan_layout(layout, feed) for (layout, _), feed in zip(sources, feeds, strict=True)]
            self.searches_only = (
                self.searches_only and not self._drawing.each_row and all("time" in scan.roles for scan in scans)
            )
            load = self._load_searches if self.searches_only else self._load_lines
            if self._given:
                return feeds, self._given[0].read(lambda: load(scans))
            if isinstance(sources[0][0], Columns):  # unlike text, Parquet has not passed the gate
                return feeds, self._load_rows(sources, feeds, load)
            return feeds, load(scans)

    def _load_rows(
        self,
        sources: Sequence[Source],
        feeds: Sequence[Feed],
        load: Callable[[Sequence[Scan]], Loaded],
        span: Span = WHOLE,
    ) -> Loaded:
        """Rows of Parquet. If the database gives up, strings that are not UTF-8 may be why: they are left out then."""
        parts = [
            (layout, feed) for (layout, _), feed in zip(sources, feeds, strict=True) if isinstance(layout, Columns)
        ]
        try:
            return load([scan_columns(layout, feed.names, rows=span) for layout, feed in parts])
        except DatabaseError:
            pass
        try:
            for layout, feed in parts:
                feed.mended = mended_rows(self._session, column_texts(layout), feed.names, span)
            return load([scan_columns(layout, feed.names, mended=feed.mended) for layout, feed in parts])
        except DatabaseError as error:
            raise InputError(sources[0][1][0], "this Parquet file, or another of the log, is damaged") from error

    def _load_lines(self, scans: Sequence[Scan]) -> Loaded:
        """Lines without URL are only counted, unless all lines are kept."""
        lines = " UNION ALL ".join(self._judged(scan) for scan in scans)
        table = _COUNTED if self._drawing.each_row else "lines"
        scanned = self._make_counting(table, lines)
        by_problem = self._problems_of_lines(table)
        used = by_problem.pop("", 0)
        if self._drawing.each_row:
            self._make_lines_of_rows()
        return Loaded(scanned, used, scanned - used - by_problem.total(), by_problem)

    def _make_counting(self, table: str, select: str) -> int:
        """Makes a table of what is scanned: how many rows. The database's profile does not count a caller's table."""
        scanned = self._session.execute_counting(f"CREATE TEMP TABLE {table} AS {select}")
        return sum(table.rows for table in self._given) if self._given else scanned

    def _make_lines_of_rows(self) -> None:
        """Makes ``lines``: of each record as many as are counted, each of a user of its own.

        The rows of a record are alike, so they are told apart by their number alone. Who adds or takes away one changes
        no other's name, and so no other's draw.
        """
        drawing, session = self._drawing, self._session
        kept = "problem, query, url, n" if drawing.draws else "problem, query, url, moment, unparsed_time, rank, n"
        names = kept.rpartition(",")[0]
        alike = f"SELECT {names}, sum(n)::BIGINT AS n FROM {_COUNTED} "
        alike += f"WHERE problem IN (0, {PROBLEMS.index(WITHOUT_URL)}) GROUP BY ALL"
        user = "concat(strlen(query), chr(31), query, url, chr(31), number)"  # no two rows, whatever is in them
        digest = f", md5_number(concat({quoted(drawing.key)}, chr(31), {user})) AS digest" if drawing.draws else ""
        session.execute(
            f"CREATE TEMP TABLE lines AS SELECT {names}, {user} AS user{digest} "
            f"FROM ({alike}) AS alike, range(n) AS each(number)"
        )
        session.discard(_COUNTED)

    def _problems_of_lines(self, table: str = "lines") -> Counter[str]:
        rows = self._session.rows(f"SELECT problem, count(*) FROM {table} GROUP BY problem")
        by_problem = Counter({PROBLEMS[number]: int(n) for number, n in rows})
        by_problem.pop(WITHOUT_URL, None)
        return by_problem

    def _load_searches(self, scans: Sequence[Scan]) -> Loaded:
        scanned = self._make_counting("searches", grouped_searches(scans, host_only=self._drawing.host_only))
        by_problem, used = count_problems(self._session)
        if not all(scan.ascii_only for scan in scans):
            normalize_other_queries(self._session)
        return Loaded(scanned, used, scanned - used - by_problem.total(), by_problem)

    def _load_sessions(self, feed: Feed) -> Loaded:
        scanned = self._load_session_rows(feed)
        used, without_url, by_problem = self.judge_session_rows()
        return Loaded(scanned, used, without_url, by_problem)

    def _load_ubi(self, sources: Sequence[Source], feeds: Sequence[Feed]) -> Loaded:
        """Both tables, and then the lines that they make together."""
        session = self._session
        tables = [
            (layout, feed) for (layout, _), feed in zip(sources, feeds, strict=True) if isinstance(layout, UbiTable)
        ]
        scanned = self._make_ubi_rows(tables, sources[0][1][0])
        session.execute(f"CREATE TEMP TABLE lines AS {self._judged(scan_ubi(has_urls=tables[0][0].has_urls))}")
        lines = n_lines(session)
        session.discard(UBI_ROWS)
        by_problem = self._problems_of_lines()
        used = by_problem.pop("", 0)
        return Loaded(scanned, used, lines - used - by_problem.total(), by_problem)

    def _make_ubi_rows(self, tables: Sequence[tuple[UbiTable, Feed]], first: LogFile) -> int:
        """Makes the table of them, as ``_load_rows`` loads others: how many there are."""

        def make(*, mended: bool) -> int:
            rows = " UNION ALL ".join(ubi_rows(self._session, layout, feed, mended=mended) for layout, feed in tables)
            return self._session.execute_counting(f"CREATE TEMP TABLE {UBI_ROWS} AS {rows}")

        try:
            return make(mended=False)
        except DatabaseError as error:
            damaged = InputError(first, "this file, or another of the log, is damaged")
            if any(layout.kinds is None for layout, _ in tables):
                raise damaged from error
        try:
            return make(mended=True)
        except DatabaseError as error:
            raise damaged from error

    def _load_session_rows(self, feed: Feed) -> int:
        return self._session.execute_counting(f"CREATE TEMP TABLE yandex_rows AS {yandex_rows(feed)}")

    def judge_session_rows(self) -> tuple[int, int, Counter[str]]:
        """``yandex_rows``, of whole sessions, into ``lines``: those used, those without URL, and others by problem."""
        rows = "yandex_rows"
        scan = scan_yandex(rows, searches=not self._drawing.draws)
        self._session.execute(f"CREATE TEMP TABLE lines AS {self._judged(scan)}")
        without_url = queries_without_click(self._session, rows)
        self._session.execute(f"DROP TABLE {rows}")
        by_problem = self._problems_of_lines()
        return by_problem.pop("", 0), without_url, by_problem

    def _judged(self, scan: Scan) -> str:
        """SELECT of the lines of a scan, each with the number of its problem and its digest."""
        columns = [f"{scan.roles['user']} AS user", f"{scan.roles['query']} AS query"]
        columns.append(f"{scan.roles.get('url', 'NULL::VARCHAR')} AS url")
        if self._drawing.each_row:
            columns.append(f"{scan.count()} AS n")
        if "optin" in scan.roles:
            self.has_optin = True
            columns.append(f"{scan.optin()} AS optin")
        if self._drawing.draws:
            columns += [] if self._drawing.each_row else [f"{scan.digest(self._drawing.key)} AS digest"]
        else:
            time = f"nullif({scan.roles.get('time', 'NULL')}::VARCHAR, '')"
            columns += [f"{moment_of(time)} AS moment", f"CASE WHEN moment IS NULL THEN {time} END AS unparsed_time"]
            columns.append(f"{scan.roles.get('rank', 'NULL::VARCHAR')} AS rank")
            if self._has_suggestions:
                columns.append(f"nullif({scan.roles.get('suggestion', 'NULL')}::VARCHAR, '') AS suggestion")
            columns += [f"{attribute_of(a, scan.roles[a.name])} AS {attribute_column(a)}" for a in self._attributes]
        return f"""
            SELECT {scan.problem(host_only=self._drawing.host_only)} AS problem, {", ".join(columns)}
            FROM ({scan.select}) WHERE {"true" if self._keep_lines else scan.is_kept()}
        """

    def _rows_of_problems(
        self, layout: Columns, paths: Sequence[LogFile], feed: Feed, span: Span = WHOLE
    ) -> dict[str, Malformed]:
        """How many rows of Parquet files have each problem, and which are the first."""
        scan = scan_columns(layout, feed.names, places=True, rows=span, mended=feed.mended)
        rows = self._session.rows(
            f"""
            SELECT problem, count(*), min({{file: file_index, row: file_row_number}}, {FIRST_PLACES})
            FROM (SELECT *, {scan.problem(host_only=self._drawing.host_only)} AS problem FROM ({scan.select}))
            WHERE problem NOT IN (0, {PROBLEMS.index(WITHOUT_URL)}) GROUP BY problem
            """
        )
        return {
            PROBLEMS[problem]: Malformed(n, [Place(str(paths[at["file"]]), at["row"] + 1) for at in first])
            for problem, n, first in rows
        }


def take_table(session: DuckDBSession, given: object, columns: ColumnMap) -> tuple[GivenTable, Columns]:
    """A table in the database's hands, and its layout."""
    table = GivenTable(session, given)
    columns = columns.of(table.label)
    layout = columns_layout(table.label, table.types, columns)
    table.keep(layout.columns.values())
    named = replace(layout, format=table.format, table=table.name, snapshot=table.snapshot)
    return table, replace(named, in_folders=columns.in_folders)


def _guessing(session: DuckDBSession, load: Callable[[Known | None], Result]) -> Result:
    """Loads files as they begin and, if one turns out to be otherwise, again with what is known then."""
    try:
        return load(None)
    except WrongGuess as wrong:
        session.drop_all_tables()
        return load(wrong.known)


def feed_layout(session: DuckDBSession, feeder: Feeder, layout: Layout, paths: Sequence[LogFile]) -> Feed:
    """How files of one layout come to the database."""
    if isinstance(layout, Columns) and layout.table is not None:
        return Feed([])
    if isinstance(layout, Columns) or (isinstance(layout, UbiTable) and layout.kinds is not None):
        return Feed([parquet_name(session, feeder, path) for path in paths])
    if isinstance(layout, Delimited):
        odd_bytes = ODD_BYTES.replace(layout.delimiter.encode(), b"")
        return feeder.feed(paths, layout.rules, odd_bytes=odd_bytes)
    return feeder.feed(paths, layout.rules)


def scan_layout(layout: Layout, feed: Feed) -> Scan:
    """The scan of files of one layout, as they were fed."""
    match layout:
        case Delimited():
            return scan_delimited(layout, feed)
        case JsonLines():
            return scan_json(layout, feed)
        case ServerLog():
            return scan_server_log(layout, feed)
        case Columns():
            return scan_columns(layout, feed.names)
        case Sessions() | UbiTable():
            raise AssertionError("these are loaded in two steps")


def reading_of(
    session: DuckDBSession,
    sources: Sequence[Source],
    feeds: Sequence[Feed],
    loaded: Loaded,
    given: Sequence[GivenTable] = (),
) -> Reading:
    """The counts, after checking that no line got lost between the gate and the database."""
    scanned, by_problem = loaded.scanned, loaded.by_problem
    checks = [check for feed in feeds for check in feed.checks]
    if checks:
        by_problem[TOO_MANY_FIELDS] = rejected = int(
            session.value(f"SELECT count(DISTINCT (scan_id, file_id, line)) FROM {REJECTED_TABLE}")
        )
        headers = sum(len(paths) for layout, paths in sources if getattr(layout, "header", False))
        expected = sum(check.lines for check in checks) - headers
        if scanned + rejected != expected:
            raise RunError(f"{expected} lines were read and {scanned + rejected} counted: please report this")
        scanned += rejected
    held_back = merged(check.held_back for check in checks)
    return Reading(
        bytes=sum(check.bytes for check in checks)
        or sum(table.bytes for table in given)
        or sum(size_of(path) for _, paths in sources for path in paths if not given),
        lines=scanned + sum(kind.count for kind in held_back.values()),
        used=loaded.used,
        without_url=loaded.without_url,
        held_back=held_back,
        in_fields=+by_problem,
    )


def person(key: str) -> str:
    """SQL: the person of a line's user (see ``engine``)."""
    return f"md5({quoted(key)} || chr(31) || 'person' || chr(31) || user)"


def merged(parts: Iterable[Mapping[str, Malformed]]) -> dict[str, Malformed]:
    """Malformed lines of several parts of a log, in their order."""
    whole: dict[str, Malformed] = {}
    for part in parts:
        for reason, kind in part.items():
            known = whole.get(reason, Malformed())
            whole[reason] = Malformed(known.count + kind.count, (known.first + kind.first)[:FIRST_PLACES])
    return whole


def load_values(
    session: DuckDBSession, sources: Sequence[Source], on_bytes: OnBytes, *, each_row: bool = False
) -> Reading:
    """Makes the table of (user, value) of text files that are not a search log, in one pass.

    Rows pass the same gate and the same scans as the lines of a log, with the value where a log has its query; but a
    value is not brought into any normal form, so that all strings but the empty one are values. With ``each_row`` every
    row is a user, or as many as it counts.
    """
    reading = _guessing(session, lambda known: _load_values(session, sources, on_bytes, known, each_row=each_row))
    users = "coalesce(sum(n), 0)" if each_row else "count(DISTINCT person)"
    return replace(reading, users=int(session.value(f"SELECT {users} {_USED}")))


def _load_values(
    session: DuckDBSession, sources: Sequence[Source], on_bytes: OnBytes, known: Known | None, *, each_row: bool
) -> Reading:
    feeder = Feeder(session.directory, on_bytes, name=session.new_name("input"), known=known)
    feeds = [feed_layout(session, feeder, layout, paths) for layout, paths in sources]
    with feeder.running(session.interrupt):
        scans = [scan_layout(layout, feed) for (layout, _), feed in zip(sources, feeds, strict=True)]
        rows = " UNION ALL ".join(_value_rows(scan, each_row=each_row) for scan in scans)
        scanned = session.execute_counting(f"CREATE TEMP TABLE {VALUE_ROWS} AS {rows}")
    counts = session.rows(f"SELECT problem, count(*) FROM {VALUE_ROWS} WHERE problem > 0 GROUP BY problem")
    by_problem = Counter({PROBLEMS[number]: int(n) for number, n in counts})
    used = int(session.value(f"SELECT count(*) {_USED}"))
    return reading_of(session, sources, feeds, Loaded(scanned, used, 0, by_problem))


def _value_rows(scan: Scan, *, each_row: bool) -> str:
    broken = [*scan.broken, (BAD_COUNT, f"NOT {scan.has_count()}")] if "count" in scan.roles else scan.broken
    whens = " ".join(f"WHEN {condition} THEN {PROBLEMS.index(problem)}" for problem, condition in broken)
    person, held = scan.roles["user"], scan.roles["query"]
    if scan.no_query is not None:
        held = f"nullif({held}, {quoted(scan.no_query)})"
    columns = f"nullif({person}, '') AS person, nullif({held}, '') AS held"
    columns += f", {scan.count()} AS n" if each_row else ""
    return f"SELECT (CASE {whens} ELSE 0 END)::UTINYINT AS problem, {columns} FROM ({scan.select})"
