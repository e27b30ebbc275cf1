"""How the lines of a text log are laid out: its fields, and which of them are ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROLES: Final = ("user", "query", "url", "time", "rank", "optin")
"""What a column can be to us. A user and a query are needed; a log without URLs is read as one."""


@dataclass(frozen=True)
class Layout:
    """One line of a delimited text file."""

    format: str
    delimiter: str
    n_fields: int
    positions: Mapping[str, int]
    """Role → position of its field, from 0."""
    header: bool = True
    quotes: bool = False
    """Whether fields may be quoted as in RFC 4180. In tab-separated logs a quote is a letter like any other."""
    may_end_after: int | None = None
    """A line with just this many fields is fine too: the others are empty."""
    no_query: str | None = None
    """A text that stands for a query that was taken out."""

    @property
    def has_urls(self) -> bool:
        return "url" in self.positions

    def role(self, fields: Sequence[str], role: str) -> str | None:
        """The text of a role in a line's fields; None if the log has no such column."""
        position = self.positions.get(role)
        if position is None:
            return None
        return fields[position] if position < len(fields) else ""


Source = tuple[Layout, list[Path]]
"""Files with one layout."""
