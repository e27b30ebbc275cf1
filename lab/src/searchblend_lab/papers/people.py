"""Whose searches an experiment is about: a profile's synthetic people, or those of a log."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from searchblend.core.errors import RunError
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.tally import Ints, ListedRecords
from searchblend.synthetic.count_group import CountGroup, RecordModel
from searchblend.synthetic.population import AOL, YANDEX, Profile


def seed_of(*parts: object) -> int:
    """A seed that belongs to these parts: nothing else, no order of work, has a say in it."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:16], "big")


def generator(*parts: object) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed_of(*parts)))


class People(Protocol):
    """Everyone of whom an experiment draws opt-in users and clients, and the paper's settings for them."""

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def n_users(self) -> int: ...

    @property
    def delta(self) -> float: ...

    @property
    def optin(self) -> float: ...

    @property
    def sizes(self) -> tuple[int, ...]:
        """Head sizes, largest last: the default M ([BLJ] Fig. 11 and 13)."""
        ...

    def everyone(self, seed: int, run: int, n_users: int | None = None) -> CountGroup:
        """The people of one run, one record each."""
        ...


@dataclass(frozen=True)
class ProfilePeople:
    """Synthetic people, drawn anew for every run."""

    profile: Profile
    label: str
    sizes: tuple[int, ...]
    ranks: int
    """queries that a list may name; the others are so rare that no list does"""

    @property
    def name(self) -> str:
        return self.profile.name

    @property
    def n_users(self) -> int:
        return self.profile.n_users

    @property
    def delta(self) -> float:
        return self.profile.delta

    @property
    def optin(self) -> float:
        return self.profile.optin_fraction

    def everyone(self, seed: int, run: int, n_users: int | None = None) -> CountGroup:
        n = n_users or self.n_users
        return _model(self.profile, self.ranks).draw(n, generator(seed, self.name, n, run))


@lru_cache(maxsize=2)
def _model(profile: Profile, ranks: int) -> RecordModel:
    return RecordModel.of_profile(profile, ranks)


class IndexedRecords(ListedRecords):
    """``ListedRecords`` that looks only at the numbers of listed queries."""

    def __init__(self, records: Sequence[Record]) -> None:
        super().__init__(records)
        self._number_of_query: dict[object, int] = {}
        for record in records:
            self._number_of_query.setdefault(record.query, len(self._number_of_query))

    def cells(self, head: HeadList, numbers: Ints) -> Ints:
        listed = np.array([self._number_of_query.get(query, -1) for query in head.queries], dtype=np.int64)
        cells = np.full(len(numbers), head.n_cells - 1, dtype=np.int64)
        inside = np.flatnonzero(np.isin(self.query_numbers(numbers), listed))
        if len(inside):
            cells[inside] = super().cells(head, numbers[inside])
        return cells


@dataclass(frozen=True)
class Searches:
    """All searches of a log: users one after the other, each one's in order of time."""

    user: Ints
    query: Ints
    moment: NDArray[np.float64]
    """in seconds; NaN where the log has no time"""

    @property
    def days(self) -> float:
        """From the first to the last search that has a time."""
        timed = self.moment[~np.isnan(self.moment)]
        return float(np.ptp(timed)) / 86_400 if len(timed) else 0.0


@dataclass(frozen=True)
class Rows:
    """All records of a log, one person's next to each other."""

    records: Sequence[Record]
    numbers: Ints
    """of the record, row by row"""
    lengths: Ints
    """rows of each person"""


class LogPeople:
    """The people of a log with the record that was drawn for each: the same people in every run, split anew."""

    delta, optin, sizes = AOL.delta, AOL.optin_fraction, (10, 25, 50)

    def __init__(
        self,
        label: str,
        records: Sequence[Record],
        counts: Ints,
        searches: Searches | None = None,
        rows: Rows | None = None,
    ) -> None:
        self.label = label
        self._searches, self._rows = searches, rows
        self._records, self._universe = records, IndexedRecords(records)
        self._counts = counts
        digest = hashlib.sha256(counts.tobytes())
        for record in records:
            digest.update(f"{record.query}\t{record.url}\n".encode("utf-8", "surrogatepass"))
        if searches:
            for numbers in (searches.user, searches.query, searches.moment):
                digest.update(numbers.tobytes())
        if rows:
            digest.update(repr(len(rows.records)).encode() + rows.numbers.tobytes() + rows.lengths.tobytes())
        self.name = f"log-{digest.hexdigest()[:16]}"

    @property
    def n_users(self) -> int:
        return int(self._counts.sum())

    @property
    def searches(self) -> Searches:
        if self._searches is None:
            raise RunError("all searches of the log are needed, and one of each person was read")
        return self._searches

    @property
    def rows(self) -> Rows:
        if self._rows is None:
            raise RunError("all records of the log are needed, and one of each person was read")
        return self._rows

    @property
    def drawn(self) -> Rows:
        """The one record of each person that was drawn, as rows."""
        numbers = np.repeat(np.arange(len(self._counts), dtype=np.int64), self._counts)
        return Rows(self._records, numbers, np.ones(len(numbers), dtype=np.int64))

    def everyone(self, seed: int, run: int, n_users: int | None = None) -> CountGroup:
        if n_users is None or n_users == self.n_users:
            return CountGroup(self._universe, self._counts, self.n_users, generator(seed, self.name, run))
        return RecordModel(self._universe, self._counts / self.n_users).draw(
            n_users, generator(seed, self.name, n_users, run)
        )


PROFILES: Final = {
    "aol": ProfilePeople(AOL, "AOL profile", (10, 25, 50), 20_000),
    "yandex": ProfilePeople(YANDEX, "Yandex profile", (10, 25, 50, 100, 500), 40_000),
}
_known: dict[str, People] = dict(PROFILES)


def people_named(name: str) -> People:
    return _known[name]


def make_known(people: People) -> None:
    """Let ``people_named`` find the people of a log; every process that computes cells needs it."""
    _known[people.name] = people
