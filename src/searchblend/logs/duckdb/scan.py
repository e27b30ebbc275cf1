"""Layouts in DuckDB: a scan that yields the fields of every line, and what is wrong with a line, if anything."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError, RunError
from searchblend.logs.duckdb.feed import Feed, Feeder
from searchblend.logs.duckdb.normal_forms import surely_usable_query, surely_usable_url
from searchblend.logs.duckdb.session import DuckDBSession, quoted, quoted_name
from searchblend.logs.formats.files import WHOLE, Span
from searchblend.logs.formats.gate import MOST_BLANK, SEPARATOR
from searchblend.logs.formats.judge import COUNT, MOST_COUNTED, NO, PROBLEMS, WITHOUT_URL, YES
from searchblend.logs.formats.layout import MAX_LINE, Columns, Delimited, JsonLines, ServerLog, Sessions
from searchblend.logs.formats.remote import LogFile
from searchblend.logs.formats.server_log import (
    LINE,
    LINE_FIELDS,
    NO_VALUE,
    PAGE_PART,
    REQUEST,
    SUCCESS,
    TIME,
    parameter_pattern,
)
from searchblend.logs.summary import (
    BAD_COUNT,
    BAD_LINE,
    BAD_OPTIN,
    CLICK_WITHOUT_QUERY,
    MISSING_USER,
    TOO_FEW_FIELDS,
    UNUSABLE_QUERY,
    UNUSABLE_URL,
)

ASCII_BLANKS_SQL: Final = "' ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"
_WIDE: Final = ("DATE", "TIMESTAMP_S", "TIMESTAMP_MS")
"""Types of times that reach further than a timestamp in microseconds."""
REJECTED_TABLE: Final = "rejected_lines"

Case = tuple[str, str]
"""a problem, and the SQL of the condition for it"""


@dataclass(frozen=True)
class Scan:
    """A SELECT over some files."""

    select: str
    roles: Mapping[str, str]
    """role → SQL of its string. User and query are never NULL in a line that is not broken; URL, time and rank may
    be."""
    broken: Sequence[Case] = ()
    """what is wrong with lines whose fields need not be checked; these conditions are never NULL"""
    no_query: str | None = None
    ascii_only: bool = False
    no_odd_bytes: bool = False

    def problem(self, *, host_only: bool) -> str:
        """SQL for the number of a line's problem, 0 if there is none. Nearly every line passes a few cheap tests."""
        query, url = self.roles["query"], self.roles.get("url")
        good = self._surely_has_user_and_query()
        unusable_query = f"{query} = {quoted(self.no_query or '')} OR NOT coalesce(query_is_usable({query}), false)"
        cases = [
            *self.broken,
            (MISSING_USER, f"trim({self.roles['user']}, {ASCII_BLANKS_SQL}) = ''"),
            (UNUSABLE_QUERY, unusable_query),
        ]
        if url is not None:
            cases.append((WITHOUT_URL, f"{url} = '' OR {url} IS NULL"))
        if "optin" in self.roles:
            good.append(f"{self._optin_answer()} IN {_listed(YES | NO)}")
            cases.append((BAD_OPTIN, f"NOT ({good[-1]})"))
        if url is not None:
            good.append(f"{url} <> ''")
            good += surely_usable_url(
                url, ascii_only=self.ascii_only, no_odd_bytes=self.no_odd_bytes, host_only=host_only
            )
            usable = f"{'host' if host_only else 'url'}_is_usable({url})"
            cases.append((UNUSABLE_URL, f"NOT coalesce({usable}, false)"))
            # Many lines only lack a URL: they need not wait for the slower tests either.
            cases.insert(0, (WITHOUT_URL, self._surely_lacks_only(url)))
        if "count" in self.roles:
            good.append(self.has_count())
            cases.append((BAD_COUNT, f"NOT ({good[-1]})"))
        whens = "\n".join(f"WHEN {condition} THEN {PROBLEMS.index(problem)}" for problem, condition in cases)
        return f"(CASE WHEN {' AND '.join(good)} THEN 0 {whens} ELSE 0 END)::UTINYINT"

    def is_kept(self) -> str:
        """SQL: anything but a line that is good at a glance and only lacks a URL; those need not be kept to be counted.

        A CASE, since DuckDB stops at the first condition that fails in a CASE, and not under a NOT.
        """
        url = self.roles.get("url")
        if url is None:
            return "true"
        return f"CASE WHEN {self._surely_lacks_only(url)} THEN false ELSE true END"

    def _surely_lacks_only(self, url: str) -> str:
        return " AND ".join([f"({url} = '' OR {url} IS NULL)", *self._surely_has_user_and_query()])

    def _surely_has_user_and_query(self) -> list[str]:
        query = self.roles["query"]
        return [
            *(f"NOT ({condition})" for _, condition in self.broken),
            f"{self.roles['user']} >= '!'",
            *surely_usable_query(query, ascii_only=self.ascii_only),
            *([f"{query} <> {quoted(self.no_query)}"] if self.no_query is not None else []),
        ]

    def _optin_answer(self) -> str:
        return f"lower(trim(coalesce({self.roles['optin']}, ''), ' '))"

    def optin(self) -> str:
        return f"{self._optin_answer()} IN {_listed(YES)}"

    def has_count(self) -> str:
        """SQL: whether the count of a line is one."""
        return f"regexp_full_match(trim(coalesce({self.roles['count']}, ''), ' '), '{COUNT}')"

    def count(self) -> str:
        """SQL: how many searches a line stands for; NULL if its count is none."""
        if "count" not in self.roles:
            return "1::BIGINT"
        stated = f"coalesce(try_cast(trim({self.roles['count']}, ' ') AS BIGINT), {MOST_COUNTED})"
        return f"CASE WHEN {self.has_count()} THEN least({stated}, {MOST_COUNTED}) END"

    def digest(self, key: str) -> str:
        """SQL: the keyed MD5 of all that distinguishes the lines of a user, as a number (see ``engine``)."""
        parts = ", chr(31), ".join([quoted(key), *(self.roles.get(role, "''") for role in _HASHED)])
        return f"md5_number(concat({parts}))"  # to concat, NULL is an empty string


