"""Who searched for what, and first when: all that a release without clicks needs of a log, found as DuckDB reads it.

The table ``searches`` (person, q, moment) has each user's queries in normal form, each once. It is grouped from the
files in one pass: no line is kept. The rules are those of ``activity``; here ``q`` is the query itself.
"""

# ruff: noqa: S608  every string in the SQL is a literal of ours, a name of ours, or quoted

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

from searchblend.clickgraph.release.click_log import Cap
from searchblend.core.errors import InvalidParameter
from searchblend.logs.activity import Kind, SqlActivity
from searchblend.logs.duckdb.activity import moment_of
from searchblend.logs.duckdb.normal_forms import normal_ascii_query, query_form, query_needs_python
from searchblend.logs.duckdb.scan import Scan
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.formats.judge import PROBLEMS, WITHOUT_URL
from searchblend.logs.relational import SqlTally

_WITHOUT_URL: Final = PROBLEMS.index(WITHOUT_URL)
_MOST_IN_A_LIST: Final = 1000
"""How many smallest moments of a user are looked for at once; above, users' searches are sorted."""


def grouped_searches(scans: Sequence[Scan], *, host_only: bool) -> str:
    """SELECT (person, q, problem, moment, n) of the searches in some files.

    ``problem`` is that of malformed lines, which stand there too until they are counted; else it is NULL. ``n`` counts
    the lines that do not lack a URL. Queries that need Python stand there as they were typed, and become
    normal forms in ``normalize_other_queries``.
    """
    lines = " UNION ALL ".join(_judged(scan, host_only=host_only) for scan in scans)
    return f"""
        SELECT person, q, CASE WHEN problem IN (0, {_WITHOUT_URL}) THEN NULL ELSE problem END AS problem,
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
