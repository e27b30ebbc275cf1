"""The normal form of queries and URLs in SQL: plain ASCII by expressions, everything else once through Python.

``searchblend.core.normalization`` is the rule. Here are only shortcuts, measured to pay, for strings on which it is
certain to do something simple. A string that no shortcut covers *needs Python*: it goes through the rule itself, each
distinct one once. There is one set of shortcuts: Spark's executors read with DuckDB too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from searchblend.core.normalization import normalize, normalize_url
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.formats.judge import MAX_LENGTH, is_short

ODD_BYTES: Final = b"[]\\\t\v\f"
"""Bytes that can spoil a host, or are blanks other than the space. Where no field of a file has one of them
(``no_odd_bytes``), a shorter test of URLs will do."""
COMMON: Final = (
    (0x21, 0x7E),
    (0xA1, 0x24F),  # Latin
    (0x300, 0x36F),  # combining marks
    (0x391, 0x3A1),  # Greek
    (0x3A3, 0x3CE),
    (0x400, 0x481),  # Cyrillic
    (0x48A, 0x52F),
    (0x5D0, 0x5EA),  # Hebrew
    (0x620, 0x66F),  # Arabic
    (0x900, 0x97F),  # Devanagari
    (0xE01, 0xE3A),  # Thai
    (0x2010, 0x2027),  # dashes and quotation marks
    (0x20A0, 0x20BF),  # currencies
    (0x3041, 0x3096),  # Hiragana
    (0x30A0, 0x30FF),  # Katakana
    (0x4E00, 0x9FFC),  # Chinese characters
    (0xAC00, 0xD7A3),  # Hangul
    (0xFB00, 0xFB06),  # ligatures
    (0xFF01, 0xFF5E),  # wide Latin
    (0x1F300, 0x1F64F),  # pictures
)
"""Code points of which a usable string may consist, blanks but for the first: its normal form exists and is not
empty."""

_BATCH: Final = 1 << 18
"""How many strings go through Python at a time."""
_BLANKS: Final = r"[\t-\r ]+"
_COMMON: Final = "".join(rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in COMMON)
_COMMON_STRING: Final = rf"[{_COMMON}][{_COMMON}\t-\r ]*"
_WEB_HOST: Final = r"[a-z0-9_-]+\.[a-z0-9._-]+"
_PLAIN_URL: Final = rf"https?://{_WEB_HOST}(?:/[!-\"$-~]+|\?[!-\"$-~]*)?"
"""Its own normal form: lower-case scheme and host, no port, no fragment, not the path / alone."""


def surely_usable_query(query: str, *, ascii_only: bool) -> list[str]:
    """SQL conditions: not long, the first character is not a blank (blanks and controls are below '!'), common
    letters."""
    conditions = [f"{query} >= '!'", f"strlen({query}) <= {MAX_LENGTH}"]
    if ascii_only:
        return conditions
    return [*conditions, f"({_is_ascii(query)} OR regexp_full_match({query}, '{_COMMON_STRING}'))"]


def surely_usable_url(url: str, *, ascii_only: bool, no_odd_bytes: bool, host_only: bool) -> list[str]:
    """SQL conditions: a web address whose host is free of delimiters, or a string without ``://`` that is not blank."""
    ways = [_is_plain_url(url)]
    if no_odd_bytes and not host_only:
        is_ascii = "" if ascii_only else f" AND {_is_ascii(url)}"
        ways = [
            f"({url} LIKE '{scheme}%' AND {url} NOT LIKE '{scheme}%:%' AND NOT contains({url}, ' '){is_ascii})"
            for scheme in ("http://", "https://")
        ]
    if not host_only:
        ways.append(f"({url} >= '!' AND {_is_ascii(url)} AND NOT contains({url}, '://'))")
    return [f"strlen({url}) <= {MAX_LENGTH}", f"({' OR '.join(ways)})"]


class Joined(NamedTuple):
    """SQL of a column's normal form, of the join that it needs, and the table that is joined, if any."""

    form: str
    join: str = ""
    table: str | None = None


