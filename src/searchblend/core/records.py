"""Records ⟨query, URL⟩, the wildcard ⋆, and the shared head list.

Standard library only: this runs on devices.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

from searchblend.core.errors import MessageError


class Wildcard:
    """⋆: "anything that is not in the list". A value of its own, never the string ``*``."""

    _instance: Wildcard | None = None

    def __new__(cls) -> Wildcard:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "⋆"

    def __reduce__(self) -> str:
        return "WILDCARD"


WILDCARD: Final = Wildcard()


class Record(NamedTuple):
    """One search and the result that was chosen. A person's data: ``repr`` shows nothing of it."""

    query: str | Wildcard
    url: str | Wildcard = WILDCARD

    def __repr__(self) -> str:
        return "Record(<redacted>)"


def _is_text(value: object) -> bool:
    """Whether it is a string that can be written down: a lone surrogate cannot."""
    try:
        return isinstance(value, str) and bool(value.encode("utf-8") or True)
    except UnicodeEncodeError:
        return False


class HeadList:
    """An ordered, immutable map query → URLs, with ⋆ appended in the one canonical way.

    The *cells* are what a device may report: for each query its URLs and then ⟨q,⋆⟩, and ⟨⋆,⋆⟩ last
    ([BLJ] Fig. 6, lines 4-6). Both k (``n_queries``) and k_q (``n_urls``) count ⋆. A list for logs without
    URLs has no URL anywhere, so each query has the single cell ⟨q,⋆⟩.
    """

    def __init__(self, urls: Mapping[str, Iterable[str]] | Iterable[tuple[str, Iterable[str]]]) -> None:
        pairs = urls.items() if isinstance(urls, Mapping) else urls
        self._urls: dict[str, tuple[str, ...]] = {}
        for query, query_urls in pairs:
            if not _is_text(query) or query in self._urls:
                raise MessageError("head list: every query must be a text and appear once")
            listed = tuple(query_urls)
            if not all(_is_text(url) for url in listed) or len(set(listed)) != len(listed):
                raise MessageError("head list: the URLs of a query must be strings and appear once")
            self._urls[query] = listed
        self._first_cell: dict[str, int] = {}
        cell = 0
        for query, listed in self._urls.items():
            self._first_cell[query] = cell
            cell += len(listed) + 1
        self.n_cells: Final[int] = cell + 1

    @property
    def queries(self) -> tuple[str, ...]:
        """The listed queries in order, without ⋆."""
        return tuple(self._urls)

    @property
    def has_urls(self) -> bool:
        """Whether any query has a listed URL."""
        return any(self._urls.values())

    @property
    def n_queries(self) -> int:
        """k: the number of queries, ⋆ included."""
        return len(self._urls) + 1

    @cached_property
    def n_urls(self) -> tuple[int, ...]:
        """k_q for every query in order, ⋆ last: the number of URLs, ⋆ included."""
        return (*(len(listed) + 1 for listed in self._urls.values()), 1)

    @property
    def n_records(self) -> int:
        """The number of listed records ⟨q,u⟩ (⟨q,⋆⟩ in a list without URLs), without ⟨⋆,⋆⟩."""
        return sum(map(len, self._urls.values())) if self.has_urls else len(self._urls)

    def urls(self, query: str) -> tuple[str, ...]:
        """The listed URLs of a query, in order."""
        return self._urls[query]

    def __contains__(self, query: object) -> bool:
        return query in self._urls

    def __len__(self) -> int:
        return len(self._urls)

    def cells(self) -> Iterator[Record]:
        """Every reportable cell, in the order of the cell numbers."""
        for query, listed in self._urls.items():
            for url in listed:
                yield Record(query, url)
            yield Record(query, WILDCARD)
        yield Record(WILDCARD, WILDCARD)

    def query_of_cells(self) -> list[int]:
        """For every cell the number of its query (⋆ is the last query)."""
        return [query for query, width in enumerate(self.n_urls) for _ in range(width)]

    def first_cells(self) -> list[int]:
        """For every query, ⋆ included, the number of its first cell."""
        return [*self._first_cell.values(), self.n_cells - 1]

    def cell_of(self, record: Record) -> int:
        """The cell of a record: an unknown query is ⟨⋆,⋆⟩, an unknown URL of a known query ⟨q,⋆⟩."""
        query, url = record
        listed = self._urls.get(query) if isinstance(query, str) else None
        if listed is None or not isinstance(query, str):
            return self.n_cells - 1
        first = self._first_cell[query]
        for position, candidate in enumerate(listed):
            if candidate == url:
                return first + position
        return first + len(listed)

    def as_json(self) -> list[list[str | list[str]]]:
        """Pairs of a query and its URLs, in order."""
        return [[query, list(listed)] for query, listed in self._urls.items()]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON; devices and server compare it before they count anything."""
        text = json.dumps(self.as_json(), ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HeadList) and list(self._urls.items()) == list(other._urls.items())

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"HeadList({len(self)} queries, {self.n_records} records, {self.digest[:12]})"
