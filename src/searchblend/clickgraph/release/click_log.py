"""What the release of a click graph may ask of a log: limited activity, counted. [KKMN09] Algorithm 1, step 1.

Every question names a cap on what each user contributes, and every answer is a tally or a few counts: sensitivity is
decided here and nowhere else. An engine answers for a log on disk, ``InMemoryClickLog`` for people in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from searchblend.core.attributes import Attribute, cells_of
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import UNIT
from searchblend.core.records import WILDCARD, Record
from searchblend.mechanisms.gaussian_account import weight
from searchblend.mechanisms.tally import InMemoryTally, Ints, ListedRecords, Tally

T = TypeVar("T", bound=Hashable)

SUGGESTION: Final = "suggestion:"
"""A click on a suggestion is a click whose target is this and the suggested query: it shares the cap of the clicks."""
SESSION_GAP: Final = 1800
"""Seconds without a search that end a session; sessions only serve to pair a query with the one typed next."""


@dataclass(frozen=True)
class Cap:
    """How much of each user counts: the first ``first`` events by time, d or d_c of the paper.

    ``distinct`` counts each query (or record) of a user once, the first time, and then takes the first of those: a
    user adds at most 1 to each count, and the unit is users. Else every event counts and the unit is impressions.
    Events at the same time keep the order of the log; clicks of one search keep theirs.
    """

    first: int
    distinct: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.first, int) or self.first < 1:
            raise InvalidParameter("first", f"expected a whole number of at least 1, found {self.first!r}")


class ClickLog(Protocol):
    """A log of searches and clicks. Queries are ⟨query, ⋆⟩ in a tally, clicks ⟨query, target⟩, pairs ⟨query, next⟩."""

    @property
    def unit(self) -> str:
        """What is called a user here, in the words of a guarantee."""
        ...

    def searches(self, cap: Cap) -> Tally:
        """M(q): how often each query occurs in the limited log."""
        ...

    def weighted_searches(self, first: int, units: int, without: Sequence[str]) -> Tally:
        """Integer weights: each of a user's s queries gets floor(units/√s), so that their ℓ2 norm is ``units`` at most.

        They are the first ``first`` distinct queries of the user, those in ``without`` left out before.
        """
        ...

    def weighted_searches_of(self, queries: Sequence[str], first: int, units: int) -> Mapping[str, int]:
        """Integer weights of these queries: of a user's first ``first`` different ones s are among them, and each of
        those gets floor(units/√s)."""
        ...

    def searches_of(self, queries: Sequence[str], cap: Cap) -> Mapping[str, int]:
        """The count of each of these queries; other searches are left out first, and the cap applies to the rest.

        Queries without a search count 0.
        """
        ...

    def clicks(self, queries: Sequence[str], cap: Cap, *, within: Cap) -> Tally:
        """How often each record of these queries was clicked.

        Only clicks of the searches that ``within`` keeps take part: of the user's first searches, or of all searches
        of the user's first distinct queries. Those of other queries are left out, and the cap applies to the rest.
        """
        ...

    def clicks_of(
        self, records: Sequence[Record], cap: Cap, *, within: Cap, restrict_first: bool = True
    ) -> Mapping[Record, int]:
        """The clicks on each of these records, of the searches that ``within`` keeps; 0 without a click.

        ``restrict_first`` leaves out all other clicks before the cap applies; the paper caps first.
        """
        ...

    def reformulations(self, queries: Sequence[str], cap: Cap) -> Tally:
        """How often each ⟨q, q'⟩ was typed in a row: both in ``queries``, different, in one session of one user.

        Pairs are formed from all of a user's searches in order of time; no more than ``SESSION_GAP`` seconds lie
        between the two. Other pairs are left out, and the cap applies to the rest.
        """
        ...


@runtime_checkable
class AttributedLog(Protocol):
    """A log whose searches and clicks have attributes. Cells are numbered in the order of the declared values, those of
    the last attribute next to each other.

    Where several lines of a user are one search (or one query's first search, if each counts once) and differ in an
    attribute, the value that was declared first counts.
    """

    def searches_by(self, queries: Sequence[str] | None, attributes: Sequence[Attribute], cap: Cap) -> Ints:
        """How often each of these queries was searched in each cell: a row for each query, a column for each cell.

        Other searches are left out first, and the cap applies to the rest. None is all queries, in one row.
        """
        ...

    def clicks_by(
        self, records: Sequence[Record] | None, attributes: Sequence[Attribute], cap: Cap, *, within: Cap
    ) -> Ints:
        """The same of clicks on these pairs, of the searches that ``within`` keeps."""
        ...


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Search(NamedTuple):
    """One search: what was typed, when (in seconds), and what was clicked, in order. ``repr`` shows nothing of it."""

    query: str
    time: float = 0.0
    clicks: tuple[str, ...] = ()
    """URLs, or ``suggestion:`` and a suggested query"""
    fields: Mapping[str, str] = _NOTHING
    """what else is known of the search, by the name of the attribute"""
    click_fields: tuple[Mapping[str, str], ...] = ()
    """of each click, where that differs from the search's"""

    def __repr__(self) -> str:
        return "Search(<redacted>)"


class InMemoryClickLog:
    """A ``ClickLog`` from the searches of each user; searches at the same time keep their order."""

    unit = UNIT

    def __init__(self, users: Iterable[Sequence[Search]]) -> None:
        self._users = [sorted(searches, key=lambda search: search.time) for searches in users]

    def __repr__(self) -> str:
        return "InMemoryClickLog(<redacted>)"

    def searches(self, cap: Cap) -> InMemoryTally:
        return tally_of(self._each(lambda user: _limited((_query(search) for search in user), cap)))

    def weighted_searches(self, first: int, units: int, without: Sequence[str]) -> InMemoryTally:
        excluded, totals = set(without), Counter[Record]()
        for user in self._users:
            mine = list(_limited((_query(s) for s in user if s.query not in excluded), Cap(first)))
            for record in mine:
                totals[record] += weight(units, len(mine))
        return _tally_of_counts({record: total for record, total in totals.items() if total})

    def weighted_searches_of(self, queries: Sequence[str], first: int, units: int) -> dict[str, int]:
        totals = dict.fromkeys(queries, 0)
        for user in self._users:
            mine = [query for query in _limited((s.query for s in user), Cap(first)) if query in totals]
            for query in mine:
                totals[query] += weight(units, len(mine))
        return totals

    def searches_of(self, queries: Sequence[str], cap: Cap) -> dict[str, int]:
        wanted = set(queries)
        counts = Counter(self._each(lambda user: _limited((s.query for s in user if s.query in wanted), cap)))
        return {query: counts[query] for query in queries}

    def clicks(self, queries: Sequence[str], cap: Cap, *, within: Cap) -> InMemoryTally:
        wanted = set(queries)
        return tally_of(self._each(lambda user: _limited((r for r in _clicks(user, within) if r.query in wanted), cap)))

    def clicks_of(
        self, records: Sequence[Record], cap: Cap, *, within: Cap, restrict_first: bool = True
    ) -> Mapping[Record, int]:
        wanted = set(records)

        def kept(user: Sequence[Search]) -> Iterator[Record]:
            clicks = _clicks(user, within)
            if restrict_first:
                return _limited((record for record in clicks if record in wanted), cap)
            return (record for record in _limited(clicks, cap) if record in wanted)

        counts = Counter(self._each(kept))
        return {record: counts[record] for record in records}

    def reformulations(self, queries: Sequence[str], cap: Cap) -> InMemoryTally:
        wanted = set(queries)
        return tally_of(
            self._each(
                lambda user: _limited((r for r in _in_a_row(user) if r.query in wanted and r.url in wanted), cap)
            )
        )

    def searches_by(self, queries: Sequence[str] | None, attributes: Sequence[Attribute], cap: Cap) -> Ints:
        """See ``AttributedLog``."""
        wanted = None if queries is None else {query: place for place, query in enumerate(queries)}
        counts = np.zeros((1 if queries is None else len(wanted or ()), cells_of(attributes)), dtype=np.int64)
        for user in self._users:
            mine = [
                (search.query, search.time, _values(search.fields, attributes))
                for search in user
                if wanted is None or search.query in wanted
            ]
            for query, cell in _cells_kept(mine, attributes, cap):
                counts[0 if wanted is None else wanted[query], cell] += 1
        return counts

    def clicks_by(
        self, records: Sequence[Record] | None, attributes: Sequence[Attribute], cap: Cap, *, within: Cap
    ) -> Ints:
        """See ``AttributedLog``."""
        wanted = None if records is None else {record: place for place, record in enumerate(records)}
        counts = np.zeros((1 if records is None else len(wanted or ()), cells_of(attributes)), dtype=np.int64)
        for user in self._users:
            mine = [one for one in _clicks_and_fields(user, within) if wanted is None or one[0] in wanted]
            firsts: dict[Record, Mapping[str, str]] = {}
            for record, fields in mine:
                firsts.setdefault(record, fields)
            for record, fields in islice(firsts.items() if cap.distinct else mine, cap.first):
                cell = _cell(_values(fields, attributes), attributes)
                counts[0 if wanted is None else wanted[record], cell] += 1
        return counts

    def _each(self, contribution: Callable[[Sequence[Search]], Iterator[T]]) -> Iterator[T]:
        for user in self._users:
            yield from contribution(user)


def _query(search: Search) -> Record:
    return Record(search.query, WILDCARD)


def _limited(events: Iterable[T], cap: Cap) -> Iterator[T]:
    """The first events of a user, or the first distinct ones."""
    return islice(dict.fromkeys(events) if cap.distinct else events, cap.first)


def _clicks(user: Sequence[Search], within: Cap) -> Iterator[Record]:
    """The clicks of the searches that ``within`` keeps."""
    return (Record(search.query, target) for search in _searches_within(user, within) for target in search.clicks)


def _searches_within(user: Sequence[Search], within: Cap) -> Iterable[Search]:
    """A user's searches of their first queries, or their first searches."""
    if not within.distinct:
        return user[: within.first]
    queries = set(_limited((search.query for search in user), within))
    return (search for search in user if search.query in queries)


def _values(fields: Mapping[str, str], attributes: Sequence[Attribute]) -> tuple[int, ...]:
    return tuple(attribute.number_of(fields.get(attribute.name)) for attribute in attributes)


def _cell(values: Sequence[int], attributes: Sequence[Attribute]) -> int:
    cell = 0
    for attribute, value in zip(attributes, values, strict=True):
        cell = cell * attribute.size + value
    return cell


def _cells_kept(
    searches: Iterable[tuple[str, float, tuple[int, ...]]], attributes: Sequence[Attribute], cap: Cap
) -> Iterator[tuple[str, int]]:
    """The searches that a cap keeps, each with its cell; of a query's first searches, at the same moment, the least
    value of each attribute."""
    if not cap.distinct:
        for query, _, values in islice(searches, cap.first):
            yield query, _cell(values, attributes)
        return
    firsts: dict[str, tuple[float, tuple[int, ...]]] = {}
    for query, time, values in searches:
        first, known = firsts.setdefault(query, (time, values))
        if time == first:
            firsts[query] = first, tuple(map(min, known, values))
    for query, (_, values) in islice(firsts.items(), cap.first):
        yield query, _cell(values, attributes)


def _clicks_and_fields(user: Sequence[Search], within: Cap) -> Iterator[tuple[Record, Mapping[str, str]]]:
    """As ``_clicks``, each with what is known of it."""
    for search in _searches_within(user, within):
        for place, target in enumerate(search.clicks):
            fields = search.click_fields[place] if search.click_fields else search.fields
            yield Record(search.query, target), fields


def _in_a_row(user: Sequence[Search]) -> Iterator[Record]:
    for one, following in pairwise(user):
        if one.query != following.query and following.time - one.time <= SESSION_GAP:
            yield Record(one.query, following.query)


def tally_of(records: Iterable[Record]) -> InMemoryTally:
    """How often each record occurs."""
    return _tally_of_counts(Counter(records))


def _tally_of_counts(counts: Mapping[Record, int]) -> InMemoryTally:
    numbers = np.arange(len(counts), dtype=np.int64)
    return InMemoryTally(ListedRecords(list(counts)), numbers, np.fromiter(counts.values(), np.int64, len(counts)))
