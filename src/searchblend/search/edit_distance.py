"""How many typing errors lie between two strings: a letter more, less, another, or two neighbours exchanged.

This is the distance of *optimal string alignment* over code points: no place is changed twice. Standard library only.
"""

from __future__ import annotations


class Rows:
    """Distances from one string to many that come sorted: what one shares with the one before is not computed again.

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
        shared = _shared(self._before, other)
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


def _shared(one: str, other: str) -> int:
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return min(len(one), len(other))
