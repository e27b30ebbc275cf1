"""What an engine does with a log, and the rules that make all engines choose the same rows.

An engine reads the files of a log once and answers a few questions about the people in it. DuckDB is one, on this
machine; another may be a cluster. They agree to the last record because everything random is a hash of strings:

- The *digest* of a line is MD5 of ``key ␟ user ␟ time ␟ query ␟ url ␟ rank`` (␟ is U+001F; strings as they stand in the
  log, empty where there is none), its 16 bytes read as a little-endian number.
- A line that a user has n times has n *scores*: the digest, and for i = 2..n MD5 of ``h:i``, h the digest in 32
  hexadecimal digits. In draw d > 1 they are MD5 of ``h:i/d``, i = 1..n. All are read as numbers in the same way.
- In draw d a user's record is that of the line with the smallest score: uniform over the user's lines, so that
  repeats count.
- Where all rows of a user count, their order is that of their digests: the first of a user's different queries and
  records take part, and a row's place decides its units (``OwnShares``).
- A *person* is MD5 of ``key ␟ person ␟ user`` in hexadecimal. Opted in by a fraction f are those for whom the first 13
  digits of MD5 of ``opt-in ␟ person`` are less than f · 16^13.

The key is 16 fresh bytes of the operating system in hexadecimal. MD5 orders lines at random here and protects
nothing; it is what every engine has.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

from searchblend.clickgraph.release.click_log import ClickLog
from searchblend.core.errors import InvalidParameter, RunError
from searchblend.core.privacy import ROW_UNIT, UNIT
from searchblend.core.randomness import SystemRandomness
from searchblend.logs.activity import ActivityRules, SqlActivity
from searchblend.logs.formats.gate import OnBytes
from searchblend.logs.formats.layout import ROW, ColumnMap, Source
from searchblend.logs.formats.remote import LogFile
from searchblend.logs.options import ReadOptions
from searchblend.logs.relational import SqlEngine, SqlGroup
from searchblend.logs.summary import LogStatistics, Malformed

_OPTIN_DIGITS: Final = 13
"""52 bits: exact in a double"""


@dataclass(frozen=True)
class Drawing:
    """Which records are drawn: ``draws`` of each user, with replacement, by a key."""

    key: str = field(repr=False)
    draws: int = 1
    host_only: bool = False
    each_row: bool = False
    """whether every row is a person of its own, or as many as it counts"""

    @classmethod
    def of(cls, options: ReadOptions) -> Drawing:
        key = SystemRandomness().take(16) if options.key is None else options.key
        return cls(key.hex(), options.draws, options.host_only, options.unit == ROW)

    @property
    def unit(self) -> str:
        """To whom a promise about these people is, in the words of a guarantee."""
        return ROW_UNIT if self.each_row else UNIT


@dataclass(frozen=True)
class Reading:
    """What one pass over a log counted."""

    bytes: int = 0
    lines: int = 0
    """data lines: no headers, no blank lines"""
    used: int = 0
    without_url: int = 0
    held_back: Mapping[str, Malformed] = field(default_factory=dict)
    """malformed lines whose places are known: those that never came to be fields, and rows of Parquet"""
    in_fields: Mapping[str, int] = field(default_factory=dict)
    """other malformed lines, by reason: something is wrong in their fields, and their places are not known yet"""
    users: int = 0

    @property
    def malformed(self) -> int:
        return sum(self.in_fields.values()) + sum(kind.count for kind in self.held_back.values())


class LogEngine(ABC):
    """A log that was read, and what can be asked of it."""

    has_urls = False
    drawn: str | None = None
    """the table (person, draw, query, url), once the draws are made"""
    opted_in = "false"
    """SQL condition on ``drawn``: the person's every usable line says so"""

    def __init__(self, database: SqlEngine, options: ReadOptions) -> None:
        self._database, self._drawing = database, Drawing.of(options)
        self._keep_lines, self._keep_rows = options.keep_lines or not options.draws, options.rows

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def column_types(self, path: LogFile) -> Mapping[str, str]:
        """The columns of a Parquet file and their types, in DuckDB's words."""

    def take(self, given: object, columns: ColumnMap) -> Source:
        """A table in the caller's memory as a source."""
        raise InvalidParameter("engine", "only duckdb reads tables in memory")

    @abstractmethod
    def read(self, sources: Sequence[Source], on_bytes: OnBytes, on_fraction: Callable[[float], None]) -> Reading:
        """The one pass over the files; draws one record per user, and whatever else was asked for."""

    @abstractmethod
    def rows_of(self, people: str) -> str:
        """The table (person, digest, query, url) of all used lines of the people in a table, in normal form."""

    @abstractmethod
    def _smallest_scores(self, draw: int) -> str:
        """SELECT (person, line, score) of lines in a draw, among them each person's smallest score."""

    @abstractmethod
    def _used_records(self) -> AbstractContextManager[str]:
        """A table (query, url) of the used lines in normal form, perhaps each record once."""

    @abstractmethod
    def _activity(self, rules: ActivityRules) -> SqlActivity: ...

    def _chosen_lines(self) -> str:
        """SELECT (person, draw, line). ``draw`` numbers the draws."""
        return " UNION ALL ".join(
            f"""
            SELECT person, {draw} AS draw, min_by(line, score) AS line
            FROM ({self._smallest_scores(draw)}) AS scores GROUP BY person
            """
            for draw in range(1, self._drawing.draws + 1)
        )

    def _score(self, draw: int, i: int | str = "i") -> str:
        """SQL: the score of a line's i-th repetition in a draw."""
        label = "" if draw == 1 else f" || '/{draw}'"
        hashed = self._database.words.md5_number.format(f"{self._database.words.digest} || ':' || {i}{label}")
        if draw > 1:
            return hashed
        return "digest" if i == 1 else f"CASE WHEN {i} = 1 THEN digest ELSE {hashed} END"

    def _scores(self, draw: int, first: int = 1) -> str:
        """SQL: the list of the scores of a line's repetitions from the first, or another, to the n-th."""
        return self._database.words.each.format(self._score(draw), first)

    def split_by_fraction(self, fraction: float) -> tuple[SqlGroup, SqlGroup]:
        """Opted in, and not, by a keyed hash of the user."""
        cut = f"{math.ceil(fraction * 16**_OPTIN_DIGITS):0{_OPTIN_DIGITS}x}"
        return self._groups(f"substr(md5('opt-in' || chr(31) || person), 1, {_OPTIN_DIGITS}) < '{cut}'")

    def split_by_column(self) -> tuple[SqlGroup, SqlGroup]:
        """Opted in are those whose every usable line says so."""
        return self._groups(self.opted_in)

    def _groups(self, optin: str) -> tuple[SqlGroup, SqlGroup]:
        if self.drawn is None:
            raise RunError("the log is closed")
        records = f"SELECT person, draw, query, url FROM {self.drawn}"
        people = [self._database.part("people", f"{records} WHERE {who}") for who in (optin, f"NOT ({optin})")]
        rows_of = self.rows_of if self._keep_rows else None
        first, second = (
            SqlGroup(
                self._database,
                table,
                has_urls=self.has_urls,
                draws=self._drawing.draws,
                rows_of=rows_of,
                unit=self._drawing.unit,
            )
            for table in people
        )
        return first, second

    def statistics(self, reading: Reading) -> LogStatistics:
        """Of the used lines, which must have been kept."""
        if not self._keep_lines:
            raise InvalidParameter("keep_lines", "expected a log that was read with keep_lines=True")
        with self._used_records() as records:
            distinct = f"SELECT DISTINCT query, url FROM {records}"
            counted = f"SELECT count(DISTINCT query), count(DISTINCT url), count(*) FROM ({distinct}) AS records"
            ((queries, urls, n),) = self._database.rows(counted)
        return LogStatistics(reading.bytes, reading.lines, reading.users, queries, urls, n, reading.malformed)

    def activity(self, rules: ActivityRules) -> ClickLog:
        """Searches and clicks with each user's activity limited, of a log read with ``draws=0``."""
        if self._drawing.draws:
            raise InvalidParameter("draws", "expected a log that was read with draws=0")
        activity = self._activity(rules)
        activity.unit = self._drawing.unit
        return activity
