"""The SQL of reading a text log: lines → fields → what is wrong with a line, if anything."""

# ruff: noqa: S608  every text in the SQL is a literal of ours, a name of ours, or quoted

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from searchblend.logs import normal_forms
from searchblend.logs.duckdb_session import quoted
from searchblend.logs.gate import MAX_LINE, SEPARATOR
from searchblend.logs.layout import Layout
from searchblend.logs.summary import BAD_OPTIN, MISSING_USER, TOO_FEW_FIELDS, UNUSABLE_QUERY, UNUSABLE_URL

WITHOUT_URL: Final = "without_url"
PROBLEMS: Final = ("", TOO_FEW_FIELDS, MISSING_USER, UNUSABLE_QUERY, BAD_OPTIN, WITHOUT_URL, UNUSABLE_URL)
"""What can be wrong with a line's fields; the first that applies is its problem. A small number stands for each."""
REJECTED_TABLE: Final = "rejected_lines"
REJECTED_SCANS: Final = "rejected_scans"

_YES: Final = "('1', 'true', 't', 'yes', 'y', 'on')"
_NO: Final = "('0', 'false', 'f', 'no', 'n', 'off', '')"


def fields_of(layout: Layout, names: Sequence[Path], *, gated: bool) -> str:
    """SELECT of the fields f0, f1, … of every line, as text.

    Nothing is left to DuckDB's guesses: no quotes, no comments, no word for NULL (a line feed cannot occur in a
    field), so that NULL means one thing: the line ended before this field. A line with too many fields is
    noted, without its text, in the table of rejected lines.
    """
    columns = ", ".join(f"'f{i}': 'VARCHAR'" for i in range(layout.n_fields))
    files = ", ".join(quoted(os.fspath(name)) for name in names)
    delimiter = SEPARATOR if gated else layout.delimiter
    return f"""
        SELECT * FROM read_csv([{files}],
            auto_detect = false, columns = {{{columns}}}, header = {str(layout.header).lower()},
            delim = {quoted(delimiter)}, quote = '', escape = '', comment = '', nullstr = chr(10), new_line = '\\n',
            compression = 'none', null_padding = true, strict_mode = true, max_line_size = {MAX_LINE + 1},
            ignore_errors = true, store_rejects = true, rejects_limit = 0, rejects_line_size_limit = 1,
            rejects_table = '{REJECTED_TABLE}', rejects_scan = '{REJECTED_SCANS}')
    """


def roles_of(layout: Layout) -> Mapping[str, str]:
    """Role → SQL of its text; what a short line does not have is empty."""
    required = layout.may_end_after or layout.n_fields
    return {
        role: f"f{position}" if position < required else f"coalesce(f{position}, '')"
        for role, position in layout.positions.items()
    }


def problem_of(layout: Layout, *, host_only: bool) -> str:
    """SQL for the number of a line's problem, 0 if there is none. Cheap tests first: most lines are good."""
    role = roles_of(layout)
    user, query = role["user"], role["query"]
    unusable_query = f"NOT {normal_forms.surely_usable_query(query)} AND NOT query_is_usable({query})"
    if layout.no_query is not None:
        unusable_query = f"{query} = {quoted(layout.no_query)} OR ({unusable_query})"
    cases = [
        (TOO_FEW_FIELDS, _too_few_fields(layout)),
        (MISSING_USER, f"{user} < '!' AND trim({user}, ' \t\v\f\r') = ''"),
        (UNUSABLE_QUERY, unusable_query),
    ]
    if "optin" in role:
        cases.append(
            (BAD_OPTIN, f"lower(trim({role['optin']})) NOT IN {_YES} AND lower(trim({role['optin']})) NOT IN {_NO}")
        )
    if "url" in role:
        url = role["url"]
        check = "host_is_usable" if host_only else "url_is_usable"
        cases += [
            (WITHOUT_URL, f"{url} = ''"),
            (UNUSABLE_URL, f"NOT {normal_forms.plain_url(url)} AND NOT {check}({url})"),
        ]
    whens = "\n".join(f"WHEN {condition} THEN {PROBLEMS.index(problem)}" for problem, condition in cases)
    return f"(CASE {whens} ELSE 0 END)::UTINYINT"


def _too_few_fields(layout: Layout) -> str:
    last = f"f{layout.n_fields - 1} IS NULL"
    if layout.may_end_after is None:
        return last
    short = layout.may_end_after
    return f"{last} AND (f{short} IS NOT NULL OR f{short - 1} IS NULL)"


def content_digest(roles: Mapping[str, str], key: str) -> str:
    """SQL: keyed MD5 of everything that tells one line of a user from another, as text.

    Built from texts only, so that every engine computes the same; MD5 because every engine has it. It orders
    lines at random and protects nothing.
    """
    parts = [quoted(key), *(roles.get(role, "''") for role in ("user", "time", "query", "url", "rank"))]
    return f"md5(concat_ws(chr(31), {', '.join(parts)}))"


def optin_of(roles: Mapping[str, str]) -> str:
    return f"lower(trim({roles['optin']})) IN {_YES}" if "optin" in roles else "NULL::BOOLEAN"


def score(draw: int) -> str:
    """SQL: the smallest hash that the n repetitions of a line have in a draw with replacement.

    The first repetition's hash in the first draw is the digest itself; all others are hashed from it. Lines with a
    problem have no digest.
    """
    if draw == 1:
        return f"CASE WHEN n = 1 OR digest IS NULL THEN digest ELSE ({smallest_scores(1)})[1] END"
    hashes = f"[md5(digest || ':' || i || '/{draw}') FOR i IN range(1, n + 1)]"
    return f"CASE WHEN digest IS NOT NULL THEN list_min({hashes}) END"


def smallest_scores(at_most: int) -> str:
    """SQL: the smallest hashes, ascending, that the n repetitions of a line have in the first draw."""
    hashes = "[CASE WHEN i = 1 THEN digest ELSE md5(digest || ':' || i) END FOR i IN range(1, n + 1)]"
    return f"CASE WHEN n = 1 OR digest IS NULL THEN [digest] ELSE list_sort({hashes})[:{at_most}] END"
