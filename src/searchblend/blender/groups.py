"""What the algorithms need to know of a group of people: a few counts, never the people themselves.

Every number a mechanism reads answers one of a few questions, in which what each user adds is bounded: how many
distinct records have each count or weight (``RecordTally``), how many users fall into each cell of a head list, and the
users' own shares of the cells. An engine that can answer them can be a database as well as a list in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import UNIT
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.gaussian_account import weight
from searchblend.mechanisms.tally import (
    InMemoryTally,
    Ints,
    ListedRecords,
    QueriesOnly,
    RecordTally,
    RecordUniverse,
    Tally,
)


@dataclass(frozen=True)
class Weights:
    """How much each user adds to what they hold: floor(units/√s) to each of s ≤ ``items`` different items.

    The ℓ2 norm is at most ``units`` whatever they searched. Of a user with more items, ``items`` take part.
    """

    items: int
    units: int

    def __post_init__(self) -> None:
        if self.items < 1 or self.units < 1:
            raise InvalidParameter("weights", "expected at least one item and one unit")

    @property
    def table(self) -> list[int]:
        """The weight of each item, by how many take part: 0, 1, 2, …"""
        return [0, *(weight(self.units, held) for held in range(1, self.items + 1))]


@dataclass(frozen=True)
class OwnShares:
    """Each user's own shares of a head list's cells, in whole units, summed over all users. NOT PRIVATE.

    A user has exactly L units, whatever they searched: row r of n, in the user's own random order, has
    floor(Lr/n) − floor(L(r−1)/n) of them, so that every row has the same expectation and nothing is lost to rounding.
    """

    cells: Ints
    """by cell, ⟨⋆,⋆⟩ last"""
    squares: int
    """of the sums of squares over each user's listed queries, each divided by L and rounded up"""


class UserGroup(Protocol):
    """People with one random record each. Only people who have a record are in a group."""

    @property
    def unit(self) -> str:
        """What is called a person here, in the words of a guarantee."""
        ...

    @property
    def n_users(self) -> int:
        """How many people the group has."""
        ...

    @property
    def has_urls(self) -> bool:
        """Whether records have URLs; else every record is ⟨query, ⋆⟩."""
        ...

    @property
    def has_rows(self) -> bool:
        """Whether all rows of each user were kept, so that many may count; else one record of each is all there is."""
        ...

    def split(self, fraction: float, *, randomness: Randomness | None = None) -> tuple[Self, Self]:
        """Two disjoint random parts; the first holds round(fraction · n) users."""
        ...

    def tally(self) -> RecordTally:
        """How many distinct records have each count, by users: one drawn record of each."""
        ...

    def cell_counts(self, head: HeadList, draws: int = 1, *, randomness: Randomness | None = None) -> Ints:
        """How many drawn records fall into each cell: the first draw is the group's own, others are fresh."""
        ...

    def weighted_queries(self, weights: Weights, *, randomness: Randomness | None = None) -> Tally:
        """The weight of each query, as ⟨q,⋆⟩: users divide theirs among their different queries, over all rows."""
        ...

    def weighted_records(
        self, queries: Sequence[str], weights: Weights, *, randomness: Randomness | None = None
    ) -> Tally:
        """The weight of each record of these queries: users divide theirs among those that they hold."""
        ...

    def own_shares(self, head: HeadList, units: int, *, randomness: Randomness | None = None) -> OwnShares:
        """Each user's own shares of the cells, over all rows."""
        ...


