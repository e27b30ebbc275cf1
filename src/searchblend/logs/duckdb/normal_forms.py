"""The normal form of queries and URLs in SQL: plain ASCII by expressions, everything else once through Python.

``searchblend.core.normalization`` is the rule. Here are only shortcuts for texts on which it is certain to do something
simple. A text that no shortcut covers is *hard*: it goes through the Python function, each distinct one once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from searchblend.core.normalization import normalize, normalize_url

MAX_TEXT: Final = 2048
"""Longer queries and URLs (in bytes) are unusable: NFKC takes time quadratic in a run of combining marks."""
AWKWARD: Final = b"[]\\\t\v\f"
"""Bytes that can spoil a host, or are blanks other than the space. In a *tame* file no field has one of them, and a
shorter test of URLs will do."""
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
"""Code points of which a usable text may consist, blanks but for the first: its normal form exists and is not empty."""

_CACHED: Final = 1 << 17
_BLANKS: Final = r"[\t-\r ]+"
_COMMON: Final = "".join(rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in COMMON)
_COMMON_TEXT: Final = rf"[{_COMMON}][{_COMMON}\t-\r ]*"
_WEB_HOST: Final = r"[a-z0-9_-]+\.[a-z0-9._-]+"
_PLAIN_URL: Final = rf"https?://{_WEB_HOST}(?:/[!-\"$-~]+|\?[!-\"$-~]*)?"
"""Its own normal form: lower-case scheme and host, no port, no fragment, not the path / alone."""


def surely_usable_query(text: str, *, ascii_file: bool) -> list[str]:
    """SQL conditions: not long, the first character is no blank (blanks and controls are below '!'), common letters."""
    conditions = [f"{text} >= '!'", f"strlen({text}) <= {MAX_TEXT}"]
    return (
        conditions if ascii_file else [*conditions, f"({_ascii(text)} OR regexp_full_match({text}, '{_COMMON_TEXT}'))"]
    )


def surely_usable_url(url: str, *, ascii_file: bool, tame_file: bool, host_only: bool) -> list[str]:
    """SQL conditions: a web address whose host is free of delimiters, or a text without ``://`` that is not blank."""
    ways = [_is_plain_url(url)]
    if tame_file and not host_only:
        ascii_only = "" if ascii_file else f" AND {_ascii(url)}"
        ways = [
            f"({url} LIKE '{scheme}%' AND {url} NOT LIKE '{scheme}%:%' AND NOT contains({url}, ' '){ascii_only})"
            for scheme in ("http://", "https://")
        ]
    if not host_only:
        ways.append(f"({url} >= '!' AND {_ascii(url)} AND NOT contains({url}, '://'))")
    return [f"strlen({url}) <= {MAX_TEXT}", f"({' OR '.join(ways)})"]


def query_is_hard(text: str) -> str:
    return f"NOT ({_ascii(text)})"


def suggestion_is_hard(text: str) -> str:
    return f"NOT ({' AND '.join([_ascii(text), *surely_usable_query(text, ascii_file=True)])})"


def normal_ascii_query(text: str, *, tame_file: bool = False) -> str:
    """SQL: lower case, single blanks. A tame file has hardly any blanks but single spaces."""
    squeezed = f"lower(trim(regexp_replace({text}, '{_BLANKS}', ' ', 'g'), ' '))"
    if not tame_file:
        return squeezed
    ends = f"starts_with({text}, ' ') OR suffix({text}, ' ')"  # trim takes longer than all of this together
    blanks = f"{ends} OR contains({text}, '  ') OR contains({text}, chr(13))"
    return f"CASE WHEN {blanks} THEN {squeezed} ELSE lower({text}) END"


def url_is_hard(url: str, *, host_only: bool) -> str:
    if host_only:
        return f"NOT {_is_plain_url(url)}"
    return f"NOT ({_is_plain_url(url)} OR (regexp_full_match({url}, '[!-~]+') AND NOT contains({url}, '://')))"


def normal_simple_url(url: str, *, host_only: bool) -> str:
    """SQL: the normal form of a URL that is not hard."""
    return f"regexp_extract({url}, '^https?://({_WEB_HOST})', 1)" if host_only else url


def _ascii(text: str) -> str:
    return f"length({text}) = strlen({text})"


def _is_plain_url(url: str) -> str:
    return f"regexp_full_match({url}, '{_PLAIN_URL}')"


def query_form(text: str) -> str | None:
    return normalize(text)


def suggestion_form(text: str) -> str | None:
    """Unlike a query, a suggestion has not been found usable before."""
    return query_form(text) if _is_short(text) else None


def url_form(text: str) -> str | None:
    return normalize_url(text)


def host_form(text: str) -> str | None:
    return normalize_url(text, host_only=True)


@lru_cache(_CACHED)
def query_is_usable(text: str) -> bool:
    return _is_short(text) and query_form(text) is not None


@lru_cache(_CACHED)
def url_is_usable(text: str) -> bool:
    return _is_short(text) and url_form(text) is not None


@lru_cache(_CACHED)
def host_is_usable(text: str) -> bool:
    return _is_short(text) and host_form(text) is not None


def forget() -> None:
    """Drops the texts that were remembered: they are somebody's searches."""
    for remembered in (query_is_usable, url_is_usable, host_is_usable):
        remembered.cache_clear()


def _is_short(text: str) -> bool:
    return len(text) <= MAX_TEXT and len(text.encode("utf-8", "surrogatepass")) <= MAX_TEXT
