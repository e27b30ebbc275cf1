"""How a log's lines become searches and clicks with a place in time: the rules that all engines follow, and their SQL.

- The *moment* of a line is its time in seconds. A date ``2006-03-01 07:17:12`` (a T instead of the blank is fine) is
  taken as UTC; a number is seconds, from 10^11 on milliseconds, from 10^14 on microseconds. A time that is neither has
  no moment and comes after all that have one, in the order of its characters (``unparsed_time``); lines without a time
  come last. So do clicks whose rank is not a number.
- Lines of one user with the same query and time are one search with several clicks; a line without a time is a search
  of its own.
- A user's searches are ordered by moment, then ``unparsed_time``, then the keyed MD5 of the query; clicks of one search
  by rank, then the keyed MD5 of the URL, and so are searches of one query without a time.
- A line with a URL is a click on it. A line without one but with a suggested query is a click on that query in normal
  form; a suggestion that is not a usable query is none.
- A synonym map is applied to queries in normal form, suggested ones too, before anything is counted. It must come from
  outside the log.
- A window keeps the lines with first ≤ moment < last, and no line without a moment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final, Literal

from searchblend.clickgraph.release.click_log import SESSION_GAP, Cap
from searchblend.clickgraph.release.windows import AccountWindow
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import UNIT
from searchblend.core.records import Record
from searchblend.logs.relational import SqlEngine, SqlTally
from searchblend.mechanisms.gaussian_account import weight

MILLISECONDS_FROM: Final = 1e11
MICROSECONDS_FROM: Final = 1e14
DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DAYS_OF: Final = {"day": 1, "week": 7}
UNTIMED: Final = "moment IS NULL AND unparsed_time IS NULL"
_SEARCH: Final = ("person", "q", "moment", "unparsed_time", "own")
"""What tells one search from another."""

Kind = Literal["searches", "clicks", "pairs"]


@dataclass(frozen=True)
class ActivityRules:
    """What is left out and merged before anything is counted; fixed in advance, not by looking at the log."""

    first_moment: float | None = None
    """seconds; lines before it are left out"""
    last_moment: float | None = None
    """seconds; lines from it on are left out"""
    synonyms: Mapping[str, str] = field(default_factory=dict)
    """query in normal form → the query it is counted as"""
    account: AccountWindow | None = None
    """a window that shares its caps with those before it in the month, whose lines are needed too"""

    def __post_init__(self) -> None:
        if self.account is not None and (self.first_moment, self.last_moment) != (None, None):
            raise InvalidParameter("window", "expected no other moments beside those of the account's window")
        first, last = self.first_moment, self.last_moment
        if first is not None and last is not None and not first < last:
            raise InvalidParameter("window", "expected a first moment before the last")

    def window(self) -> list[str]:
        """SQL conditions on ``moment``."""
        first, last = self.first_moment, self.last_moment
        if self.account is not None:
            first, last = self.account.account, self.account.last
        bounds = ((">=", first), ("<", last))
        return [f"moment {sign} {bound!r}" for sign, bound in bounds if bound is not None]


def account_window(per: str, first: float) -> AccountWindow:
    """The window of a month that begins at this moment: a day, or the 1st, 8th, 15th, 22nd or 29th for a week.

    Weeks are counted from the month's first day, so that each lies in one account.
    """
    days = _DAYS_OF[per]
    begin = datetime.fromtimestamp(first, UTC)
    month = begin.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    if begin != month + timedelta(days=begin.day - 1) or (begin.day - 1) % days:
        when = "of any day" if per == "day" else "of the 1st, 8th, 15th, 22nd or 29th"
        raise InvalidParameter("from", f"expected the beginning of a {per}: 0:00 UTC {when}")
    end = min(begin + timedelta(days=days), (month + timedelta(days=31)).replace(day=1))
    names = [f"{day:%Y-%m-%d}" for day in (begin, end - timedelta(days=1))]
    name, period = " to ".join(dict.fromkeys(names)), timedelta(days=days).total_seconds()
    return AccountWindow(month.timestamp(), first, end.timestamp(), period, f"{month:%Y-%m}", name)


class SqlActivity(ABC):
    """A ``ClickLog`` in SQL that every engine runs.

    An event has a ``person``; the keyed MD5 ``q`` of its query and ``u`` of its URL, by which everything is grouped,
    joined and ordered; ``moment``, ``unparsed_time`` and ``rank``; ``own``, which numbers searches without a time; and
    ``line``, by which the engine finds the strings of what was counted.
    """

    by_time = "moment NULLS LAST, unparsed_time NULLS LAST, q"
    """the order of searches"""
    attribute_columns: Sequence[str] = ()
    """of the lines, with the numbers of declared values"""
    account: AccountWindow | None = None
    """where caps are those of a month, and what counts is one window's share of it"""

    unit = UNIT
    """what is called a user, in the words of a guarantee; an engine may say otherwise"""

    def __init__(self, database: SqlEngine, key: str) -> None:
        self._database, self._key = database, key

    @abstractmethod
    def _lines(self, *columns: str, clicks: bool = False) -> str:
        """SELECT (person, q, line and these columns) of the usable lines, or of those with a click alone."""

    @abstractmethod
    def _tally(self, kind: Kind, events: str, n: str = "count(*)") -> SqlTally:
        """Counts of a SELECT of events; a pair is a search with the line of the ``next`` one, whose ``q`` is ``u``."""

    def searches(self, cap: Cap) -> SqlTally:
        with self._kept(cap) as kept:
            return self._tally("searches", kept)

    def weighted_searches(self, first: int, units: int, without: Sequence[str]) -> SqlTally:
        weights = [(s, weight(units, s)) for s in range(1, first + 1)]
        with (
            self._wanted([(query, None) for query in without]) as left_out,
            self._database.values("weights", "s bigint, weight bigint", weights) as weight_of,
            self._kept(Cap(first), f"ANTI JOIN {left_out} USING (q)") as kept,
        ):
            mine = f"SELECT *, count(*) OVER (PARTITION BY person) AS s FROM ({kept}) AS kept"
            weighted = f"SELECT * FROM ({mine}) AS mine JOIN {weight_of} USING (s) WHERE weight > 0"
            return self._tally("searches", weighted, "CAST(sum(weight) AS BIGINT)")

    def weighted_searches_of(self, queries: Sequence[str], first: int, units: int) -> Mapping[str, int]:
        weights = [(s, weight(units, s)) for s in range(1, first + 1)]
        with (
            self._wanted([(query, None) for query in queries]) as wanted,
            self._database.values("weights", "s bigint, weight bigint", weights) as weight_of,
            self._kept(Cap(first)) as kept,
        ):
            among = f"SELECT * FROM ({kept}) AS kept SEMI JOIN {wanted} USING (q)"
            mine = f"SELECT q, count(*) OVER (PARTITION BY person) AS s FROM ({among}) AS among"
            summed = f"SELECT q, sum(weight) AS n FROM ({mine}) AS mine JOIN {weight_of} USING (s) GROUP BY q"
            counted = f"SELECT q, CAST(n AS BIGINT) AS n FROM ({summed}) AS summed"
            rows = self._database.rows(f"SELECT number, n FROM ({counted}) AS counted JOIN {wanted} USING (q)")
        return dict.fromkeys(queries, 0) | {queries[number]: n for number, n in rows}

    def searches_of(self, queries: Sequence[str], cap: Cap) -> Mapping[str, int]:
        with (
            self._wanted([(query, None) for query in queries]) as wanted,
            self._kept(cap, f"SEMI JOIN {wanted} USING (q)") as kept,
        ):
            counted = f"SELECT q, count(*) AS n FROM ({kept}) AS kept GROUP BY q"
            rows = self._database.rows(f"SELECT number, n FROM ({counted}) AS counted JOIN {wanted} USING (q)")
        return dict.fromkeys(queries, 0) | {queries[number]: n for number, n in rows}

    def clicks(self, queries: Sequence[str], cap: Cap, *, within: Cap) -> SqlTally:
        if self.account is not None:
            with self._wanted([(query, None) for query in queries]) as wanted:
                return self._tally(
                    "clicks", f"SELECT * FROM ({self._of_window(cap, within)}) SEMI JOIN {wanted} USING (q)"
                )
        with (
            self._wanted([(query, None) for query in queries]) as wanted,
            self._clicks_within(within, f"q IN (SELECT q FROM {wanted})") as clicks,
        ):
            return self._tally("clicks", self._limited(clicks, cap))

    def _of_window(self, cap: Cap, within: Cap) -> str:
        """SELECT of the clicks that count in the account's window: caps are those of the month, and hold first."""
        assert self.account is not None
        clicks = f"SELECT *, {_period(self.account)} AS period FROM {self._clicks}"
        kept = f"SELECT person, q, period FROM ({first_events(self._searches_by_period, within.first, self.by_time)})"
        counted = f"SELECT * FROM ({clicks}) AS clicks SEMI JOIN ({kept}) AS kept USING (person, q, period)"
        again = f"row_number() OVER (PARTITION BY person, q, u, period ORDER BY {self._in_order})"
        different = (
            f"SELECT * FROM (SELECT *, {again} AS again FROM ({counted}) AS counted) AS numbered WHERE again = 1"
        )
        limited = first_events(different, cap.first, self._in_order)
        return f"SELECT * FROM ({limited}) AS limited WHERE moment >= {self.account.first!r}"

    @property
    def _searches_by_period(self) -> str:
        assert self.account is not None
        return f"SELECT *, {_period(self.account)} AS period FROM {self._distinct_searches}"

    def clicks_of(
        self, records: Sequence[Record], cap: Cap, *, within: Cap, restrict_first: bool = True
    ) -> Mapping[Record, int]:
        with (
            self._wanted([(str(query), str(url)) for query, url in records]) as wanted,
            self._clicks_within(within, f"q IN (SELECT q FROM {wanted})" if restrict_first else "true") as clicks,
        ):
            if self.account is not None:
                clicks = self._of_window(cap, within)
                counted = f"SELECT q, u, count(*) AS n FROM ({clicks}) AS clicks GROUP BY q, u"
                rows = self._database.rows(f"SELECT number, n FROM ({counted}) AS counted JOIN {wanted} USING (q, u)")
                return dict.fromkeys(records, 0) | {records[number]: n for number, n in rows}
            if restrict_first:
                clicks = f"SELECT * FROM ({clicks}) AS clicks SEMI JOIN {wanted} USING (q, u)"
            counted = f"SELECT q, u, count(*) AS n FROM ({self._limited(clicks, cap)}) AS clicks GROUP BY q, u"
            rows = self._database.rows(f"SELECT number, n FROM ({counted}) AS counted JOIN {wanted} USING (q, u)")
        return dict.fromkeys(records, 0) | {records[number]: n for number, n in rows}

    def reformulations(self, queries: Sequence[str], cap: Cap) -> SqlTally:
        after = f"OVER (PARTITION BY person ORDER BY {self._in_order})"
        pairs = f"""
            SELECT person, q, lead(q) {after} AS u, moment, unparsed_time, rank, line,
                lead(line) {after} AS next, lead(moment) {after} AS next_moment
            FROM {self._all_searches}
        """
        with self._wanted([(query, None) for query in queries]) as wanted:
            both = f"""
                SELECT * FROM ({pairs}) AS pairs WHERE q <> u AND next_moment - moment <= {SESSION_GAP}
                AND q IN (SELECT q FROM {wanted}) AND u IN (SELECT q FROM {wanted})
            """
            return self._tally("pairs", self._limited(both, cap))

    @contextmanager
    def _kept(self, cap: Cap, of: str = "") -> Iterator[str]:
        """SELECT of the searches that a cap keeps, perhaps after a join that leaves out others."""
        if self.account is not None:
            kept = first_events(f"SELECT * FROM {self._distinct_searches}", cap.first, self.by_time)
            yield f"SELECT * FROM ({kept}) AS kept {of} WHERE moment >= {self.account.first!r}"
        elif cap.distinct:
            yield first_events(f"SELECT * FROM {self._distinct_searches} {of}", cap.first, self.by_time)
        else:
            yield first_events(f"SELECT * FROM {self._all_searches} {of}", cap.first, self._in_order)

    @contextmanager
    def _clicks_within(self, within: Cap, condition: str) -> Iterator[str]:
        """SELECT of the clicks on some queries, of the searches that ``within`` keeps."""
        same = [f"clicks.{name} = kept.{name}" for name in _SEARCH[:2]]
        if not within.distinct:
            same += [f"clicks.{name} IS NOT DISTINCT FROM kept.{name}" for name in _SEARCH[2:]]
        with self._kept(within) as kept:
            yield f"""
                SELECT * FROM (SELECT * FROM {self._clicks} WHERE {condition}) AS clicks
                SEMI JOIN ({kept}) AS kept ON {" AND ".join(same)}
            """

    def _limited(self, clicks: str, cap: Cap, *further: str) -> str:
        """SELECT of the clicks (or pairs) that a cap keeps; distinct ones first, each at its first time.

        ``further`` are columns that decide among clicks on one URL that are alike in all else.
        """
        order = ", ".join([self._in_order, *further])
        if cap.distinct:
            again = f"row_number() OVER (PARTITION BY person, q, u ORDER BY {order})"
            clicks = f"SELECT * FROM (SELECT *, {again} AS again FROM ({clicks}) AS clicks) AS numbered WHERE again = 1"
        return first_events(clicks, cap.first, order)

    @property
    def _in_order(self) -> str:
        """The order of clicks; in it searches without a time are ordered too."""
        return f"{self.by_time}, rank NULLS LAST, u NULLS LAST"

    @cached_property
    def _distinct_searches(self) -> str:
        """The table of each user's queries, each at its first time; in an account once in each of its windows."""
        unparsed = "CASE WHEN min(moment) IS NULL THEN min(unparsed_time) END"
        lines = self._lines("moment", "unparsed_time")
        period = "" if self.account is None else f", {_period(self.account, 'lines.moment')}"
        return self._database.make(
            "distinct_searches",
            f"""
            SELECT person, q, min(moment) AS moment, {unparsed} AS unparsed_time, min(line) AS line
            FROM ({lines}) AS lines GROUP BY person, q{period}
            """,
        )

    @cached_property
    def _all_searches(self) -> str:
        """The table of each user's searches: those with the same query and time are one."""
        lines = self._lines("moment", "unparsed_time", "own", "rank", "u")
        return self._database.make(
            "all_searches",
            f"""
            SELECT {", ".join(_SEARCH)}, min(rank) AS rank, min(u) AS u, min(line) AS line
            FROM ({lines}) AS lines GROUP BY {", ".join(_SEARCH)}
            """,
        )

    @cached_property
    def _clicks(self) -> str:
        """The table of all clicks."""
        lines = self._lines("moment", "unparsed_time", "own", "rank", "u", *self.attribute_columns, clicks=True)
        return self._database.part("clicks", f"SELECT * FROM ({lines}) AS lines WHERE u IS NOT NULL")

    @contextmanager
    def _wanted(self, strings: Sequence[tuple[str, str | None]]) -> Iterator[str]:
        """A table (number, q, u) of strings in their order."""
        rows = [(number, query, url) for number, (query, url) in enumerate(strings)]
        with self._database.values("strings", "number int, query string, url string", rows) as table:
            yield f"(SELECT number, {self._id('query')} AS q, {self._id('url')} AS u FROM {table}) AS wanted"

    def _id(self, string: str) -> str:
        """SQL: the keyed MD5 of a string, as a number."""
        return self._database.words.md5_number.format(f"'{self._key}' || {string}")


def _period(account: AccountWindow, moment: str = "moment") -> str:
    """SQL: which window of the month a line lies in; all lines there have a moment."""
    return f"CAST(floor(({moment} - {account.account!r}) / {account.period!r}) AS INT)"


def first_events(events: str, first: int, order: str) -> str:
    """SELECT of the first events of each user."""
    place = f"row_number() OVER (PARTITION BY person ORDER BY {order})"
    return f"SELECT * FROM (SELECT *, {place} AS place FROM ({events}) AS events) AS placed WHERE place <= {first}"
