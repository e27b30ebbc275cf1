"""Releases over time: daily or weekly windows of a month, and one account for each person. proofs/releases_over_time.md

A user's contribution is bounded once for the whole month and not once for each window: their first d different pairs of
window and query, by time. What of it lies in a window is counted in that window's release. So a month of releases
costs one person as much as a single release with the same caps. A window can be released when it is over, since what
counts in it depends on nothing that comes later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from searchblend.clickgraph.release.click_log import Cap, InMemoryClickLog, Search, tally_of
from searchblend.core.records import WILDCARD, Record
from searchblend.mechanisms.tally import InMemoryTally


@dataclass(frozen=True)
class AccountWindow:
    """A window, and the month that it shares its caps with: moments in seconds since 1970, UTC.

    ``logs.activity.account_window`` makes it.
    """

    account: float
    """when the month begins"""
    first: float
    last: float
    """the first moment after the window"""
    period: float
    """how long windows are; the last of a month may be shorter"""
    month: str
    """as a ledger names it"""
    name: str
    """the days of the window"""

    def number(self, moment: float) -> int:
        """Which window of the month a moment lies in."""
        return int((moment - self.account) // self.period)


class InMemoryWindowLog(InMemoryClickLog):
    """The window of a log of people in memory: a ``ClickLog`` of what counts in it."""

    def __init__(self, users: Iterable[Sequence[Search]], window: AccountWindow) -> None:
        so_far = [[s for s in searches if window.account <= s.time < window.last] for searches in users]
        super().__init__(so_far)
        self._window = window

    def searches(self, cap: Cap) -> InMemoryTally:
        """See ``ClickLog``."""
        return tally_of(self._each(lambda user: (Record(query, WILDCARD) for query in self._queries(user, cap))))

    def searches_of(self, queries: Sequence[str], cap: Cap) -> dict[str, int]:
        """The count of each of these queries; here the cap applies first."""
        counts = dict.fromkeys(queries, 0)
        for query in self._each(lambda user: self._queries(user, cap)):
            if query in counts:
                counts[query] += 1
        return counts

    def clicks(self, queries: Sequence[str], cap: Cap, *, within: Cap) -> InMemoryTally:
        """How often each record of these queries was clicked; here the cap applies first."""
        wanted = set(queries)
        return tally_of(self._each(lambda user: (r for r in self._pairs(user, cap, within) if r.query in wanted)))

    def clicks_of(
        self, records: Sequence[Record], cap: Cap, *, within: Cap, restrict_first: bool = True
    ) -> Mapping[Record, int]:
        """The clicks on each of these records; here the cap applies first."""
        counts = dict.fromkeys(records, 0)
        for record in self._each(lambda user: self._pairs(user, cap, within)):
            if record in counts:
                counts[record] += 1
        return counts

    def _queries(self, user: Sequence[Search], cap: Cap) -> Iterator[str]:
        here = self._window.number(self._window.first)
        return (query for number, query in self._kept(user, cap) if number == here)

    def _kept(self, user: Sequence[Search], cap: Cap) -> list[tuple[int, str]]:
        """A user's first different pairs of window and query."""
        pairs = dict.fromkeys((self._window.number(search.time), search.query) for search in user)
        return list(islice(pairs, cap.first))

    def _pairs(self, user: Sequence[Search], cap: Cap, within: Cap) -> Iterator[Record]:
        number: Callable[[float], int] = self._window.number
        here, kept = number(self._window.first), set(self._kept(user, within))
        clicks = dict.fromkeys(
            (number(search.time), Record(search.query, target))
            for search in user
            if (number(search.time), search.query) in kept
            for target in search.clicks
        )
        return (record for at, record in islice(clicks, cap.first) if at == here)