_HASHED: Final = ("user", "time", "query", "url", "rank")


def scan_delimited(layout: Delimited, feed: Feed) -> Scan:
    """Fields f0, f1, … of every line; NULL means that the line ended before this field."""
    names = [f"f{i}" for i in range(layout.n_fields)]
    delimiter = SEPARATOR if feed.gated else layout.delimiter
    too_few = f"f{(layout.least_fields or layout.n_fields) - 1} IS NULL"
    if layout.may_end_after is not None:
        too_few += f" AND (f{layout.may_end_after} IS NOT NULL OR f{layout.may_end_after - 1} IS NULL)"
    roles = {role: names[position] for role, position in layout.positions.items()}
    if layout.may_end_after is not None and layout.positions.get("query", 0) >= layout.may_end_after:
        roles["query"] = f"coalesce({roles['query']}, '')"
    return Scan(
        read_text(feed.names, names, delimiter, header=layout.header),
        roles | _held_by_folders(layout),
        [(TOO_FEW_FIELDS, too_few)],
        layout.no_query,
        feed.ascii_only and not layout.in_folders,
        feed.no_odd_bytes and not layout.in_folders,
    )


def _held_by_folders(layout: Delimited | JsonLines | Columns | ServerLog) -> dict[str, str]:
    """role → SQL of what the names of the files' folders say, which need not be ASCII where all lines are."""
    return {role: quoted(value) for role, value in layout.in_folders.items()}


def scan_json(layout: JsonLines, feed: Feed) -> Scan:
    """The members of every line's object; members that are themselves objects or lists make a line unusable."""
    paths = {role: quoted('$."' + key.replace('"', '\\"') + '"') for role, key in layout.keys.items()}
    members = ", ".join(f"coalesce(line->>{path}, '') AS {role}" for role, path in paths.items())
    nested = " OR ".join(f"json_type(line, {path}) IN ('OBJECT', 'ARRAY')" for path in paths.values())
    lines = read_text(feed.names, ["line"], SEPARATOR, header=False)
    valid = (
        f"CASE WHEN json_valid(line) THEN json_type(line) = 'OBJECT' AND NOT coalesce({nested}, false) ELSE false END"
    )
    good = f"SELECT CASE WHEN {valid} THEN line END AS line FROM ({lines})"
    return Scan(
        f"SELECT {members}, line IS NULL AS is_broken FROM ({good})",
        {role: role for role in paths} | _held_by_folders(layout),
        [(BAD_LINE, "is_broken")],
    )


