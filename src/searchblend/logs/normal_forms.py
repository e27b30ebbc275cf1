"""The normal form of queries and URLs in SQL: plain ASCII by expressions, everything else once through Python.

``searchblend.normalize`` is the rule. Here are only shortcuts for texts on which it is certain to do something
simple. A text that no shortcut covers is *hard*: it goes through the Python function, each distinct one once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from searchblend.normalization import normalize, normalize_url

_CACHED: Final = 1 << 17
_ASCII_BLANKS: Final = r"[\t-\r ]+"
_WEB_HOST: Final = r"[a-z0-9_-]+\.[a-z0-9._-]+"
PLAIN_URL: Final = rf"https?://{_WEB_HOST}(?:[/?][!-\"$-~]*[!-\"$-.0-~])?"
"""A URL that is its own normal form: lower-case scheme and host, no port, no fragment, not ended by a slash."""


def ascii_only(text: str) -> str:
    """SQL: as many characters as bytes."""
    return f"length({text}) = strlen({text})"


def surely_usable_query(text: str) -> str:
    """SQL: ASCII, and the first character is no blank (blanks and controls are below '!')."""
    return f"({text} >= '!' AND {ascii_only(text)})"


def normal_ascii(text: str) -> str:
    """SQL: the normal form of an ASCII text: lower case, single blanks."""
    return f"lower(trim(regexp_replace({text}, '{_ASCII_BLANKS}', ' ', 'g'), ' '))"


def plain_url(url: str) -> str:
    """SQL: whether a URL is plain, with which nothing has to be done (or only the host to be cut out)."""
    return f"regexp_full_match({url}, '{PLAIN_URL}')"


def host_of_plain_url(url: str) -> str:
    return f"regexp_extract({url}, '^https?://({_WEB_HOST})', 1)"


def query_form(text: str) -> str | None:
    return normalize(text)


def url_form(text: str) -> str | None:
    return normalize_url(text)


def host_form(text: str) -> str | None:
    return normalize_url(text, host_only=True)


@lru_cache(_CACHED)
def query_is_usable(text: str) -> bool:
    return query_form(text) is not None


@lru_cache(_CACHED)
def url_is_usable(text: str) -> bool:
    return url_form(text) is not None


@lru_cache(_CACHED)
def host_is_usable(text: str) -> bool:
    return host_form(text) is not None
