"""Searches and clicks of a log in DuckDB, with each user's activity limited. The rules are those of ``activity``.

Strings are long and there are many, so whatever is grouped, joined and ordered is a number. The strings of what was
chosen are fetched at the end, by the number of a line that has them.

A release without clicks needs no more than who searched for what, and first when. The table ``searches`` (person, q,
moment) has each user's queries in normal form, each once, grouped from the files in one pass: no line is kept, and
there ``q`` is the query itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from searchblend.clickgraph.release.click_log import SUGGESTION, Cap
from searchblend.core.attributes import Attribute, cells_of
from searchblend.core.errors import InvalidParameter
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
    first_events,
)
from searchblend.logs.duckdb.normal_forms import (
    normal_ascii_query,
    query_form,
    query_needs_python,
    suggestion_form,
    url_form,
)
from searchblend.logs.duckdb.scan import ASCII_BLANKS_SQL, Scan
from searchblend.logs.duckdb.session import DuckDBSession, quoted
from searchblend.logs.formats.judge import PROBLEMS, WITHOUT_URL
from searchblend.logs.relational import SqlTally, record_of
from searchblend.mechanisms.tally import Ints

_WITHOUT_URL: Final = PROBLEMS.index(WITHOUT_URL)
_USABLE: Final = f"problem IN (0, {_WITHOUT_URL})"
_MOST_IN_A_LIST: Final = 1000
"""How many smallest moments of a user are looked for at once; above, users' searches are sorted."""


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


def attribute_column(attribute: Attribute) -> str:
    """The name of its column in ``lines``."""
    return f"attribute_{attribute.name}"


def attribute_of(attribute: Attribute, field: str) -> str:
    """SQL: the number of the value that a field has (``Attribute.number_of``)."""
    spelling = f"translate(trim({field}, {ASCII_BLANKS_SQL}), '{ascii_uppercase}', '{ascii_lowercase}')"
    spelled = " ".join(f"WHEN {quoted(value)} THEN {number}" for number, value in enumerate(attribute.values))
    whens = [
        f"WHEN whole >= {first}{'' if last is None else f' AND whole <= {last}'} THEN {number}"
        for number, first, last in attribute.ranges
    ]
    other = str(len(attribute.values))
    if whens:
        whole = f"CASE WHEN regexp_full_match({spelling}, '[0-9]{{1,9}}') THEN {spelling}::INTEGER END"
        ranges = " ".join(when.replace("whole", f"({whole})") for when in whens)
        other = f"CASE {ranges} ELSE {other} END"
    return f"(CASE {spelling} {spelled} ELSE {other} END)::USMALLINT"


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
    attributes: Sequence[Attribute] = ()
    """those of which ``lines`` has a column with the number of the value (``attribute_column``)"""


