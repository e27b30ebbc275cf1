"""The Yandex log in DuckDB: the clicks of every session, each with its query and its user, and the other queries."""

# ruff: noqa: S608  every text in the SQL is a literal of ours or a name of ours

from __future__ import annotations

from searchblend.logs.duckdb.feed import Feed
from searchblend.logs.duckdb.scan import Scan, read_text
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.formats.layout import Sessions
from searchblend.logs.summary import BAD_LINE, CLICK_WITHOUT_QUERY


def yandex_rows(feed: Feed) -> str:
    """SELECT of every line as (kind, session, moment, page, id); ``id`` is the user, the query or the URL.

    ``kind`` is M, Q or C, and NULL if the line is none of them. DuckDB reads only the fields that are used.
    """
    lines = read_text(feed.names, [f"f{i}" for i in range(Sessions.rules.n_fields)], "\t", header=False)
    return f"""
        SELECT
            CASE WHEN session IS NOT NULL AND moment IS NOT NULL AND id IS NOT NULL AND (kind = 'M' OR page IS NOT NULL)
                THEN kind END AS kind,
            session, moment, page, id
        FROM (
            SELECT kind,
                {_id("f0")} AS session,
                {_id("CASE WHEN kind = 'M' THEN f2 ELSE f1 END")} AS moment,
                {_id("CASE WHEN kind <> 'M' THEN f3 END")} AS page,
                {_id("CASE WHEN kind = 'M' THEN f3 ELSE f4 END")} AS id
            FROM (
                SELECT *, CASE
                    WHEN f1 = 'M' AND f3 IS NOT NULL AND f4 IS NULL THEN 'M'
                    WHEN f2 IN ('Q', 'T') AND f5 IS NOT NULL THEN 'Q'
                    WHEN f2 = 'C' AND f4 IS NOT NULL AND f5 IS NULL THEN 'C'
                END AS kind
                FROM ({lines})
            )
        )
    """


def _id(field: str) -> str:
    """SQL: the number that a field spells as we would, else NULL. A cast alone takes ``+5`` and ``5.4`` for 5."""
    return f"CASE WHEN try_cast({field} AS UBIGINT)::VARCHAR = {field} THEN try_cast({field} AS UBIGINT) END"


def scan_yandex(rows: str, *, searches: bool) -> Scan:
    """The clicks in a table of such rows, and the lines that are no rows. Who clicked is said by the session.

    With ``searches`` a line is at the time of its query, its rank is the time of the click, and queries without a click
    are lines without URL; those of nobody are left out.
    """
    users = f"SELECT session, min(id) AS id, min(moment) AS day FROM {rows} WHERE kind = 'M' GROUP BY session"
    moment, rank = ("queries.moment", "clicks.moment::VARCHAR") if searches else ("clicks.moment", "NULL::VARCHAR")
    lines = f"""
        SELECT coalesce(users.id::VARCHAR, '') AS user, coalesce(queries.id::VARCHAR, '') AS query,
            clicks.id::VARCHAR AS url, {_time("clicks.session", moment)} AS time, {rank} AS rank,
            clicks.kind IS NULL AS is_broken
        FROM (SELECT * FROM {rows} WHERE kind = 'C' OR kind IS NULL) AS clicks
        LEFT JOIN ({users}) AS users USING (session)
        LEFT JOIN (
            SELECT session, page, arg_max(id, row(moment, id)) AS id, max(moment) AS moment
            FROM {rows} WHERE kind = 'Q' GROUP BY session, page
        ) AS queries USING (session, page)
    """
    if searches:
        lines += f"""
            UNION ALL SELECT users.id::VARCHAR, queries.id::VARCHAR, NULL, {_time("session", "moment")}, NULL, false
            FROM ({_without_click(rows)}) AS queries JOIN ({users}) AS users USING (session)
        """
    return Scan(
        lines,
        {"user": "user", "query": "query", "url": "url", "time": "time", "rank": "rank"},
        [(BAD_LINE, "is_broken"), (CLICK_WITHOUT_QUERY, "query = ''")],
        ascii_only=True,
        no_odd_bytes=True,
    )


def _time(session: str, moment: str) -> str:
    return f"printf('%05d %020d %020d', users.day, {session}, {moment})"


def _without_click(rows: str) -> str:
    clicked = f"SELECT session, page FROM {rows} WHERE kind = 'C'"
    return f"SELECT * FROM (SELECT * FROM {rows} WHERE kind = 'Q') ANTI JOIN ({clicked}) USING (session, page)"


def queries_without_click(session: DuckDBSession, rows: str) -> int:
    return int(session.value(f"SELECT count(*) FROM ({_without_click(rows)})"))