def scan_columns(
    layout: Columns, files: Sequence[Path | str], *, places: bool = False, rows: Span = WHOLE, mended: str | None = None
) -> Scan:
    """The columns of Parquet files, or of a table in memory, as strings; points in time as microseconds.

    ``places`` adds the number of the file and of the row in it; ``rows`` are those of the one file that is read;
    ``mended`` is the table that ``mended_rows`` made of them.
    """
    numbered = places or rows.end is not None
    table = mended or layout.table or read_parquet(files, f"file_row_number = {numbered}")
    if places and layout.table is not None:
        table = f"(SELECT *, 0 AS file_index, row_number() OVER () - 1 AS file_row_number FROM {table})"
    texts = dict.fromkeys(layout.columns) if mended else column_texts(layout)
    columns = [f"coalesce({text or role}, '') AS {role}" for role, text in texts.items()]
    columns += ["file_index", "file_row_number"] if places else []
    select = f"SELECT {', '.join(columns)} FROM {table}{'' if mended else _in_span(rows)}"
    return Scan(select, {role: role for role in layout.columns} | _held_by_folders(layout))


def column_texts(layout: Columns) -> dict[str, str]:
    """role → SQL of its column as a string."""
    return {role: column_text(name, layout.types[role]) for role, name in layout.columns.items()}


def _in_span(rows: Span) -> str:
    if rows.end is None:
        return ""
    return f" WHERE file_row_number >= {rows.start} AND file_row_number < {rows.end}"


def mended_rows(
    session: DuckDBSession, texts: Mapping[str, str], files: Sequence[Path | str], rows: Span = WHOLE
) -> str:
    """Makes a table of strings of Parquet files, by role, in which a string is missing that is not UTF-8: else it would
    refuse the files, and so all other rows.

    The database can leave out such bytes, or put a letter in the place of each: a string that then differs had some.
    """
    strings = ", ".join(f"{text} AS {role}" for role, text in texts.items())
    shorter, longer = (
        f"(SELECT {strings}, file_index, file_row_number FROM "
        f"{read_parquet(files, 'file_row_number = true', f'utf8_validation = {quoted(way)}')}{_in_span(rows)})"
        for way in ("ignore", "replace")
    )
    sound = ", ".join(f"CASE WHEN shorter.{role} = longer.{role} THEN longer.{role} END AS {role}" for role in texts)
    return session.make(
        "mended",
        f"SELECT {sound}, file_index, file_row_number "
        f"FROM {longer} AS longer JOIN {shorter} AS shorter USING (file_index, file_row_number)",
    )


def scan_server_log(layout: ServerLog, feed: Feed) -> Scan:
    """The searches and clicks among the requests, and the lines that are no requests; others are left out."""
    fields = ", ".join(quoted(name) for name in LINE_FIELDS)
    asked = quoted(_whole(parameter_pattern(layout.query_parameter)))
    lines = read_text(feed.names, ["line"], SEPARATOR, header=False)
    requests = f"SELECT unnest(regexp_extract(line, {quoted(_whole(LINE))}, [{fields}])) FROM ({lines})"
    got = f"""
        SELECT *, CASE WHEN regexp_full_match(status, '{SUCCESS}')
            THEN regexp_extract(request, {quoted(_whole(REQUEST))}, 1) ELSE '' END AS target
        FROM ({requests})
    """
    searches = f"""
        SELECT *, regexp_extract(target, {asked}, 1) AS here,
            CASE WHEN target = '' OR here <> '' OR regexp_full_match(target, {quoted(PAGE_PART)}) THEN ''
                ELSE regexp_extract(referrer, {asked}, 1) END AS there
        FROM ({got})
    """
    moment = f"(epoch_us(try_strptime(time, {quoted(TIME)})) // 1000000)::VARCHAR"
    select = f"""
        SELECT nullif({layout.user}, '{NO_VALUE}') AS user, decoded_query(here || there) AS query,
            CASE WHEN here = '' THEN target END AS url, coalesce({moment}, time) AS time, address = '' AS is_broken
        FROM ({searches}) WHERE address = '' OR here <> '' OR there <> ''
    """
    roles = {"user": "coalesce(user, '')", "query": "query", "time": "time"} | (
        {"url": "url"} if layout.has_urls else {}
    )
    return Scan(select, roles | _held_by_folders(layout), [(BAD_LINE, "is_broken")])


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"


