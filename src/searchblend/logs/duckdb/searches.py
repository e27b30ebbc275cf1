"""Who searched for what, and first when: all that a release without clicks needs of a log, found as DuckDB reads it.

The table ``searches`` (user, query, moment) has each user's queries in normal form, each once. It is grouped from the
files in one pass: no line is kept. The rules are those of ``activity``.
"""

# ruff: noqa: S608  every string in the SQL is a literal of ours, a name of ours, or quoted

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

from searchblend.clickgraph.release.click_log import Cap
from searchblend.core.errors import InvalidParameter
from searchblend.core.records import Record
from searchblend.logs.duckdb.activity import moment_of
from searchblend.logs.duckdb.normal_forms import normal_ascii_query, query_form, query_needs_python
from searchblend.logs.duckdb.scan import Scan
from searchblend.logs.duckdb.session import DuckDBSession, quoted
from searchblend.logs.formats.judge import PROBLEMS, WITHOUT_URL
from searchblend.logs.relational import SqlTally
from searchblend.mechanisms.gaussian_account import weight

_WITHOUT_URL: Final = PROBLEMS.index(WITHOUT_URL)
_MOST_IN_A_LIST: Final = 1000
"""How many smallest moments of a user are looked for at once; above, users' searches are sorted."""


def grouped_searches(scans: Sequence[Scan], *, host_only: bool) -> str:
    """SELECT (user, query, problem, moment, n) of the searches in some files.

    ``problem`` is that of malformed lines, which stand there too until they are counted; else it is NULL. ``n`` counts
    the lines that do not lack a URL. Queries that need Python stand there as they were typed, and become
    normal forms in ``normalize_other_queries``.
    """
    lines = " UNION ALL ".join(_judged(scan, host_only=host_only) for scan in scans)
    return f"""
        SELECT user, query, CASE WHEN problem IN (0, {_WITHOUT_URL}) THEN NULL ELSE problem END AS problem,
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
        SELECT {scan.problem(host_only=host_only)} AS problem, {scan.roles["user"]} AS user, {form} AS query,
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
    query = query_form()
    form, join, table = query.joined(session, "SELECT query FROM searches")
    if table is None:
        return
    moved = session.new_name("moved")
    typed = f"SELECT user, {form} AS query, moment FROM searches{join} WHERE {query.needs_python}"
    session.execute(f"CREATE TEMP TABLE {moved} AS {typed}")
    session.execute(f"DELETE FROM searches WHERE {query.needs_python}")
    plain = f"SELECT user, query FROM {moved} WHERE NOT ({query.needs_python})"  # what is left in searches is plain
    if session.value(f"INSERT INTO {moved} SELECT * FROM searches SEMI JOIN ({plain}) USING (user, query)"):
        session.execute(f"DELETE FROM searches WHERE (user, query) IN ({plain})")
    session.execute(f"INSERT INTO searches SELECT user, query, min(moment) FROM {moved} GROUP BY user, query")
    for name in (moved, table):
        session.execute(f"DROP TABLE {name}")


class DuckDBSearches:
    """A ``ClickLog`` that knows of distinct searches alone, over the table ``searches`` (user, query, moment)."""

    def __init__(self, session: DuckDBSession, key: str) -> None:
        self._session, self._key = session, key

    def searches(self, cap: Cap) -> SqlTally:
        with self._first("searches", _first_of(cap)) as kept:
            return self._tally(f"SELECT query, count(*) AS n FROM {kept} GROUP BY query")

    def weighted_searches(self, first: int, units: int, without: Sequence[str]) -> SqlTally:
        weights = [weight(units, queries) for queries in range(1, first + 1)]
        with (
            self._of("query NOT IN", without) as others,
            self._first(others, first) as kept,
        ):
            people = f"SELECT user, count(*) AS s FROM {kept} GROUP BY user"
            return self._tally(
                f"""
                SELECT query, sum({weights}[s])::BIGINT AS n FROM {kept} JOIN ({people}) USING (user)
                GROUP BY query HAVING n > 0
                """
            )

    def searches_of(self, queries: Sequence[str], cap: Cap) -> Mapping[str, int]:
        with self._of("query IN", queries) as mine, self._first(mine, _first_of(cap)) as kept:
            found = self._session.rows(f"SELECT query, count(*) FROM {kept} GROUP BY query")
        return dict.fromkeys(queries, 0) | dict(found)

    def clicks(self, queries: Sequence[str], cap: Cap, *, within: Cap) -> NoReturn:
        _refuse("clicks")

    def clicks_of(self, records: Sequence[Record], cap: Cap, *, within: Cap, restrict_first: bool = True) -> NoReturn:
        _refuse("clicks")

    def reformulations(self, queries: Sequence[str], cap: Cap) -> NoReturn:
        _refuse("reformulations")

    def _tally(self, counted: str) -> SqlTally:
        return SqlTally(self._session, f"SELECT query, NULL::VARCHAR AS url, n FROM ({counted})")

    @contextmanager
    def _of(self, condition: str, queries: Sequence[str]) -> Iterator[str]:
        """SELECT of the searches that are, or are not, for some queries."""
        if not queries and "NOT" in condition:
            yield "searches"
            return
        with _table(self._session, "wanted", "SELECT unnest(?::VARCHAR[]) AS query", [list(queries)]) as wanted:
            yield f"(SELECT * FROM searches WHERE {condition} (SELECT query FROM {wanted}))"

    @contextmanager
    def _first(self, searches: str, first: int) -> Iterator[str]:
        """SELECT (user, query) of each user's first searches.

        Sorting them all would take longer than reading the log. So the moment of the last search that a cap keeps is
        looked for, and whatever is not later is kept; only users with other searches at that very moment are sorted.
        Searches at the same moment are in the order of the keyed MD5 of their query.
        """
        order = f"moment, md5_number({quoted(self._key)} || query)"
        is_first = f"row_number() OVER (PARTITION BY user ORDER BY {order}) <= {first}"
        if first > _MOST_IN_A_LIST:
            yield f"(SELECT user, query FROM {searches} QUALIFY {is_first})"
            return
        last = f"list_extract(min(moment, {first}), {first})"
        many = f"SELECT user, {last} AS last FROM {searches} GROUP BY user HAVING count(*) > {first}"
        with _table(self._session, "ends", many) as ends:
            at_the_end = f"SELECT user FROM {searches} JOIN {ends} USING (user) WHERE moment = last"
            tied = f"SELECT user, count(*) AS n FROM ({at_the_end}) GROUP BY user HAVING n > 1"
            kept = f"SELECT user, query, moment FROM {searches} LEFT JOIN {ends} USING (user)"
            kept += " WHERE last IS NULL OR moment <= last"
            with _table(self._session, "tied", tied) as ties:
                if not self._session.value(f"SELECT count(*) FROM {ties}"):
                    yield f"({kept})"
                    return
                sorted_ones = f"SELECT user, query FROM ({kept} ) SEMI JOIN {ties} USING (user) QUALIFY {is_first}"
                yield f"(SELECT user, query FROM ({kept}) ANTI JOIN {ties} USING (user) UNION ALL {sorted_ones})"


@contextmanager
def _table(session: DuckDBSession, kind: str, select: str, parameters: Sequence[object] = ()) -> Iterator[str]:
    """A table for as long as it is needed."""
    name = session.new_name(kind)
    session.execute(f"CREATE TEMP TABLE {name} AS {select}", parameters)
    try:
        yield name
    finally:
        session.execute(f"DROP TABLE {name}")


def _first_of(cap: Cap) -> int:
    if not cap.distinct:
        _refuse("searches that a user repeats")
    return cap.first


def _refuse(what: str) -> NoReturn:
    raise InvalidParameter("searches_only", f"expected a log that was read with all of it, to count {what}")
