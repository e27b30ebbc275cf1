"""What a log holds: sizes, and every line that could not be used, by reason.

These numbers describe people's data exactly. They belong to whoever holds the log and are NOT FOR RELEASE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

FIRST_PLACES: Final = 5
"""How many lines of each kind are named."""

# Detected in the bytes, before a line is split into fields.
INVALID_UTF8: Final = "invalid_utf8"
INVALID_ENCODING: Final = "invalid_encoding"
NUL_BYTE: Final = "nul_byte"
LINE_TOO_LONG: Final = "line_too_long"
BAD_QUOTES: Final = "bad_quotes"
# Detected in the fields.
TOO_FEW_FIELDS: Final = "too_few_fields"
TOO_MANY_FIELDS: Final = "too_many_fields"
BAD_LINE: Final = "bad_line"
MISSING_USER: Final = "missing_user"
CLICK_WITHOUT_QUERY: Final = "click_without_query"
UNUSABLE_QUERY: Final = "unusable_query"
UNUSABLE_URL: Final = "unusable_url"
BAD_OPTIN: Final = "bad_optin"
BAD_COUNT: Final = "bad_count"

EXPECTED: Final[Mapping[str, tuple[str | None, str]]] = {
    INVALID_UTF8: (None, "expected UTF-8 text; another encoding is said with --encoding"),
    INVALID_ENCODING: (None, "expected text in the encoding that --encoding says"),
    NUL_BYTE: (None, "expected text, found a NUL byte"),
    LINE_TOO_LONG: (None, "expected a line of at most 1 MiB"),
    BAD_QUOTES: (None, "expected quotes around a whole field, doubled inside it"),
    TOO_FEW_FIELDS: (None, "expected more fields"),
    TOO_MANY_FIELDS: (None, "expected fewer fields"),
    BAD_LINE: (None, "expected a line of this format"),
    MISSING_USER: ("user", "expected an id, found nothing"),
    CLICK_WITHOUT_QUERY: ("query", "expected a query of this session before the click"),
    UNUSABLE_QUERY: ("query", "expected a string with something in it"),
    UNUSABLE_URL: ("url", "expected a usable URL"),
    BAD_OPTIN: ("opt-in", "expected yes or no (also true, false, 1, 0)"),
    BAD_COUNT: ("count", "expected a whole number of at least 0"),
}
"""For each reason the field it is about and what was expected; never the content itself."""


@dataclass(frozen=True, order=True)
class Place:
    """A line of a file, counted from 1."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass
class Malformed:
    """How many lines were left out for one reason, and where the first few are."""

    count: int = 0
    first: list[Place] = field(default_factory=list)

    def add(self, place: Place) -> None:
        self.count += 1
        if len(self.first) < FIRST_PLACES:
            self.first.append(place)


@dataclass(frozen=True)
class InputSummary:
    """What was read. NOT FOR RELEASE."""

    format: str
    """The format the log was read in."""
    files: int
    bytes: int
    """Text bytes, after decompression."""
    lines: int
    """Data lines: no headers, no blank lines."""
    users: int
    """Users with at least one usable line."""
    used: int
    """Lines that are a user's record."""
    without_url: int
    """Good lines without a URL in a log that has URLs: dropped."""
    malformed: Mapping[str, Malformed]

    def as_json(self) -> dict[str, Any]:
        malformed = {
            reason: {"count": kind.count, "first": [str(place) for place in kind.first]}
            for reason, kind in sorted(self.malformed.items())
        }
        return {**vars(self), "malformed": malformed}


@dataclass(frozen=True)
class LogStatistics:
    """The columns of [BLJ] Fig. 8, counted exactly. NOT PRIVATE."""

    bytes: int
    lines: int
    users: int
    queries: int
    urls: int
    records: int
    malformed: int
