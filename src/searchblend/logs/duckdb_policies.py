"""What each user may contribute to a count, and the exact figures of a log, from the table of lines."""

# ruff: noqa: S608  every text in the SQL is a literal of ours or a name of ours

from __future__ import annotations

from typing import Final

from searchblend.errors import InvalidParameter
from searchblend.logs.duckdb_draws import normal_table
from searchblend.logs.duckdb_scan import PROBLEMS
from searchblend.logs.duckdb_session import DuckDBSession
from searchblend.logs.judge import WITHOUT_URL

_BY_TIME: Final = "try_cast(time AS DOUBLE) NULLS LAST, time, try_cast(rank AS DOUBLE), rank, query, url"
"""The order of a user's lines. Times are compared as numbers if they are, else as texts; ties by rank and by text, so
that it does not depend on the order of lines in the files."""


def make_events(session: DuckDBSession, *, host_only: bool) -> None:
    """Makes the table ``events`` (user, time, rank, query, url), records in normal form.

    Lines without URL are events too, with a query and no click.
    """
    without_url = PROBLEMS.index(WITHOUT_URL)
    session.execute(
        f"""
        CREATE TEMP TABLE raw_events AS
        SELECT user, time, rank, query, nullif(url, '') AS url FROM lines WHERE problem IN (0, {without_url})
        """
    )
    normal_table(session, "events", "raw_events", "user, time, rank", host_only=host_only)
    session.execute("DROP TABLE raw_events")


def searches_of(first: int | None, *, distinct: bool) -> str:
    """SELECT (query, url NULL, n): how often each query was searched, by the first searches of each user.

    A search is a query at a time: its clicks are lines of their own, with the same query and time. In a log without
    times every line is a search.
    """
    once = "SELECT DISTINCT user, time, query FROM events WHERE time IS NOT NULL AND time <> ''"
    untimed = "SELECT user, time, query FROM events WHERE time IS NULL OR time = ''"
    searches = f"SELECT *, NULL::VARCHAR AS rank, NULL::VARCHAR AS url FROM ({once} UNION ALL {untimed})"
    return _counted(searches, first, distinct=distinct)


def clicks_of(first: int | None, *, distinct: bool) -> str:
    """SELECT (query, url, n): how often each record was clicked, by the first clicks of each user."""
    return _counted("SELECT * FROM events WHERE url IS NOT NULL", first, distinct=distinct)


def _counted(events: str, first: int | None, *, distinct: bool) -> str:
    """Distinct first, then the first of them: a user who repeats one query still has others to contribute."""
    if first is not None and first < 1:
        raise InvalidParameter("first", f"expected a whole number of at least 1, found {first!r}")
    if distinct:
        again = f"row_number() OVER (PARTITION BY user, query, url ORDER BY {_BY_TIME})"
        events = f"SELECT * FROM ({events}) QUALIFY {again} = 1"
    if first is not None:
        place = f"row_number() OVER (PARTITION BY user ORDER BY {_BY_TIME})"
        events = f"SELECT * FROM ({events}) QUALIFY {place} <= {first}"
    return f"SELECT query, url, count(*) AS n FROM ({events}) GROUP BY query, url"


def distinct_counts(session: DuckDBSession, *, host_only: bool) -> tuple[int, int, int]:
    """How many distinct queries, URLs and records the used lines hold. Texts are brought to normal form once each."""
    session.execute("CREATE TEMP TABLE raw_records AS SELECT DISTINCT query, url FROM lines WHERE problem = 0")
    normal_table(session, "records", "raw_records", "1 AS one", host_only=host_only)
    queries, urls, records = session.rows(
        "SELECT count(DISTINCT query), count(DISTINCT url), count(*) FROM (SELECT DISTINCT query, url FROM records)"
    )[0]
    session.execute("DROP TABLE raw_records")
    session.execute("DROP TABLE records")
    return int(queries), int(urls), int(records)
