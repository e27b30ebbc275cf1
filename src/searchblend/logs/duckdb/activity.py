"""Searches and clicks of a log in DuckDB, with each user's activity limited. The rules are those of ``activity``.

Strings are long and there are many, so whatever is grouped, joined and ordered is a number. The strings of what was
chosen are fetched at the end, by the number of a line that has them.
"""

# ruff: noqa: S608  every string in the SQL is a literal of ours, a name of ours, or quoted

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.clickgraph.release.click_log import SUGGESTION
from searchblend.core.records import Record
from searchblend.logs.activity import (
    DATE,
    MICROSECONDS_FROM,
    MILLISECONDS_FROM,
    NUMBER,
    UNTIMED,
    ActivityRules,
    Kind,
    SqlActivity,
)
from searchblend.logs.duckdb.normal_forms import query_form, suggestion_form, url_form
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.formats.judge import PROBLEMS, WITHOUT_URL
from searchblend.logs.relational import SqlTally, record_of

_USABLE: Final = f"problem IN (0, {PROBLEMS.index(WITHOUT_URL)})"


def moment_of(time: str) -> str:
    """SQL: the time in seconds, or NULL."""
    number = f"try_cast({time} AS DOUBLE)"
    moment = f"try_cast({time} AS TIMESTAMP)"
    return f"""
        CASE WHEN strlen({time}) = 19 AND {moment}::VARCHAR = {time} THEN epoch({moment})  -- sooner than a pattern
            WHEN regexp_full_match({time}, '{DATE}') THEN epoch({moment})
            WHEN regexp_full_match({time}, '{NUMBER}') THEN
                CASE WHEN {number} >= {MICROSECONDS_FROM:.0f} THEN {number} / 1000000
                    WHEN {number} >= {MILLISECONDS_FROM:.0f} THEN {number} / 1000
                    ELSE {number} END
        END
    """


def rank_of(field: str) -> str:
    """SQL: the rank as a number, or NULL."""
    return f"CASE WHEN regexp_full_match({field}, '{NUMBER}') THEN try_cast({field} AS DOUBLE) END"


@dataclass(frozen=True)
class LogStrings:
    """What is known of the strings of a log."""

    key: str = field(repr=False)
    host_only: bool
    ascii_only: bool
    """whether all files are: then no query needs Python"""
    no_odd_bytes: bool
    """whether no field of any file has one of ``ODD_BYTES``"""
    suggestions: bool = False
    """whether ``lines`` has a column of them"""


