"""Entries of a head list that should not be published without a second look: automatic, before the reviewer.

A private output may still name what many people searched for and nobody should spread. The shapes are those of
``suspects``, and a few that only a list for many devices must not carry. Codes only: the text itself never leaves the
review.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from searchblend.core.records import HeadList
from searchblend.core.suspects import Suspects, Suspicion

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
"""seven digits and more, also in groups: here a wider net than ``suspects`` has, since a person looks at every hit"""
_SCHEMES: Final = ("http", "https", "ftp")
_SUSPECTS: Final = Suspects()


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
        reason = text_reason(query, blocked)
        if reason:
            hits.append(Hit(i, None, reason))
        for j, url in enumerate(head.urls(query)):
            reason = url_reason(url, blocked)
            if reason:
                hits.append(Hit(i, j, reason))
    return hits


def text_reason(text: str, blocked: Iterable[str] = ()) -> str | None:
    """Why a text should be looked at, if at all."""
    codes = [_CODES[suspicion] for suspicion in _SUSPECTS.in_text(text) if suspicion in _CODES]
    if codes:
        return codes[0]
    if _DIGITS.search(text):
        return "long-number"
    return "blocklist" if any(word in text for word in blocked) else None


def url_reason(url: str, blocked: Iterable[str] = ()) -> str | None:
    """As for a text, and what only a URL can carry."""
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
    return text_reason(url.lower(), blocked)
