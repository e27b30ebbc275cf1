"""The review of a head list: what the automatic filters catch, and what a reviewer asks for.

A private output may still name what many people searched for and no one should spread. The shapes are those of
``suspects``, and a few that only a list for many devices must not carry. Codes only: the entry itself never leaves the
review.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from searchblend.core.suspects import Suspects, Suspicion

if TYPE_CHECKING:  # the command line imports this for its parsers
    from searchblend.core.records import HeadList

REASONS: Final = ("email", "phone", "card", "credentials", "long-number", "blocklist", "unsafe-url", "other")
_CODES: Final = {
    Suspicion.CREDENTIALS: "credentials",
    Suspicion.EMAIL: "email",
    Suspicion.CARD: "card",
    Suspicion.PHONE: "phone",
    Suspicion.ID: "long-number",
}
"""Numeric network addresses are left to the reviewer: many people search for the one of their router."""
_DIGITS: Final = re.compile(r"\d(?:[ -]?\d){6,}")
"""seven digits and more, also in groups: a wider net than that of ``suspects``, since a person looks at every hit"""
_SCHEMES: Final = ("http", "https", "ftp")
_SUSPECTS: Final = Suspects()


@dataclass(frozen=True)
class Position:
    """An entry of the candidate list; without ``url`` the query itself."""

    query: int
    url: int | None = None


@dataclass(frozen=True)
class Removal:
    """An entry to remove, and the code of the reason."""

    query: int
    url: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Review:
    """What the reviewer removes, and which filter hits are kept on purpose."""

    remove: tuple[Removal, ...] = ()
    keep: tuple[Position, ...] = ()


@dataclass(frozen=True)
class Rejection:
    """Why the list as a whole should not be published."""

    reason: str = ""


@dataclass(frozen=True)
class Hit:
    """Why an entry was caught; ``url`` is None when the query itself was."""

    query: int
    url: int | None
    reason: str


def suspicious_entries(head: HeadList, blocklist: Iterable[str] = ()) -> list[Hit]:
    """All hits, at most one for each query and each URL."""
    blocked = [word for word in (entry.strip().lower() for entry in blocklist) if word]
    hits: list[Hit] = []
    for i, query in enumerate(head.queries):
        reason = query_reason(query, blocked)
        if reason:
            hits.append(Hit(i, None, reason))
        for j, url in enumerate(head.urls(query)):
            reason = url_reason(url, blocked)
            if reason:
                hits.append(Hit(i, j, reason))
    return hits


def query_reason(query: str, blocked: Iterable[str] = ()) -> str | None:
    """Why a reviewer should look at a query, if at all."""
    codes = [_CODES[suspicion] for suspicion in _SUSPECTS.in_text(query) if suspicion in _CODES]
    if codes:
        return codes[0]
    if _DIGITS.search(query):
        return "long-number"
    return "blocklist" if any(word in query for word in blocked) else None


def url_reason(url: str, blocked: Iterable[str] = ()) -> str | None:
    """As for a query, and what only a URL can carry."""
    try:
        parts = urlsplit(url)
        has_user = bool(parts.username)
    except ValueError:
        return "unsafe-url"
    if "://" in url and parts.scheme not in _SCHEMES:
        return "unsafe-url"
    if re.match(r"\s*(javascript|data|vbscript|file):", url, re.IGNORECASE):
        return "unsafe-url"
    if has_user:
        return "credentials"
    return query_reason(url.lower(), blocked)
