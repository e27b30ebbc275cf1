"""UBI in DuckDB: rows of both tables, and the clicks among them joined to their queries within each user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError, RunError
from searchblend.logs.duckdb.feed import Feed
from searchblend.logs.duckdb.scan import ASCII_BLANKS_SQL, Scan, column_text, mended_rows, read_parquet, read_text
from searchblend.logs.duckdb.session import DuckDBSession, quoted, quoted_name
from searchblend.logs.formats.gate import SEPARATOR
from searchblend.logs.formats.layout import UBI_CLICK, UBI_OPTIONAL, UbiTable
from searchblend.logs.summary import BAD_LINE, CLICK_WITHOUT_QUERY

UBI_ROWS: Final = "ubi_rows"
"""the table (kind, user, id, query, url, time, rank); ``kind`` is Q, C or E, and NULL if a line is not a row"""
_TIME: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
_HAS_USER: Final = f"trim(user, {ASCII_BLANKS_SQL}) <> ''"
_NAMED: Final = f"{_HAS_USER} AND id <> ''"
"""SQL: a row that may have to do with others. Rows without a user belong to no one, each by itself."""
_COLUMNS: Final = ("user", "id", "query", "url", "time", "rank")


def ubi_rows(session: DuckDBSession, layout: UbiTable, feed: Feed, *, mended: bool = False) -> str:
    """SELECT of the rows of some files of one table; of Parquet, perhaps without the strings that are not UTF-8."""
    if layout.kinds is None:
        return _rows(layout, *_of_json(layout, feed))
    parts = []
    for name in feed.names:
        members = _of_parquet(session, layout, name)
        if mended:
            parts.append(_rows(layout, mended_rows(session, members, [name]), {role: role for role in members}))
        else:
            parts.append(_rows(layout, read_parquet([name]), members))
    return " UNION ALL ".join(parts)


def _rows(layout: UbiTable, table: str, members: Mapping[str, str], is_broken: str = "false") -> str:
    action = f"coalesce({members.get('action', 'NULL')}, '')"
    kind = "'Q'" if layout.is_queries else f"CASE WHEN {action} = {quoted(UBI_CLICK)} THEN 'C' ELSE 'E' END"
    if "time" in members:
        members = {**members, "time": _time(members["time"])}
    columns = ", ".join(f"coalesce({members.get(name, 'NULL')}, '') AS {name}" for name in _COLUMNS)
    return f"SELECT CASE WHEN {is_broken} THEN NULL ELSE {kind} END AS kind, {columns} FROM {table}"


def _time(text: str) -> str:
    """SQL: a time as Elasticsearch writes it in microseconds, any other as it stands."""
    moment = f"CASE WHEN regexp_full_match({text}, '{_TIME}') THEN epoch_us(try_cast({text} AS TIMESTAMPTZ)) END"
    return f"coalesce({moment}::VARCHAR, {text})"


def _of_json(layout: UbiTable, feed: Feed) -> tuple[str, dict[str, str], str]:
    """The documents, which may be as a search engine exports them, in a member ``_source``.

    All members of a line are asked for at once: else DuckDB would read a document anew for each.
    """
    lines = read_text(feed.names, ["line"], SEPARATOR, header=False)
    plain = [path.split(".") for path in layout.members.values()]
    listed = ", ".join(quoted(_json_path(path)) for path in (*plain, *(["_source", *path] for path in plain)))
    n = len(plain)
    documents = f"""(
        SELECT kinds IS NULL OR kinds[1] <> 'OBJECT' OR list_has_any({_half("kinds[3:]", n)}, ['OBJECT', 'ARRAY'])
                AS is_broken, {_half("strings", n)} AS members
        FROM (
            SELECT json_type(line, ['$', '$._source', {listed}]) AS kinds,
                json_extract_string(line, [{listed}]) AS strings
            FROM (SELECT CASE WHEN json_valid(line) THEN line END AS line FROM ({lines}))
        )
    )"""
    return documents, {role: f"members[{place}]" for place, role in enumerate(layout.members, 1)}, "is_broken"


def _half(both: str, n: int) -> str:
    """SQL: of a list the part about the members of ``_source``, if there is one, or else of the line itself."""
    return f"CASE WHEN kinds[2] = 'OBJECT' THEN {both}[{n + 1}:] ELSE {both}[:{n}] END"


def _json_path(parts: Sequence[str]) -> str:
    return "$" + "".join('."' + part.replace('"', '\\"') + '"' for part in parts)


def _of_parquet(session: DuckDBSession, layout: UbiTable, name: Path | str) -> dict[str, str]:
    """role → SQL, by the schema of one file. A member may be a column, or be in one that is a STRUCT, a MAP or JSON."""
    members = {}
    for role, path in layout.members.items():
        expression = _member(layout.kinds or {}, path)
        if expression is not None and _is_there(session, expression, name):
            members[role] = expression
        elif role not in UBI_OPTIONAL:
            raise InputError(layout.label, f"a Parquet file has no '{path}'")
    return members


def _member(kinds: Mapping[str, str], path: str) -> str | None:
    if path in kinds:
        return column_text(path, kinds[path])
    top, *inside = path.split(".")
    column, kind = quoted_name(top), kinds.get(top)
    if kind is None or not inside:
        return None
    if kind in ("VARCHAR", "JSON"):
        return f"CASE WHEN json_valid({column}) THEN {column}->>{quoted(_json_path(inside))} END"
    return column + "".join(f"[{quoted(part)}]" for part in inside) + "::VARCHAR"


def _is_there(session: DuckDBSession, expression: str, name: Path | str) -> bool:
    """Whether a schema has what SQL names; no row is read for it."""
    try:
        session.types(f"(SELECT {expression} AS member FROM {read_parquet([name])})")
    except InputError:
        raise
    except RunError:
        return False
    return True


def scan_ubi(*, has_urls: bool) -> Scan:
    """The clicks, and the queries without one, in ``ubi_rows``; and the lines that are not rows.

    A click is at the time of its query. Of queries of one user with one id, it belongs to the latest.
    """
    queries = f"""
        SELECT user, id, arg_max(query, row(time, query)) AS query, max(time) AS time
        FROM {UBI_ROWS} WHERE kind = 'Q' AND {_NAMED} GROUP BY user, id
    """
    lines = f"""
        SELECT clicks.user AS user, coalesce(queries.query, '') AS query, clicks.url AS url,
            coalesce(queries.time, '') AS time, clicks.rank AS rank, kind IS NULL AS is_broken,
            queries.user IS NULL AND has_user AS is_alone
        FROM (SELECT *, {_HAS_USER} AS has_user FROM {UBI_ROWS} WHERE kind = 'C' OR kind IS NULL) AS clicks
        LEFT JOIN ({queries}) AS queries USING (user, id)
        UNION ALL SELECT user, query, NULL, time, NULL, false, false FROM ({_without_click()})
    """
    roles = {role: role for role in ("user", "query", "url", "time", "rank") if has_urls or role != "url"}
    return Scan(lines, roles, [(BAD_LINE, "is_broken"), (CLICK_WITHOUT_QUERY, "is_alone")])


def _without_click() -> str:
    clicked = f"SELECT user, id FROM {UBI_ROWS} WHERE kind = 'C' AND {_NAMED}"
    return f"SELECT * FROM (SELECT * FROM {UBI_ROWS} WHERE kind = 'Q') ANTI JOIN ({clicked}) USING (user, id)"


def n_lines(session: DuckDBSession) -> int:
    """How many lines ``scan_ubi`` has."""
    clicks = f"SELECT count(*) FROM {UBI_ROWS} WHERE kind = 'C' OR kind IS NULL"
    return int(session.value(f"SELECT ({clicks}) + (SELECT count(*) FROM ({_without_click()}))"))
