"""The normal form of queries and URLs in SQL: plain ASCII by expressions, everything else once through Python.

``searchblend.normalization`` is the rule. Here are only shortcuts for texts on which it is certain to do something
simple. A text that no shortcut covers is *hard*: it goes through the Python function, each distinct one once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from searchblend.normalization import normalize, normalize_url

MAX_TEXT: Final = 2048
"""Longer queries and URLs (in bytes) are unusable: NFKC takes time quadratic in a run of combining marks."""
AWKWARD: Final = b"[]\\\t\v\f"
"""Bytes that can spoil a host, or are blanks other than the space. In a *plain* file, one without them in its fields
and with ASCII only, shorter tests will do."""

_CACHED: Final = 1 << 17
_BLANKS: Final = r"[\t-\r ]+"
_WEB_HOST: Final = r"[a-z0-9_-]+\.[a-z0-9._-]+"
_PLAIN_URL: Final = rf"https?://{_WEB_HOST}(?:/[!-\"$-~]+|\?[!-\"$-~]*)?"
"""Its own normal form: lower-case scheme and host, no port, no fragment, not the path / alone."""


def surely_usable_query(text: str, *, plain_file: bool) -> list[str]:
    """SQL conditions: ASCII, not long, and the first character is no blank (blanks and controls are below '!')."""
    return [f"{text} >= '!'", f"strlen({text}) <= {MAX_TEXT}", *([] if plain_file else [_ascii(text)])]


def surely_usable_url(url: str, *, plain_file: bool, host_only: bool) -> list[str]:
    """SQL conditions: a web address whose host is free of delimiters, or a text without ``://`` that is not blank."""
    ways = [_is_plain_url(url)]
    if plain_file and not host_only:
        ways = [
            f"({url} LIKE '{scheme}%' AND {url} NOT LIKE '{scheme}%:%' AND NOT contains({url}, ' '))"
            for scheme in ("http://", "https://")
        ]
    if not host_only:
        ways.append(f"({url} >= '!' AND {_ascii(url)} AND NOT contains({url}, '://'))")
    return [f"strlen({url}) <= {MAX_TEXT}", f"({' OR '.join(ways)})"]


def query_is_hard(text: str) -> str:
    return f"NOT ({_ascii(text)})"


def normal_ascii_query(text: str) -> str:
    """SQL: lower case, single blanks."""
    return f"lower(trim(regexp_replace({text}, '{_BLANKS}', ' ', 'g'), ' '))"


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
