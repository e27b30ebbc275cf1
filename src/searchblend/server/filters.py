"""Entries of a head list that should not be published without a second look: automatic, before the reviewer.

A private output may still name what many people searched for and nobody should spread. Codes only: the text itself
never leaves the review.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from searchblend.records import HeadList
from searchblend.suspects import is_luhn

REASONS: Final = ("email", "phone", "card", "credentials", "long-number", "blocklist", "unsafe-url", "other")
_EMAIL: Final = re.compile(r"[^\s@/]+@[^\s@/]+\.[a-z]{2,}")
_PHONE: Final = re.compile(r"(?<![\w.])(\+|00)?\(?\d{2,4}\)?([ ./-]\d{2,4}){2,4}(?![\w.])")
_DIGITS: Final = re.compile(r"\d(?:[ -]?\d){6,}")
_SECRET_FIELD: Final = re.compile(
    r"[?&;#](pass(word|wd)?|pwd|token|access_token|auth|api_?key|secret|session(id)?|sid|jwt|code)=", re.IGNORECASE
)
_CARD_DIGITS: Final = range(13, 20)
_SCHEMES: Final = ("http", "https", "ftp")


@dataclass(frozen=True)
class Hit:
    """Why an entry was caught; ``url`` is None when the query itself was."""

    query: int
    url: int | None
    reason: str

    def as_json(self) -> dict[str, Any]:
        return {"query": self.query, "url": self.url, "reason": self.reason}


def check_head_list(head: HeadList, blocklist: Iterable[str] = ()) -> list[Hit]:
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
    if _EMAIL.search(text):
        return "email"
    for match in _DIGITS.finditer(text):
        digits = re.sub(r"\D", "", match.group())
        if len(digits) in _CARD_DIGITS and is_luhn(digits):
            return "card"
    if _PHONE.search(text):
        return "phone"
    if any(len(re.sub(r"\D", "", match.group())) >= 7 for match in _DIGITS.finditer(text)):
        return "long-number"
    return "blocklist" if any(word in text for word in blocked) else None


def url_reason(url: str, blocked: Iterable[str] = ()) -> str | None:
    """As for a text, and what only a URL can carry."""
    try:
        parts = urlsplit(url)
        has_user = bool(parts.username or parts.password)
    except ValueError:
        return "unsafe-url"
    if "://" in url and parts.scheme not in _SCHEMES:
        return "unsafe-url"
    if re.match(r"\s*(javascript|data|vbscript|file):", url, re.IGNORECASE):
        return "unsafe-url"
    if has_user or _SECRET_FIELD.search(url):
        return "credentials"
    return text_reason(url.lower(), blocked)