@dataclass(frozen=True)
class NormalForm:
    """How a column is brought to normal form."""

    column: str
    needs_python: str
    """SQL condition: no shortcut covers the string"""
    shortcut: str
    """SQL of the normal form of every other string"""
    rule: Callable[[str], str | None]
    """what a string that needs Python becomes; None if it is unusable"""

    def joined(self, session: DuckDBSession, strings: str) -> Joined:
        """For the column in a SELECT.

        Fills a table (string, form) of the distinct strings that need Python, a batch at a time.
        """
        strange, forms = session.new_name("strange"), session.new_name(f"{self.column}_forms")
        session.execute(
            f"CREATE TEMP TABLE {strange} AS SELECT DISTINCT {self.column} AS string FROM ({strings}) "
            f"WHERE {self.needs_python}"
        )
        n = int(session.value(f"SELECT count(*) FROM {strange}"))
        if not n:
            session.execute(f"DROP TABLE {strange}")
            return Joined(self.shortcut)
        session.execute(f"CREATE TEMP TABLE {forms} (string VARCHAR, form VARCHAR)")
        for first in range(0, n, _BATCH):
            rows = session.rows(f"SELECT string FROM {strange} WHERE rowid BETWEEN {first} AND {first + _BATCH - 1}")
            batch = [string for (string,) in rows]
            session.execute(
                f"INSERT INTO {forms} SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[])",
                [batch, [self.rule(string) for string in batch]],
            )
        session.execute(f"DROP TABLE {strange}")
        form = f"CASE WHEN {forms}.string IS NULL THEN {self.shortcut} ELSE {forms}.form END"
        return Joined(form, f" LEFT JOIN {forms} ON {self.column} = {forms}.string", forms)


def query_form(column: str = "query", *, no_odd_bytes: bool = False) -> NormalForm:
    return NormalForm(column, query_needs_python(column), normal_ascii_query(column, no_odd_bytes), normalize)


def url_form(column: str = "url", *, host_only: bool) -> NormalForm:
    if host_only:
        host = f"regexp_extract({column}, '^https?://({_WEB_HOST})', 1)"
        return NormalForm(column, f"NOT {_is_plain_url(column)}", host, partial(normalize_url, host_only=True))
    no_scheme = f"regexp_full_match({column}, '[!-~]+') AND NOT contains({column}, '://')"
    return NormalForm(column, f"NOT ({_is_plain_url(column)} OR ({no_scheme}))", column, normalize_url)


def suggestion_form() -> NormalForm:
    """Unlike a query, a suggestion has not been judged before: it may be too long, or nothing but blanks."""
    column = "suggestion"
    sure = " AND ".join([_is_ascii(column), *surely_usable_query(column, ascii_only=True)])
    return NormalForm(column, f"NOT ({sure})", normal_ascii_query(column), _usable_suggestion)


def _usable_suggestion(suggestion: str) -> str | None:
    return normalize(suggestion) if is_short(suggestion) else None


def query_needs_python(query: str) -> str:
    return f"NOT ({_is_ascii(query)})"


def normal_ascii_query(query: str, no_odd_bytes: bool = False) -> str:
    """SQL: lower case, single blanks. A file without odd bytes has hardly any blanks but single spaces."""
    squeezed = f"lower(trim(regexp_replace({query}, '{_BLANKS}', ' ', 'g'), ' '))"
    if not no_odd_bytes:
        return squeezed
    ends = f"starts_with({query}, ' ') OR suffix({query}, ' ')"  # trim takes longer than all of this together
    blanks = f"{ends} OR contains({query}, '  ') OR contains({query}, chr(13))"
    return f"CASE WHEN {blanks} THEN {squeezed} ELSE lower({query}) END"


def normal_table(
    session: DuckDBSession, name: str, source: str, columns: Sequence[str], forms: Sequence[NormalForm]
) -> None:
    """Makes a copy of a table with some of its columns as they are, and others in normal form.

    Args:
        session: the database
        name: of the copy
        source: a table, or a SELECT in parentheses with a name
        columns: what stays as it is
        forms: the columns in normal form
    """
    joined_by = {form.column: form.joined(session, f"SELECT {form.column} FROM {source}") for form in forms}
    selected = [*columns, *(f"{joined.form} AS {column}" for column, joined in joined_by.items())]
    joins = "".join(joined.join for joined in joined_by.values())
    session.execute(f"CREATE TEMP TABLE {name} AS SELECT {', '.join(selected)} FROM {source}{joins}")
    for joined in joined_by.values():
        if joined.table is not None:
            session.execute(f"DROP TABLE {joined.table}")


def _is_ascii(string: str) -> str:
    return f"length({string}) = strlen({string})"


def _is_plain_url(url: str) -> str:
    return f"regexp_full_match({url}, '{_PLAIN_URL}')"