def column_text(name: str, kind: str) -> str:
    """SQL: a column of a table as a string."""
    column = quoted_name(name)
    if kind.startswith(_WIDE):  # one person's date may lie beyond all timestamps
        column = f"epoch_us(try_cast({column} AS TIMESTAMP))"
    elif kind.startswith("TIMESTAMP"):
        column = f"epoch_us({column})"
    return f"{column}::VARCHAR"


def yandex_rows(feed: Feed) -> str:
    """SELECT of every line as (kind, session, moment, page, id); ``id`` is the user, the query or the URL.

    ``kind`` is M, Q or C, and NULL if the line is none of them. DuckDB reads only the fields that are used.
    """
    lines = read_text(feed.names, [f"f{i}" for i in range(Sessions.n_fields)], "\t", header=False)
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
    """The clicks in a table of such rows, and the lines that are not rows. The session names who clicked.

    With ``searches`` a line is at the time of its query, its rank is the time of the click, and queries without a click
    are lines without URL; those without a user are left out.
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


def read_text(files: Sequence[Path | str], names: Sequence[str], delimiter: str, *, header: bool) -> str:
    """SELECT of the fields of text files that passed the gate.

    Nothing is left to DuckDB's guesses: no quotes, no comments, no word for NULL (a line feed cannot occur in a
    field). A line with too many fields is noted, without its text, in the table of rejected lines. To the length of a
    line DuckDB adds the blank lines before it, so it may be longer than any that passes the gate.
    """
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    return f"""
        SELECT * FROM read_csv([{_paths(files)}],
            auto_detect = false, columns = {{{columns}}}, header = {str(header).lower()},
            delim = {quoted(delimiter)}, quote = '', escape = '', comment = '', nullstr = chr(10), new_line = '\\n',
            compression = 'none', null_padding = true, strict_mode = true, max_line_size = {MAX_LINE + MOST_BLANK},
            ignore_errors = true, store_rejects = true, rejects_limit = 0, rejects_line_size_limit = 1,
            rejects_table = '{REJECTED_TABLE}', rejects_scan = '{REJECTED_TABLE}_scans')
    """


def _paths(files: Sequence[Path | str]) -> str:
    return ", ".join(quoted(os.fspath(file)) for file in files)


def _listed(strings: frozenset[str]) -> str:
    return "(" + ", ".join(quoted(string) for string in sorted(strings)) + ")"


def read_parquet(files: Sequence[Path | str], *options: str) -> str:
    """The table function. What the names of folders hold is in the layout, if an option names it."""
    return f"read_parquet({', '.join([f'[{_paths(files)}]', 'hive_partitioning = false', *options])})"


def parquet_types(session: DuckDBSession, path: LogFile) -> dict[str, str]:
    """name → kind of a file's columns."""
    link = parquet_name(session, Feeder(session.directory, name="schema"), path)
    try:
        return session.types(read_parquet([link]))
    except InputError:
        raise
    except RunError as error:
        raise InputError(path, "the Parquet file cannot be read: cut off or damaged") from error
    finally:
        if isinstance(link, Path):
            link.unlink()


def parquet_name(session: DuckDBSession, feeder: Feeder, file: LogFile) -> Path | str:
    """A name of ours, under which the database finds a Parquet file."""
    return feeder.link(file) if isinstance(file, Path) else session.remote_name(file)
