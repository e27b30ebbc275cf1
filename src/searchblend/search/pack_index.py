"""Local search: answers from a pack, on the device, without a network.

The order of what is found is part of the protocol (docs/reference/protocol.md): exact, then beginnings, then typing
errors, each by the lower bound of the probability, so that luck with the noise does not put a rare query on top.

Standard library only: this runs on devices.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.normalization import normalize
from searchblend.search.front_coding import shared_start
from searchblend.search.pack import Pack, PackEntry, decoded

EXACT, PREFIX, TYPO = "exact", "prefix", "typo"
SHORTEST_WITH_TYPO: Final = 4
SHORTEST_WITH_TWO: Final = 8
LONGEST_WITH_TYPO: Final = 64


class Rows:
    """Distances from one string to many that come sorted: what one shares with the one before is not computed again.

    A distance is how many typing errors lie between two strings: a letter more, less, another, or two neighbours
    exchanged. This is *optimal string alignment* over code points: no place is changed twice.

    The table's rows stand for the letters of the other string. A row depends on the letters before it alone, so rows of
    a shared beginning stay; and where every entry of a row exceeds the limit, no longer string can come back below.
    """

    def __init__(self, string: str, limit: int) -> None:
        self._string, self._limit = string, limit
        self._rows: list[list[int]] = [list(range(len(string) + 1))]
        self._before = ""
        self._hopeless: int | None = None
        """how many letters make the first row in which nothing is within the limit"""

    def distance(self, other: str) -> int | None:
        """The distance to another string, or None if it is more than the limit."""
        shared = shared_start(self._before, other)
        self._before = other
        if self._hopeless is not None and shared >= self._hopeless:
            return None
        self._hopeless = None
        del self._rows[shared + 1 :]
        for place in range(shared, len(other)):
            row = self._next_row(other, place)
            self._rows.append(row)
            if min(row) > self._limit:
                self._hopeless = place + 1
                return None
        distance = self._rows[-1][-1]
        return distance if distance <= self._limit else None

    def _next_row(self, other: str, place: int) -> list[int]:
        string, letter, last = self._string, other[place], self._rows[-1]
        before_last = self._rows[-2] if place else None
        row = [place + 1]
        for column, own in enumerate(string, 1):
            best = min(last[column] + 1, row[column - 1] + 1, last[column - 1] + (own != letter))
            if (
                before_last is not None
                and column > 1
                and own == other[place - 1]
                and string[column - 2] == letter
                and before_last[column - 2] + 1 < best
            ):
                best = before_last[column - 2] + 1
            row.append(best)
        return row


@dataclass(frozen=True)
class Match:
    """One listed query that fits what was typed."""

    entry: PackEntry
    kind: str
    distance: int = 0
    """typing errors between what was typed and the query"""


def allowed_errors(string: str) -> int:
    """How many typing errors are forgiven: none in short strings, where everything is near everything."""
    n = len(string)
    if not SHORTEST_WITH_TYPO <= n <= LONGEST_WITH_TYPO:
        return 0
    return 1 if n < SHORTEST_WITH_TWO else 2


class PackIndex:
    """Finds the queries of a pack that fit what was typed, and their URLs, best first."""

    def __init__(self, pack: Pack) -> None:
        self.pack = pack

    def __len__(self) -> int:
        return len(self.pack)

    def urls_for(self, query: str, limit: int = 10) -> list[str]:
        """The best URLs for what was typed; empty for a query that is not in the pack."""
        entry = self.find(query)
        return [url.url for url in entry.urls[:limit]] if entry else []

    def find(self, query: str) -> PackEntry | None:
        """The entry of a query, written in any way that has the same normal form."""
        string = normalize(query)
        return self.pack.find(string) if string else None

    def search(self, typed: str, limit: int = 10, *, typos: bool = True) -> list[Match]:
        """At most ``limit`` queries that fit: the very one, those that begin so, those with typing errors."""
        if limit < 1:
            raise InvalidParameter("limit", "must be at least 1")
        string = normalize(typed)
        if not string or not len(self.pack):
            return []
        matches: list[Match] = []
        entry = self.pack.find(string)
        if entry:
            matches.append(Match(entry, EXACT))
        matches += self._with_prefix(string, limit - len(matches))
        if typos and len(matches) < limit:
            matches += self._with_typos(string, limit - len(matches))
        return matches

    def _with_prefix(self, string: str, limit: int) -> list[Match]:
        return self._best(((0, *rest) for rest in self._longer(string.encode())), limit, PREFIX)

    def _longer(self, prefix: bytes) -> Iterator[tuple[int, int, bytes]]:
        for query, lower, probability in self.pack.queries(self.pack.block_for(prefix)):
            if query.startswith(prefix):
                if len(query) > len(prefix):
                    yield -lower, -probability, query
            elif query > prefix:
                return

    def _with_typos(self, string: str, limit: int) -> list[Match]:
        errors = allowed_errors(string)
        return self._best(self._near(string, errors), limit, TYPO) if errors else []

    def _near(self, string: str, errors: int) -> Iterator[tuple[int, int, int, bytes]]:
        """All queries within some typing errors that neither are the string nor begin with it."""
        rows, itself = Rows(string, errors), string.encode()
        for query, lower, probability in self.pack.queries():
            distance = rows.distance(decoded(query))
            if distance is not None and not query.startswith(itself):
                yield distance, -lower, -probability, query

    def _best(self, ranked: Iterator[tuple[int, int, int, bytes]], limit: int, kind: str) -> list[Match]:
        matches = []
        for distance, _, _, query in heapq.nsmallest(limit, ranked):
            entry = self.pack.find(decoded(query))
            if entry is None:  # only in a pack that was not checked
                raise MessageError("pack: expected the queries in the order of their bytes")
            matches.append(Match(entry, kind, distance))
        return matches