class DuckDBActivity(SqlActivity):
    """Over the table ``lines`` (problem, user, query, url, moment, unparsed_time, rank, perhaps suggestion)."""

    def __init__(self, session: DuckDBSession, strings: LogStrings, rules: ActivityRules) -> None:
        super().__init__(session, strings.key)
        self._session, self._strings, self._rules = session, strings, rules
        self.account = rules.account
        self.attribute_columns = [attribute_column(attribute) for attribute in strings.attributes]
        if not session.value("SELECT count(unparsed_time) FROM lines"):  # hardly ever: there is less to order by
            self.by_time = "moment NULLS LAST, q"

    def without_moment(self) -> int:
        """Usable lines that no window has, since their time cannot be read. NOT FOR RELEASE."""
        return int(self._session.value(f"SELECT count(*) FROM lines WHERE {_USABLE} AND moment IS NULL"))

    def numbered_searches(self) -> list[NDArray[Any]]:
        """All searches: the number of the user, that of the query, the moment; each user's in order. NOT PRIVATE: to
        evaluate."""
        numbers = ", ".join(f"dense_rank() OVER (ORDER BY {name}) - 1 AS {name}_number" for name in ("person", "q"))
        numbered = f"SELECT *, {numbers} FROM {self._all_searches}"
        ordered = (
            f"SELECT person_number, q_number, moment FROM ({numbered}) AS numbered ORDER BY person, {self._in_order}"
        )
        return self._session.arrays(ordered)

    def searches_by(self, queries: Sequence[str] | None, attributes: Sequence[Attribute], cap: Cap) -> Ints:
        columns = self._columns(attributes)
        with self._wanted([(query, None) for query in queries or ()]) as wanted:
            among = "" if queries is None else f"SEMI JOIN {wanted} USING (q)"
            if cap.distinct:
                kept = first_events(self._first_searches(columns, among), cap.first, self.by_time)
            else:
                lines = self._lines("moment", "unparsed_time", "own", "rank", "u", *columns)
                alike = "person, q, moment, unparsed_time, own"
                least = ", ".join(f"min({name}) AS {name}" for name in ("rank", "u", *columns))
                searches = f"SELECT {alike}, {least} FROM ({lines}) AS lines {among} GROUP BY {alike}"
                kept = first_events(searches, cap.first, self._in_order)
            return self._in_cells(kept, queries, attributes, f"JOIN {wanted} USING (q)")

    def clicks_by(
        self, records: Sequence[Record] | None, attributes: Sequence[Attribute], cap: Cap, *, within: Cap
    ) -> Ints:
        pairs = [(str(query), str(url)) for query, url in records or ()]
        with (
            self._wanted(pairs) as wanted,
            self._clicks_within(within, "true" if records is None else f"q IN (SELECT q FROM {wanted})") as clicks,
        ):
            if records is not None:
                clicks = f"SELECT * FROM ({clicks}) AS clicks SEMI JOIN {wanted} USING (q, u)"
            kept = self._limited(clicks, cap, *self._columns(attributes))
            return self._in_cells(kept, records, attributes, f"JOIN {wanted} USING (q, u)")

    def _columns(self, attributes: Sequence[Attribute]) -> list[str]:
        if not set(attributes) <= set(self._strings.attributes):
            raise InvalidParameter("attributes", "expected a log that was read with the same attributes")
        return [attribute_column(attribute) for attribute in attributes]

    def _first_searches(self, columns: Sequence[str], among: str) -> str:
        """SELECT of each user's queries, each at its first time, with the least value of each attribute there."""
        lines = self._lines("moment", "unparsed_time", *columns)
        time = "late: moment IS NULL, moment: coalesce(moment, 0), none: unparsed_time IS NULL, text: unparsed_time"
        values = [f"min({{{time}, value: {name}}}).value AS {name}" for name in columns]
        unparsed = "CASE WHEN min(moment) IS NULL THEN min(unparsed_time) END AS unparsed_time"
        selected = ", ".join(["person", "q", "min(moment) AS moment", unparsed, *values])
        return f"SELECT {selected} FROM ({lines}) AS lines {among} GROUP BY person, q"

    def _in_cells(self, kept: str, items: Sequence[object] | None, attributes: Sequence[Attribute], join: str) -> Ints:
        """What is kept, counted: a row for each item, or one for all, and a column for each cell."""
        cell = "0::BIGINT"
        for attribute in attributes:
            cell = f"({cell} * {attribute.size} + {attribute_column(attribute)})"
        number, join = ("0", "") if items is None else ("number", join)
        counted = f"SELECT {number} AS item, {cell} AS cell, count(*) AS n FROM ({kept}) AS kept {join} GROUP BY ALL"
        counts = np.zeros((1 if items is None else len(items), cells_of(attributes)), dtype=np.int64)
        rows, columns, numbers = (column.astype(np.int64) for column in self._session.arrays(counted))
        counts[rows, columns] = numbers
        return counts

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


def grouped_searches(scans: Sequence[Scan], *, host_only: bool) -> str:
    """SELECT (person, q, problem, moment, n) of the searches in some files.

    ``problem`` is that of malformed lines, which stand there too until they are counted; else it is NULL. ``n`` counts
    the lines that do not lack a URL. Queries that need Python stand there as they were typed, and become
    normal forms in ``normalize_other_queries``.
    """
    lines = " UNION ALL ".join(_judged(scan, host_only=host_only) for scan in scans)
    return f"""
        SELECT person, q, CASE WHEN {_USABLE} THEN NULL ELSE problem END AS problem,
            min(moment) AS moment, count(*) FILTER (problem <> {_WITHOUT_URL}) AS n
        FROM ({lines}) GROUP BY ALL
    """


def _judged(scan: Scan, *, host_only: bool) -> str:
    query = scan.roles["query"]
    form = normal_ascii_query(query, scan.no_odd_bytes)
    if not scan.ascii_only:
        form = f"CASE WHEN {query_needs_python(query)} THEN {query} ELSE {form} END"
    time = f"nullif({scan.roles['time']}::VARCHAR, '')"
    return f"""
        SELECT {scan.problem(host_only=host_only)} AS problem, {scan.roles["user"]} AS person, {form} AS q,
            {moment_of(time)} AS moment
        FROM ({scan.select})
    """