class DuckDBActivity(SqlActivity):
    """Over the table ``lines`` (problem, user, query, url, moment, unparsed_time, rank, perhaps suggestion)."""

    def __init__(self, session: DuckDBSession, strings: LogStrings, rules: ActivityRules) -> None:
        super().__init__(session, strings.key)
        self._session, self._strings, self._rules = session, strings, rules
        if not session.value("SELECT count(unparsed_time) FROM lines"):  # hardly ever: there is less to order by
            self.by_time = "moment NULLS LAST, q"

    def numbered_searches(self) -> list[NDArray[np.int64]]:
        """All searches by the number of the user and of the query; each user's in order. NOT PRIVATE: to evaluate."""
        numbers = ", ".join(f"dense_rank() OVER (ORDER BY {name}) - 1 AS {name}_number" for name in ("person", "q"))
        numbered = f"SELECT *, {numbers} FROM {self._all_searches}"
        ordered = f"SELECT person_number, q_number FROM ({numbered}) AS numbered ORDER BY person, {self._in_order}"
        return self._session.arrays(ordered)

    def _lines(self, *columns: str, clicks: bool = False) -> str:
        """Only searches without a time are ordered by rank and URL, so the others need no URL."""
        form, joins = self._query
        values = {"own": f"CASE WHEN {UNTIMED} THEN lines.rowid END"}
        if "u" in columns and (clicks or self._has_untimed):
            target, join = self._target
            joins += join
            values |= {"rank": rank_of("rank"), "u": self._id(target)}
            if not clicks:
                values |= {name: f"CASE WHEN {UNTIMED} THEN {values[name]} END" for name in ("rank", "u")}
        elif "u" in columns:
            values |= {"rank": "NULL::DOUBLE", "u": "NULL::HUGEINT"}
        clicked = "problem = 0 AND url IS NOT NULL"
        if self._strings.suggestions:
            clicked = f"{_USABLE} AND (url <> '' OR suggestion IS NOT NULL)"
        selected = ", ".join(f"{values.get(name, name)} AS {name}" for name in columns)
        return f"""
            SELECT user AS person, {self._id(form)} AS q, lines.rowid AS line, {selected} FROM lines {joins}
            WHERE {" AND ".join([clicked if clicks else _USABLE, *self._rules.window()])}
        """

    @cached_property
    def _has_untimed(self) -> bool:
        return bool(self._session.value(f"SELECT count(*) FROM lines WHERE {UNTIMED}"))

    @cached_property
    def _query(self) -> tuple[str, str]:
        """SQL of a line's query as it is counted, and of the joins that this needs."""
        query, joins = query_form(no_odd_bytes=self._strings.no_odd_bytes), ""
        form = query.shortcut
        if not self._strings.ascii_only:
            form, joins, _ = query.joined(self._session, self._usable("query"))
        return self._meant(form, joins, "synonyms")

    @cached_property
    def _target(self) -> tuple[str, str]:
        """SQL of what was clicked (NULL if nothing was): a URL or a suggestion; and of the joins that this needs."""
        url, joins, _ = url_form(host_only=self._strings.host_only).joined(self._session, self._usable("url"))
        url = f"nullif({url}, '')"
        if not self._strings.suggestions:
            return url, joins
        form, join, _ = suggestion_form().joined(self._session, self._usable("suggestion"))
        form, joins = self._meant(form, joins + join, "suggested")
        return f"coalesce({url}, '{SUGGESTION}' || {form})", joins

    def _meant(self, form: str, joins: str, alias: str) -> tuple[str, str]:
        """A query, or what it is counted as."""
        if not self._rules.synonyms:
            return form, joins
        joins += f" LEFT JOIN {self._synonyms} AS {alias} ON {form} = {alias}.string"
        return f"coalesce({alias}.meant, {form})", joins

    @cached_property
    def _synonyms(self) -> str:
        """The table of the synonyms (string, meant)."""
        return self._session.table("synonyms", "string string, meant string", list(self._rules.synonyms.items()))

    @staticmethod
    def _usable(column: str) -> str:
        return f"SELECT {column} FROM lines WHERE {_USABLE}"

    def _tally(self, kind: Kind, events: str, n: str = "count(*)") -> SqlTally:
        return _ActivityTally(self, kind, events, n)

    def strings_of(self, lines: str, *, urls: bool) -> str:
        """SELECT (line, query, url) of the lines that are named, as they are counted."""
        form, joins = self._query
        url = "NULL::VARCHAR"
        if urls:
            url, join = self._target
            joins += join
        return f"""
            SELECT lines.rowid AS line, {form} AS query, {url} AS url FROM lines {joins} WHERE lines.rowid IN ({lines})
        """


class _ActivityTally(SqlTally):
    """Counts by the numbers of strings: a table (q, u, n, line, next, place), whose strings are those of its lines."""

    def __init__(self, activity: DuckDBActivity, kind: Kind, events: str, n: str) -> None:
        u, by = ("NULL::HUGEINT AS u", "q") if kind == "searches" else ("u", "q, u")
        following = ", any_value(next) AS next" if kind == "pairs" else ""
        counted = f"SELECT q, {u}, {n} AS n, min(line) AS line{following} FROM ({events}) GROUP BY {by}"
        super().__init__(activity._session, counted, "q, u")
        self._activity, self._kind = activity, kind

    def of_queries(self, queries: Sequence[str]) -> dict[Record, int]:
        with self._activity._wanted([(query, None) for query in queries]) as wanted:
            rows = self._chosen(f"q IN (SELECT q FROM {wanted})")
            return {record_of(query, url): int(n) for n, _, query, url in self._database.rows(rows)}

    def _chosen(self, condition: str) -> str:
        rows = self._activity._session.new_name("chosen")
        named = f"SELECT * FROM {self._table} WHERE {condition}"
        strings = self._activity.strings_of(f"SELECT line FROM {rows}", urls=self._kind == "clicks")
        if self._kind != "pairs":
            return f"""
                WITH {rows} AS MATERIALIZED ({named})
                SELECT n, place, query, url FROM {rows} JOIN ({strings}) USING (line)
            """
        following = self._activity.strings_of(f"SELECT next FROM {rows}", urls=False)
        return f"""
            WITH {rows} AS MATERIALIZED ({named})
            SELECT n, place, strings.query AS query, following.query AS url FROM {rows}
            JOIN ({strings}) AS strings USING (line) JOIN ({following}) AS following ON following.line = next
        """
