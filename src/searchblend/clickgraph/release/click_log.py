"""What the release of a click graph may ask of a log: limited activity, counted. [KKMN09] Algorithm 1, step 1.

Every question names a cap on what each user contributes, and every answer is a tally or a few counts: sensitivity is
decided here and nowhere else. An engine answers for a log on disk, ``InMemoryClickLog`` for a list of people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from searchblend.core.errors import InvalidParameter
from searchblend.core.records import Record
from searchblend.mechanisms.tally import Tally

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

    def searches(self, cap: Cap) -> Tally:
        """M(q): how often each query occurs in the limited log."""
        ...

    def weighted_searches(self, first: int, units: int, without: Sequence[str]) -> Tally:
        """Integer weights: each of a user's s queries gets floor(units/√s), so that their ℓ2 norm is ``units`` at most.

        They are the first ``first`` distinct queries of the user, those in ``without`` left out before.
        """
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
