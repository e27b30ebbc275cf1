"""Reading a log with DuckDB: one pass over the files into a table of lines, and the draws from it."""

# ruff: noqa: S608  every text in the SQL is a literal of ours, a name of ours, or quoted

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from searchblend.core.errors import InputError, InvalidParameter, RunError
from searchblend.logs.activity import ActivityRules
from searchblend.logs.duckdb import normal_forms
from searchblend.logs.duckdb.activity import ActivityTexts, DuckDBActivity, moment_of
from searchblend.logs.duckdb.draws import find_opted_in, make_draws
from searchblend.logs.duckdb.feed import Feed, Feeder, GuessedWrong, Known
from searchblend.logs.duckdb.group import DuckDBGroup
from searchblend.logs.duckdb.scan import (
    PROBLEMS,
    REJECTED_TABLE,
    Scan,
    parquet_types,
    scan_columns,
    scan_delimited,
    scan_json,
)
from searchblend.logs.duckdb.searches import (
    DuckDBSearches,
    count_problems,
    grouped_searches,
    normalize_hard_queries,
)
from searchblend.logs.duckdb.session import DatabaseError, DuckDBSession
from searchblend.logs.duckdb.statistics import distinct_counts
from searchblend.logs.duckdb.yandex import queries_without_click, scan_yandex, yandex_rows
from searchblend.logs.engine import OPTIN_DIGITS, Drawing, Reading
from searchblend.logs.formats.gate import OnBytes
from searchblend.logs.formats.judge import WITHOUT_URL
from searchblend.logs.formats.layout import Columns, Delimited, JsonLines, Layout, Sessions, Source
from searchblend.logs.options import ReadOptions
from searchblend.logs.summary import FIRST_PLACES, TOO_MANY_FIELDS, LogStatistics, Malformed, Place


@dataclass(frozen=True)
class _Loaded:
    """What is in the database now."""

    scanned: int
    """lines that came to be fields"""
    used: int
    without_url: int
    by_problem: Counter[str]