def count_problems(session: DuckDBSession) -> tuple[Counter[str], int]:
    """How many lines of ``searches`` have each problem, and how many have none and a URL. Forgets them."""
    counted = dict(session.rows("SELECT problem, sum(n) FROM searches GROUP BY problem"))
    used = int(counted.pop(None, 0))
    session.execute("DELETE FROM searches WHERE problem IS NOT NULL")
    for column in ("problem", "n"):
        session.execute(f"ALTER TABLE searches DROP COLUMN {column}")
    return Counter({PROBLEMS[number]: int(n) for number, n in counted.items()}), used


def normalize_other_queries(session: DuckDBSession) -> None:
    """Queries that need Python get their normal form, which the user may have typed too: then the earlier moment
    counts."""
    query = query_form("q")
    form, join, table = query.joined(session, "SELECT q FROM searches")
    if table is None:
        return
    moved = session.new_name("moved")
    typed = f"SELECT person, {form} AS q, moment FROM searches{join} WHERE {query.needs_python}"
    session.execute(f"CREATE TEMP TABLE {moved} AS {typed}")
    session.execute(f"DELETE FROM searches WHERE {query.needs_python}")
    plain = f"SELECT person, q FROM {moved} WHERE NOT ({query.needs_python})"  # what is left in searches is plain
    if session.value(f"INSERT INTO {moved} SELECT * FROM searches SEMI JOIN ({plain}) USING (person, q)"):
        session.execute(f"DELETE FROM searches WHERE (person, q) IN ({plain})")
    session.execute(f"INSERT INTO searches SELECT person, q, min(moment) FROM {moved} GROUP BY person, q")
    for name in (moved, table):
        session.execute(f"DROP TABLE {name}")


class DuckDBSearches(SqlActivity):
    """Over the table ``searches``: it knows of distinct searches alone."""

    _distinct_searches = "searches"

    def __init__(self, session: DuckDBSession, key: str) -> None:
        super().__init__(session, key)
        self._session = session

    def _lines(self, *columns: str, clicks: bool = False) -> NoReturn:
        what = "clicks" if clicks else "searches that a user repeats"
        raise InvalidParameter("searches_only", f"expected a log that was read with all of it, to count {what}")

    def _tally(self, kind: Kind, events: str, n: str = "count(*)") -> SqlTally:
        counted = f"SELECT q AS query, NULL::VARCHAR AS url, {n} AS n FROM ({events}) GROUP BY q"
        return SqlTally(self._session, counted)

    def _id(self, string: str) -> str:
        return string

    @contextmanager
    def _kept(self, cap: Cap, of: str = "") -> Iterator[str]:
        """Sorting all searches would take longer than reading the log. So the moment of the last search that a cap
        keeps is looked for, and whatever is not later is kept; only users with other searches at that very moment are
        sorted. Searches at the same moment are in the order of the keyed MD5 of their query.
        """
        if not cap.distinct:
            self._lines()
        searches, first = f"(SELECT * FROM searches {of})" if of else "searches", cap.first
        order = f"moment, {super()._id('q')}"
        is_first = f"row_number() OVER (PARTITION BY person ORDER BY {order}) <= {first}"
        if first > _MOST_IN_A_LIST:
            yield f"SELECT person, q FROM {searches} QUALIFY {is_first}"
            return
        last = f"list_extract(min(moment, {first}), {first})"
        many = f"SELECT person, {last} AS last FROM {searches} GROUP BY person HAVING count(*) > {first}"
        ends = self._session.make("ends", many)
        at_the_end = f"SELECT person FROM {searches} JOIN {ends} USING (person) WHERE moment = last"
        tied = f"SELECT person, count(*) AS n FROM ({at_the_end}) GROUP BY person HAVING n > 1"
        ties = self._session.make("tied", tied)
        kept = f"SELECT person, q, moment FROM {searches} LEFT JOIN {ends} USING (person)"
        kept += " WHERE last IS NULL OR moment <= last"
        try:
            if not self._session.value(f"SELECT count(*) FROM {ties}"):
                yield kept
                return
            sorted_ones = f"SELECT person, q FROM ({kept}) SEMI JOIN {ties} USING (person) QUALIFY {is_first}"
            yield f"SELECT person, q FROM ({kept}) ANTI JOIN {ties} USING (person) UNION ALL {sorted_ones}"
        finally:
            self._session.discard(ends)
            self._session.discard(ties)
