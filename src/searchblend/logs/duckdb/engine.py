"""A log in DuckDB: what was read, and the questions about its people."""

# ruff: noqa: S608  every string in the SQL is a literal of ours, a name of ours, or quoted

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from searchblend.core.errors import InvalidParameter
from searchblend.logs.activity import ActivityRules
from searchblend.logs.duckdb.activity import DuckDBActivity
from searchblend.logs.duckdb.draws import find_opted_in, make_draws, person
from searchblend.logs.duckdb.load import LineTable
from searchblend.logs.duckdb.normal_forms import normal_table, query_form, url_form
from searchblend.logs.duckdb.scan import parquet_types
from searchblend.logs.duckdb.searches import DuckDBSearches
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.engine import Drawing, Reading
from searchblend.logs.formats import judge
from searchblend.logs.formats.gate import OnBytes
from searchblend.logs.formats.judge import PROBLEMS, WITHOUT_URL
from searchblend.logs.formats.layout import Source
from searchblend.logs.options import ReadOptions
from searchblend.logs.relational import DrawnLog
from searchblend.logs.summary import LogStatistics


class DuckDBEngine(DrawnLog):
    """A log in DuckDB."""

    def __init__(self, options: ReadOptions) -> None:
        self._session = DuckDBSession(options.memory, options.threads, options.temp_directory)
        super().__init__(self._session, Drawing.of(options))
        self._keep_lines = options.keep_lines or not options.draws
        self._keep_rows = options.rows
        self._table = LineTable(
            self._session, self._drawing, keep_lines=self._keep_lines, searches_only=options.searches_only
        )

    def close(self) -> None:
        self._session.close()
        judge.forget()

    def column_types(self, path: Path) -> Mapping[str, str]:
        return parquet_types(self._session, path)

    def read(self, sources: Sequence[Source], on_bytes: OnBytes, on_fraction: Callable[[float], None]) -> Reading:
        self.has_urls = sources[0][0].has_urls
        reading = self._table.read(sources, on_bytes, on_fraction)
        if not self._drawing.draws:
            reading = replace(reading, users=self._count_users())
        elif reading.used:
            reading = replace(reading, users=self._make_draws())
        if not (self._keep_lines or self._keep_rows):  # the draws are all that is needed of them
            self._session.execute("DROP TABLE lines")
        return reading

    def _make_draws(self) -> int:
        make_draws(self._session, self._drawing)
        self.drawn = "drawn"
        if self._table.has_optin:
            find_opted_in(self._session, self._drawing.key)
            self.opted_in = "person IN (SELECT person FROM opted_in)"
        return int(self._session.value("SELECT count(*) FROM drawn WHERE draw = 1"))

    def rows_of(self, people: str) -> str:
        """Users are found by their hashes, their lines by the users: few of the lines need to be hashed or read."""
        if not self._keep_rows:
            return super().rows_of(people)
        name, hashed = self._session.new_name("rows"), f"{person(self._drawing.key)} AS person"
        users = f"SELECT {hashed}, user FROM (SELECT DISTINCT user FROM lines WHERE problem = 0)"
        mine = f"SELECT * FROM ({users}) SEMI JOIN (SELECT person FROM {people} WHERE draw = 1) USING (person)"
        held = f"SELECT person, digest, query, url FROM lines JOIN ({mine}) USING (user) WHERE problem = 0"
        forms = [query_form(), url_form(host_only=self._drawing.host_only)]
        normal_table(self._session, name, f"({held}) AS held", ["person", "digest"], forms)
        return name

    def _count_users(self) -> int:
        searches = f"lines WHERE problem IN (0, {PROBLEMS.index(WITHOUT_URL)})"
        if self._table.searches_only:
            searches = "searches"
        return int(self._session.value(f"SELECT count(*) FROM (SELECT user FROM {searches} GROUP BY user)"))

    def statistics(self, reading: Reading) -> LogStatistics:
        if not self._keep_lines:
            raise InvalidParameter("keep_lines", "expected a log that was read with keep_lines=True")
        queries, urls, records = self._distinct_counts()
        return LogStatistics(reading.bytes, reading.lines, reading.users, queries, urls, records, reading.malformed)

    def _distinct_counts(self) -> tuple[int, int, int]:
        """How many distinct queries, URLs and records the used lines hold; each is brought to normal form once."""
        session = self._session
        session.execute("CREATE TEMP TABLE raw_records AS SELECT DISTINCT query, url FROM lines WHERE problem = 0")
        normal_table(session, "records", "raw_records", [], [query_form(), url_form(host_only=self._drawing.host_only)])
        distinct = "SELECT DISTINCT query, url FROM records"
        counted = f"SELECT count(DISTINCT query), count(DISTINCT url), count(*) FROM ({distinct})"
        queries, urls, records = session.rows(counted)[0]
        session.execute("DROP TABLE raw_records")
        session.execute("DROP TABLE records")
        return int(queries), int(urls), int(records)

    def activity(self, rules: ActivityRules) -> DuckDBActivity | DuckDBSearches:
        if self._drawing.draws:
            raise InvalidParameter("draws", "expected a log that was read with draws=0")
        if self._table.searches_only:
            if rules != ActivityRules():
                raise InvalidParameter("searches_only", "expected a log that was read with all of it, for these rules")
            return DuckDBSearches(self._session, self._drawing.key)
        return DuckDBActivity(self._session, self._table.strings, rules)