class DuckDBEngine:
    """A log in DuckDB. The table ``lines`` has the usable lines and those with a problem, until draws are made."""

    def __init__(self, options: ReadOptions) -> None:
        self._drawing = Drawing.of(options)
        self._session = session = DuckDBSession(options.memory, options.threads, options.temp_directory)
        self.has_urls = False
        self._by_column = False
        self._has_lines = options.keep_lines or not options.draws
        self._searches_only = options.searches_only
        self._has_suggestions = False
        session.add_function("query_is_usable", normal_forms.query_is_usable)
        session.add_function("url_is_usable", normal_forms.url_is_usable)
        session.add_function("host_is_usable", normal_forms.host_is_usable)

    def close(self) -> None:
        self._session.close()
        normal_forms.forget()

    def column_types(self, path: Path) -> Mapping[str, str]:
        return parquet_types(self._session, path)

    def read(self, sources: Sequence[Source], on_bytes: OnBytes, on_fraction: Callable[[float], None]) -> Reading:
        self.has_urls = sources[0][0].has_urls
        self._has_suggestions = any(layout.has_suggestions for layout, _ in sources)
        try:
            feeds, loaded = self._load(sources, on_bytes, on_fraction)
        except GuessedWrong as wrong:
            self._session.drop_all_tables()
            feeds, loaded = self._load(sources, on_bytes, on_fraction, wrong.known)
        if self._searches_only and self._session.value("SELECT count(*) FROM searches WHERE moment IS NULL"):
            self._session.drop_all_tables()  # searches without a moment are ordered by more than was kept of them
            self._searches_only = False
            return self.read(sources, on_bytes, on_fraction)
        self._texts = self._known_texts(sources, feeds)
        reading = self._counted(sources, feeds, loaded)
        if reading.in_fields and isinstance(sources[0][0], Columns):
            reading = replace(reading, held_back=self._rows_of_problems(sources, feeds), in_fields=Counter())
        if not self._drawing.draws:
            reading = replace(reading, users=self._count_users())
        elif reading.used:
            reading = replace(reading, users=self._make_draws())
        if not self._has_lines:  # the draws are all that is needed of them
            self._session.execute("DROP TABLE lines")
        return reading

    def _known_texts(self, sources: Sequence[Source], feeds: Sequence[Feed]) -> ActivityTexts:
        """What the gate saw of the texts; in JSON an ASCII file may hold other texts."""
        kinds = {type(layout) for layout, _ in sources}
        return ActivityTexts(
            self._drawing.key,
            self._drawing.host_only,
            ascii=kinds <= {Delimited, Sessions} and all(feed.ascii for feed in feeds),
            tame=kinds <= {Delimited, Sessions} and all(feed.tame for feed in feeds),
            suggestions=self._has_suggestions,
        )

    @staticmethod
    def _feed(feeder: Feeder, layout: Layout, paths: Sequence[Path]) -> Feed:
        if isinstance(layout, Columns):
            return Feed([feeder.link(path) for path in paths])
        if isinstance(layout, Delimited):
            awkward = normal_forms.AWKWARD.replace(layout.delimiter.encode(), b"")
            return feeder.feed(paths, layout.rules, awkward=awkward)
        return feeder.feed(paths, layout.rules)

    @staticmethod
    def _scan(layout: Layout, feed: Feed) -> Scan:
        match layout:
            case Delimited():
                return scan_delimited(layout, feed)
            case JsonLines():
                return scan_json(layout, feed)
            case Columns():
                return scan_columns(layout, feed.names)
            case Sessions():
                raise AssertionError("sessions are loaded in two steps")

    def _load(
        self,
        sources: Sequence[Source],
        on_bytes: OnBytes,
        on_fraction: Callable[[float], None],
        known: Known | None = None,
    ) -> tuple[list[Feed], _Loaded]:
        """Fills ``lines``, or ``searches``: how the files were fed, and what was found in them."""
        feeder = Feeder(self._session.directory, on_bytes, name=self._session.new_name("input"), known=known)
        feeds = [self._feed(feeder, layout, paths) for layout, paths in sources]
        with feeder.running(self._session.interrupt), self._session.watched(on_fraction):
            if isinstance(sources[0][0], Sessions):
                self._searches_only = False
                return feeds, self._load_sessions(feeds[0])
            scans = [self._scan(layout, feed) for (layout, _), feed in zip(sources, feeds, strict=True)]
            self._searches_only = self._searches_only and all("time" in scan.roles for scan in scans)
            try:
                return feeds, self._load_searches(scans) if self._searches_only else self._load_lines(scans)
            except DatabaseError as error:
                if isinstance(sources[0][0], Columns):  # unlike text, Parquet has not passed the gate
                    raise InputError(
                        sources[0][1][0], "this Parquet file, or another of the log, is damaged"
                    ) from error
                raise

    def _load_lines(self, scans: Sequence[Scan]) -> _Loaded:
        """Lines without URL are only counted, unless all lines are kept."""
        lines = " UNION ALL ".join(self._judged(scan) for scan in scans)
        scanned = self._session.execute_counting(f"CREATE TEMP TABLE lines AS {lines}")
        by_problem = self._problems_of_lines()
        used = by_problem.pop("", 0)
        return _Loaded(scanned, used, scanned - used - by_problem.total(), by_problem)

    def _problems_of_lines(self) -> Counter[str]:
        rows = self._session.rows("SELECT problem, count(*) FROM lines GROUP BY problem")
        by_problem = Counter({PROBLEMS[number]: int(n) for number, n in rows})
        by_problem.pop(WITHOUT_URL, None)
        return by_problem

    def _load_searches(self, scans: Sequence[Scan]) -> _Loaded:
        scanned = self._session.execute_counting(
            f"CREATE TEMP TABLE searches AS {grouped_searches(scans, host_only=self._drawing.host_only)}"
        )
        by_problem, used = count_problems(self._session)
        if not all(scan.ascii for scan in scans):
            normalize_hard_queries(self._session)
        return _Loaded(scanned, used, scanned - used - by_problem.total(), by_problem)

    def _load_sessions(self, feed: Feed) -> _Loaded:
        rows = "yandex_rows"
        scanned = self._session.execute_counting(f"CREATE TEMP TABLE {rows} AS {yandex_rows(feed)}")
        self._session.execute(
            f"CREATE TEMP TABLE lines AS {self._judged(scan_yandex(rows, searches=not self._drawing.draws))}"
        )
        without_url = queries_without_click(self._session, rows)
        self._session.execute(f"DROP TABLE {rows}")
        by_problem = self._problems_of_lines()
        return _Loaded(scanned, by_problem.pop("", 0), without_url, by_problem)

    def _judged(self, scan: Scan) -> str:
        """SELECT of the lines of a scan, each with the number of its problem and its digest."""
        texts = [f"{scan.roles['user']} AS user", f"{scan.roles['query']} AS query"]
        texts.append(f"{scan.roles.get('url', 'NULL::VARCHAR')} AS url")
        if "optin" in scan.roles:
            self._by_column = True
            texts.append(f"{scan.optin()} AS optin")
        if self._drawing.draws:
            texts.append(f"{scan.digest(self._drawing.key)} AS digest")
        else:
            time = f"nullif({scan.roles.get('time', 'NULL')}::VARCHAR, '')"
            texts += [f"{moment_of(time)} AS moment", f"CASE WHEN moment IS NULL THEN {time} END AS late"]
            texts.append(f"{scan.roles.get('rank', 'NULL::VARCHAR')} AS rank")
            if self._has_suggestions:
                texts.append(f"nullif({scan.roles.get('suggestion', 'NULL')}::VARCHAR, '') AS suggestion")
        return f"""
            SELECT {scan.problem(host_only=self._drawing.host_only)} AS problem, {", ".join(texts)}
            FROM ({scan.select}) WHERE {"true" if self._has_lines else scan.is_kept()}
        """

    def _counted(self, sources: Sequence[Source], feeds: Sequence[Feed], loaded: _Loaded) -> Reading:
        """The counts, after checking that no line got lost between the gate and the database."""
        scanned, by_problem = loaded.scanned, loaded.by_problem
        passed = [one for feed in feeds for one in feed.passed]
        if passed:
            by_problem[TOO_MANY_FIELDS] = rejected = int(
                self._session.value(f"SELECT count(DISTINCT (scan_id, file_id, line)) FROM {REJECTED_TABLE}")
            )
            headers = sum(len(paths) for layout, paths in sources if getattr(layout, "header", False))
            expected = sum(one.lines for one in passed) - headers
            if scanned + rejected != expected:
                raise RunError(f"{expected} lines were read and {scanned + rejected} counted: please report this")
            scanned += rejected
        held_back = _together(one.held_back for one in passed)
        return Reading(
            bytes=sum(one.bytes for one in passed)
            or sum(path.stat().st_size for _, paths in sources for path in paths),
            lines=scanned + sum(kind.count for kind in held_back.values()),
            used=loaded.used,
            without_url=loaded.without_url,
            held_back=held_back,
            in_fields=+by_problem,
        )

    def _rows_of_problems(self, sources: Sequence[Source], feeds: Sequence[Feed]) -> dict[str, Malformed]:
        """How many rows of Parquet files have each problem, and which are the first."""
        found = []
        for (layout, paths), feed in zip(sources, feeds, strict=True):
            assert isinstance(layout, Columns)
            scan = scan_columns(layout, feed.names, places=True)
            rows = self._session.rows(
                f"""
                SELECT problem, count(*), min({{file: file_index, row: file_row_number}}, {FIRST_PLACES})
                FROM (SELECT *, {scan.problem(host_only=self._drawing.host_only)} AS problem FROM ({scan.select}))
                WHERE problem NOT IN (0, {PROBLEMS.index(WITHOUT_URL)}) GROUP BY problem
                """
            )
            found += [
                {PROBLEMS[problem]: Malformed(n, [Place(str(paths[at["file"]]), at["row"] + 1) for at in first])}
                for problem, n, first in rows
            ]
        return _together(found)

    def _make_draws(self) -> int:
        make_draws(self._session, self._drawing)
        if self._by_column:
            find_opted_in(self._session, self._drawing.key)
        return int(self._session.value("SELECT count(*) FROM drawn WHERE draw = 1"))

    def _count_users(self) -> int:
        searches = f"lines WHERE problem IN (0, {PROBLEMS.index(WITHOUT_URL)})"
        if self._searches_only:
            searches = "searches"
        return int(self._session.value(f"SELECT count(*) FROM (SELECT user FROM {searches} GROUP BY user)"))

    def split_by_fraction(self, fraction: float) -> tuple[DuckDBGroup, DuckDBGroup]:
        cut = f"{math.ceil(fraction * 16**OPTIN_DIGITS):0{OPTIN_DIGITS}x}"
        opted_in = f"md5('opt-in' || chr(31) || person)[:{OPTIN_DIGITS}] < '{cut}'"
        return self._group(opted_in), self._group(f"NOT {opted_in}")

    def split_by_column(self) -> tuple[DuckDBGroup, DuckDBGroup]:
        return self._group("person IN (FROM opted_in)"), self._group("person NOT IN (FROM opted_in)")

    def _group(self, condition: str) -> DuckDBGroup:
        table = self._session.new_name("people")
        self._session.execute(
            f"CREATE TEMP TABLE {table} AS SELECT person, draw, pick, query, url FROM drawn WHERE {condition}"
        )
        return DuckDBGroup(
            self._session, table, has_urls=self.has_urls, draws=self._drawing.draws, picks=self._drawing.picks
        )

    def statistics(self, reading: Reading) -> LogStatistics:
        if not self._has_lines:
            raise InvalidParameter("keep_lines", "expected a log that was read with keep_lines=True")
        malformed = reading.in_fields.total() + sum(kind.count for kind in reading.held_back.values())
        distinct = distinct_counts(self._session, host_only=self._drawing.host_only)
        return LogStatistics(reading.bytes, reading.lines, reading.users, *distinct, malformed)

    def activity(self, rules: ActivityRules) -> DuckDBActivity | DuckDBSearches:
        if self._drawing.draws:
            raise InvalidParameter("draws", "expected a log that was read with draws=0")
        if self._searches_only:
            if rules != ActivityRules():
                raise InvalidParameter("searches_only", "expected a log that was read with all of it, for these rules")
            return DuckDBSearches(self._session, self._drawing.key)
        return DuckDBActivity(self._session, self._texts, rules)


def _together(parts: Iterable[Mapping[str, Malformed]]) -> dict[str, Malformed]:
    whole: dict[str, Malformed] = {}
    for part in parts:
        for reason, kind in part.items():
            known = whole.get(reason, Malformed())
            whole[reason] = Malformed(known.count + kind.count, (known.first + kind.first)[:FIRST_PLACES])
    return whole
