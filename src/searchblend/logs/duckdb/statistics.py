"""The exact figures of a log, from the table of lines."""

from __future__ import annotations

from searchblend.logs.duckdb.draws import normal_table
from searchblend.logs.duckdb.session import DuckDBSession


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
