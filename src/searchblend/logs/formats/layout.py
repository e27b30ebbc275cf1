"""How the lines of a log are laid out: what an engine must know to find a user, a query and a URL in them.

One small class for each kind of file; the format's own module makes it. An engine turns it into a scan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

ROLES: Final = ("user", "query", "url", "time", "rank", "suggestion", "optin")
"""What a column can be to us. A user and a query are needed; without ``url`` it is a log of queries alone.

``suggestion`` is a query that was suggested and clicked: to a click graph, a line with one and no URL is a click on
it. To everything else it is a line without URL.
"""


@dataclass(frozen=True)
class LineRules:
    """What the bytes of a line may be, and what is done to them before anybody looks for fields."""

    header: bool = False
    """Whether the first line is nobody's. Only there may a byte-order mark begin a file; else it may begin any line."""
    quotes: bool = False
    """Whether fields may be quoted as in RFC 4180."""
    quoted_line_feeds: bool = False
    """Whether a quoted field may go on in the next line: then a line is no longer read by itself."""
    separator: bytes = b"\t"
    n_fields: int = 1
    """How many fields a line may have. More are too many, and very many are not even counted."""


@dataclass(frozen=True)
class Delimited:
    """A line of fields with a separator between them."""

    format: str
    delimiter: str
    n_fields: int
    positions: Mapping[str, int]
    """role → position of its field, from 0"""
    header: bool = True
    quotes: bool = False
    """Whether fields may be quoted as in RFC 4180. In tab-separated logs a quote is a letter like any other."""
    may_end_after: int | None = None
    """A line with just this many fields is fine too: the others are empty."""
    no_query: str | None = None
    """A text that stands for a query that was taken out."""
    quoted_line_feeds: bool = False

    @property
    def rules(self) -> LineRules:
        separator = self.delimiter.encode()
        return LineRules(self.header, self.quotes, self.quoted_line_feeds, separator, self.n_fields)

    @property
    def has_urls(self) -> bool:
        return "url" in self.positions

    @property
    def has_suggestions(self) -> bool:
        return "suggestion" in self.positions


@dataclass(frozen=True)
class JsonLines:
    """A line is one JSON object."""

    keys: Mapping[str, str]
    """role → name of its member"""
    format: str = "jsonl"
    rules: ClassVar[LineRules] = LineRules(separator=b"\x1f")
    """to the database a line is one field, and this byte, which no JSON has as it is, would end it"""

    @property
    def has_urls(self) -> bool:
        return "url" in self.keys

    @property
    def has_suggestions(self) -> bool:
        return "suggestion" in self.keys


@dataclass(frozen=True)
class Columns:
    """A Parquet file."""

    columns: Mapping[str, str]
    """role → name of its column"""
    format: str = "parquet"
    types: Mapping[str, str] = field(default_factory=dict)
    """role → type of its column, in DuckDB's words: files with other types are scanned apart"""

    @property
    def has_urls(self) -> bool:
        return "url" in self.columns

    @property
    def has_suggestions(self) -> bool:
        return "suggestion" in self.columns


@dataclass(frozen=True)
class Sessions:
    """Yandex: a session is a line that names its user, then lines of queries and clicks."""

    format: str = "yandex"
    rules: ClassVar[LineRules] = LineRules(n_fields=64)
    """a query line has six fields and one for each result: normally ten, here up to 58"""
    has_urls: bool = True
    has_suggestions: bool = False


TextLayout = Delimited | JsonLines | Sessions
"""layouts of text"""
Layout = TextLayout | Columns
Source = tuple[Layout, list[Path]]
"""files with one layout"""