class InMemoryGroup:
    """A group held as arrays: rows of record numbers, the rows of one user next to each other."""

    unit = UNIT

    def __init__(
        self,
        universe: RecordUniverse,
        rows: Ints,
        starts: Ints,
        lengths: Ints,
        drawn: Ints | None = None,
        *,
        randomness: Randomness | None = None,
    ) -> None:
        self._universe = universe
        self._rows, self._starts, self._lengths = rows, starts, lengths
        self._drawn = self._draw(randomness or SystemRandomness()) if drawn is None else drawn

    @classmethod
    def from_users(cls, users: Iterable[Sequence[Record]], *, randomness: Randomness | None = None) -> InMemoryGroup:
        """A group from each user's records; users without a record take no part.

        Whether a log has URLs is a public fact about the log, so it must not hang on one person's record: either every
        record has a URL or none has.
        """
        numbers: dict[Record, int] = {}
        people = [[numbers.setdefault(record, len(numbers)) for record in records] for records in users]
        if len({isinstance(record.url, str) for record in numbers}) > 1:
            raise InvalidParameter("records", "expected a URL in every record, or in none")
        lengths = np.array([len(person) for person in people if person], dtype=np.int64)
        rows = np.array([number for person in people for number in person], dtype=np.int64)
        return cls(ListedRecords(list(numbers)), rows, np.cumsum(lengths) - lengths, lengths, randomness=randomness)

    @property
    def n_users(self) -> int:
        return len(self._starts)

    @property
    def has_urls(self) -> bool:
        return self._universe.has_urls

    @property
    def has_rows(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"InMemoryGroup({self.n_users} users)"

    @property
    def drawn(self) -> Ints:
        """The number of each user's drawn record."""
        return self._drawn

    def record(self, number: int) -> Record:
        """The record that a number of the arrays stands for."""
        return self._universe[number]

    def select(self, users: NDArray[np.bool_] | Ints) -> InMemoryGroup:
        """The group of some of the users (by mask or position), with the records already drawn for them."""
        return InMemoryGroup(self._universe, self._rows, self._starts[users], self._lengths[users], self._drawn[users])

    def split(self, fraction: float, *, randomness: Randomness | None = None) -> tuple[InMemoryGroup, InMemoryGroup]:
        if not 0 < fraction < 1:
            raise InvalidParameter("fraction", f"expected a number in (0, 1), found {fraction!r}")
        shuffled = np.argsort(random_words(self.n_users, randomness or SystemRandomness()), kind="stable")
        cut = round(fraction * self.n_users)
        return self.select(np.sort(shuffled[:cut])), self.select(np.sort(shuffled[cut:]))

    def tally(self) -> InMemoryTally:
        numbers, counts = np.unique(self._drawn, return_counts=True)
        return InMemoryTally(self._universe, numbers, counts)

    def cell_counts(self, head: HeadList, draws: int = 1, *, randomness: Randomness | None = None) -> Ints:
        source = randomness or SystemRandomness()
        counts = np.zeros(head.n_cells, dtype=np.int64)
        for draw in range(draws):
            drawn = self._drawn if draw == 0 else self._draw(source)
            counts += np.bincount(self._universe.cells(head, drawn), minlength=head.n_cells)
        return counts

    def weighted_queries(self, weights: Weights, *, randomness: Randomness | None = None) -> InMemoryTally:
        rows, user, _ = self._rotated(randomness or SystemRandomness())
        return _weighted(QueriesOnly(self._universe), rows, self._universe.query_numbers(rows), user, weights)

    def weighted_records(
        self, queries: Sequence[str], weights: Weights, *, randomness: Randomness | None = None
    ) -> InMemoryTally:
        rows, user, _ = self._rotated(randomness or SystemRandomness())
        wanted = HeadList((query, ()) for query in queries)
        inside = self._universe.cells(wanted, rows) < wanted.n_cells - 1
        return _weighted(self._universe, rows[inside], rows[inside], user[inside], weights)

    def own_shares(self, head: HeadList, units: int, *, randomness: Randomness | None = None) -> OwnShares:
        rows, user, place = self._rotated(randomness or SystemRandomness())
        n = self._lengths[user]
        share = units * (place + 1) // n - units * place // n
        cells = self._universe.cells(head, rows)
        sums = np.bincount(cells, weights=share, minlength=head.n_cells).astype(np.int64)
        listed = np.flatnonzero(cells < head.n_cells - 1)
        queries = np.array(head.query_of_cells())[cells[listed]]
        pairs, where = np.unique(user[listed] * (len(head) + 1) + queries, return_inverse=True)
        own = np.bincount(where, weights=share[listed]).astype(np.int64)
        squares = np.bincount(pairs // (len(head) + 1), weights=own * own).astype(np.int64)
        return OwnShares(sums, int((-(-squares // units)).sum()))

    def _rotated(self, randomness: Randomness) -> tuple[Ints, Ints, Ints]:
        """Every row with its user and its place, the rows of each user in turn, from a random one of theirs on.

        One word for each user: no user's rows move another's. As in ``_draw``, this is sampling, not protection.
        """
        offset = (random_words(self.n_users, randomness) % self._lengths.astype(np.uint64)).astype(np.int64)
        user = np.repeat(np.arange(self.n_users), self._lengths)
        place = np.arange(len(user)) - np.repeat(np.cumsum(self._lengths) - self._lengths, self._lengths)
        rows: Ints = self._rows[self._starts[user] + (place + offset[user]) % self._lengths[user]]
        return rows, user, place

    def _draw(self, randomness: Randomness) -> Ints:
        """One record of each user, uniform over the user's rows, so that repeats count.

        The modulo's bias is below 2^-40 for users with up to 16 million rows. This is sampling, not
        protection: no privacy claim rests on it.
        """
        words = random_words(self.n_users, randomness)
        position = (words % self._lengths.astype(np.uint64)).astype(np.int64)
        drawn: Ints = self._rows[self._starts + position]
        return drawn


def random_words(n: int, randomness: Randomness) -> NDArray[np.uint64]:
    """``n`` uniform 64-bit words."""
    return np.frombuffer(randomness.take(8 * n), dtype="<u8")


def _weighted(universe: RecordUniverse, rows: Ints, items: Ints, user: Ints, weights: Weights) -> InMemoryTally:
    """The weight of each item; ``items`` are numbers by which rows are told apart, rows of one user are together."""
    if not len(rows):
        return InMemoryTally(universe, rows, rows)
    _, first = np.unique(user * (int(items.max()) + 1) + items, return_index=True)
    first.sort()
    place = np.arange(len(first)) - np.searchsorted(user[first], user[first])
    kept = first[place < weights.items]
    each = np.array(weights.table)[np.bincount(user[kept])[user[kept]]]
    _, one, where = np.unique(items[kept], return_index=True, return_inverse=True)
    return InMemoryTally(universe, rows[kept][one], np.bincount(where, weights=each).astype(np.int64))
