"""Which searches may be kept at all: on a device before anything is written, and in the curator once more.

The randomized report hides which of the listed records a person holds; an opt-in record is read by a curator, and both
start from what is stored here. So what looks like a person's own (addresses, numbers, passwords) and what belongs to
a private network never enters, nor do characters that change how a string is shown or end it early, and lengths are
limited before anything expensive is done to a string. What programs send is not known: the curator asks the same of
every record before it counts. Standard library only: this runs on devices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from searchblend.core.normalization import normalize, normalize_url
from searchblend.core.suspects import Suspects

LONGEST_QUERY: Final = 500
"""code points, before normalization: NFKC takes time quadratic in a run of combining marks"""
LONGEST_URL: Final = 2_000
"""code points"""

_UNSHOWABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""control characters, and those that turn the direction of a string; looked for when blanks have been put right"""
_WEB: Final = re.compile(r"\s*https?://", re.IGNORECASE)
_SCHEME: Final = re.compile(r"\s*[a-z][a-z0-9+.-]*:(?://|\\)", re.IGNORECASE)
_PRIVATE_SUFFIXES: Final = (
    ".local",
    ".localhost",
    ".localdomain",
    ".internal",
    ".intranet",
    ".private",
    ".corp",
    ".home",
    ".lan",
    ".arpa",
    ".onion",
)
_NUMERIC: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
_SUSPECTS: Final = Suspects()


@dataclass(frozen=True)
class Admission:
    """The normal form to keep, or why the search is forgotten. ``repr`` shows nothing of it."""

    query: str = ""
    url: str | None = None
    reason: str | None = None

    @property
    def kept(self) -> bool:
        return self.reason is None

    def __repr__(self) -> str:
        return f"Admission({self.reason or 'kept'})"


def admit(
    query: str, url: str | None = None, *, longest_query: int = LONGEST_QUERY, longest_url: int = LONGEST_URL
) -> Admission:
    """Whether this search may be stored, and in which form."""
    if len(query) > longest_query or (url is not None and len(url) > longest_url):
        return Admission(reason="too-long")
    form = normalize(query)
    if form is None or len(form) > longest_query:
        return Admission(reason="unusable-query")
    if _UNSHOWABLE.search(form):
        return Admission(reason="control-character")
    if reason := _suspicion(query, form):
        return Admission(reason=reason)
    if _SCHEME.match(form) and _address(form) is None:
        return Admission(reason="private-address")
    if url is None:
        return Admission(form)
    if reason := _suspicion(url):
        return Admission(reason=reason)
    if not _WEB.match(url):
        return Admission(reason="not-a-web-address")
    address = _address(url)
    if address is None:
        return Admission(reason="private-address")
    return Admission(reason="control-character") if _UNSHOWABLE.search(address) else Admission(form, address)


def _suspicion(*strings: str) -> str | None:
    suspicion = next((suspicion for string in strings for suspicion in _SUSPECTS.in_text(string)), None)
    return suspicion.value if suspicion else None


def _address(url: str) -> str | None:
    """A public page in normal form, without its query string: those carry sessions and searches."""
    address = normalize_url(re.split(r"[?#]", url, maxsplit=1)[0])
    host = normalize_url(url, host_only=True)
    if address is None or host is None or "@" in url.split("://", 1)[-1].split("/", 1)[0]:
        return None
    return address if _is_public(host) else None


def _is_public(host: str) -> bool:
    """A name with a dot that is not an address, nor a name of a private network, and has the usual port."""
    if host.startswith("[") or ":" in host:
        return False
    labels = host.rstrip(".").split(".")
    if len(labels) < 2 or not all(labels) or _NUMERIC.fullmatch(labels[-1]):
        return False
    return not f".{host.rstrip('.')}".endswith(_PRIVATE_SUFFIXES)
