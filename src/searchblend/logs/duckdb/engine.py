"""A log in DuckDB: what was read, one random record of each user, and the questions about the people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.core.errors import InvalidParameter
from searchblend.logs.activity import ActivityRules, SqlActivity
from searchblend.logs.duckdb.activity import DuckDBActivity, DuckDBSearches
from searchblend.logs.duckdb.load import LineTable, person
from searchblend.logs.duckdb.normal_forms import NormalForm, normal_table, query_form, url_form
from searchblend.logs.duckdb.scan import parquet_types
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.engine import LogEngine, Reading
from searchblend.logs.formats import judge
from searchblend.logs.formats.gate import OnBytes
from searchblend.logs.formats.judge import PROBLEMS, WITHOUT_URL
from searchblend.logs.formats.layout import ColumnMap, Source
from searchblend.logs.formats.remote import LogFile
from searchblend.logs.options import ReadOptions

_AT_ONCE: Final = 1 << 25
"""How many hashes are sorted at a time: 128 MB."""
_USERS: Final = "hashed_users"
"""the table (user, person) of everyone who has a drawn record, where rows are kept"""
_SHORT: Final = "(digest & 4294967295)::UINTEGER"


class DuckDBEngine(LogEngine):
    """A log in DuckDB."""

    def __init__(self, options: ReadOptions) -> None:
        self._session = DuckDBSession(options.memory, options.threads, options.temp_directory)
        super().__init__(self._session, options)
        self._table = LineTable(
            self._session,
            self._drawing,
            keep_lines=self._keep_lines,
            searches_only=options.searches_only,
            attributes=options.attributes,
        )

    def close(self) -> None:
        self._session.close()
        judge.forget()

    def column_types(self, path: LogFile) -> Mapping[str, str]:
        return parquet_types(self._session, path)

    def take(self, given: object, columns: ColumnMap) -> Source:
        return self._table.take(given, columns)

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

    def rows_of(self, people: str) -> str:
        """Lines are found by the users, whose hashes are known from the draws: no line needs to be hashed again."""
        session, name = self._session, self._session.new_name("rows")
        mine = f"SELECT * FROM {_USERS} SEMI JOIN (SELECT person FROM {people} WHERE draw = 1) USING (person)"
        held = f"SELECT person, digest, query, url FROM lines JOIN ({mine}) USING (user) WHERE problem = 0"
        raw = session.make("raw_rows", held)
        normal_table(session, name, raw, ["person", "digest"], self._forms())
        session.discard(raw)
        return name

    def _forms(self) -> list[NormalForm]:
        """What records are brought to, by the shortest way that the bytes of the files allow."""
        return [
            query_form(no_odd_bytes=self._table.strings.no_odd_bytes),
            url_form(host_only=self._drawing.host_only),
        ]

    def _count_users(self) -> int:
        searches = f"(SELECT user AS person FROM lines WHERE problem IN (0, {PROBLEMS.index(WITHOUT_URL)}))"
        if self._table.searches_only:
            searches = "searches"
        return int(self._session.value(f"SELECT count(*) FROM (SELECT person FROM {searches} GROUP BY person)"))

    def _make_draws(self) -> int:
        """Makes ``drawn``, with the records in normal form, and returns how many users there are.

        Until the end a line is but its number in the table of lines: strings are fetched for the chosen ones only.
        """
        session, key = self._session, self._drawing.key
        self._find_repeated()
        session.execute(
            f"""
            CREATE TEMP TABLE raw_drawn AS
            SELECT user, {person(key)} AS person, draw, query, url
            FROM ({self._chosen_lines()}) AS chosen JOIN lines ON lines.rowid = chosen.line
            """
        )
        session.discard("repeated")
        normal_table(session, "drawn", "raw_drawn", ["person", "draw"], self._forms())
        if self._keep_rows:
            session.execute(f"CREATE TEMP TABLE {_USERS} AS SELECT user, person FROM raw_drawn WHERE draw = 1")
        session.discard("raw_drawn")
        self.drawn = "drawn"
        if self._table.has_optin:
            everywhere = (
                f"SELECT {person(key)} AS person FROM lines WHERE problem = 0 GROUP BY user HAVING bool_and(optin)"
            )
            self.opted_in = f"person IN (SELECT person FROM {session.make('opted_in', everywhere)})"
        return int(session.value("SELECT count(*) FROM drawn WHERE draw = 1"))

    def _find_repeated(self) -> None:
        """Makes the table ``repeated`` (user, digest, n, line) of the lines that a user has more than once.

        Most lines occur once, and grouping them all would cost as much as reading the log. So short hashes are sorted
        first, and only lines whose hash occurs twice are grouped.
        """
        session = self._session
        n = int(session.value("SELECT count(*) FROM lines WHERE problem = 0"))
        parts = 2 << (n // _AT_ONCE).bit_length()  # a power of two: dividing 128-bit numbers is slow
        with ThreadPoolExecutor(2) as pool:  # one part is sorted while the next one is fetched
            sorting = [
                pool.submit(
                    _occurring_twice,
                    session.column(
                        f"SELECT {_SHORT} FROM lines WHERE problem = 0 AND digest & {parts - 1} = {part}", np.uint32
                    ),
                )
                for part in range(parts)
            ]
            suspects = [part.result() for part in sorting]
        with session.numbers("suspects", np.concatenate([*suspects, np.empty(0, np.uint32)])):
            session.execute(
                f"""
                CREATE TEMP TABLE repeated AS
                SELECT user, digest, count(*) AS n, min(rowid) AS line
                FROM lines SEMI JOIN suspects ON {_SHORT} = value
                WHERE problem = 0 GROUP BY user, digest HAVING n > 1
                """
            )

    def _smallest_scores(self, draw: int) -> str:
        """Of the first repetitions of a person's lines one, and the smallest of any other.

        Of signed numbers DuckDB finds the smallest a third faster, hence the shift.
        """
        first = self._score(draw, 1)
        return f"""
            SELECT user AS person, min_by(rowid, ({first} >> 1)::HUGEINT) AS line, min({first}) AS score
            FROM lines WHERE problem = 0 GROUP BY user
            UNION ALL SELECT user, line, list_min({self._scores(draw, 2)}) FROM repeated
        """

    @contextmanager
    def _used_records(self) -> Iterator[str]:
        """Each string is brought to normal form once."""
        session = self._session
        session.execute("CREATE TEMP TABLE raw_records AS SELECT DISTINCT query, url FROM lines WHERE problem = 0")
        normal_table(session, "records", "raw_records", [], self._forms())
        yield "records"
        session.discard("raw_records")
        session.discard("records")

    def _activity(self, rules: ActivityRules) -> SqlActivity:
        if self._table.searches_only:
            if rules != ActivityRules():
                raise InvalidParameter("searches_only", "expected a log that was read with all of it, for these rules")
            return DuckDBSearches(self._session, self._drawing.key)
        return DuckDBActivity(self._session, self._table.strings, rules)


def _occurring_twice(values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The distinct values that occur more than once."""
    values.sort()
    return np.unique(values[1:][values[1:] == values[:-1]])
