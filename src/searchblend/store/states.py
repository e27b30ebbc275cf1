"""The states of a round and the arrows between them."""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from typing import Final


class State(StrEnum):
    """Where a round stands; in the order in which it goes."""

    DRAFT = "DRAFT"
    OPTIN_OPEN = "OPTIN_OPEN"
    OPTIN_CLOSED = "OPTIN_CLOSED"
    HEADLIST_READY = "HEADLIST_READY"
    SHREDDED = "SHREDDED"
    REVIEWED = "REVIEWED"
    CLIENT_OPEN = "CLIENT_OPEN"
    CLIENT_GRACE = "CLIENT_GRACE"
    CLOSED = "CLOSED"
    ESTIMATED = "ESTIMATED"
    PUBLISHED = "PUBLISHED"
    ABORTED = "ABORTED"


_ORDER: Final[list[State]] = [state for state in State if state is not State.ABORTED]
NEXT: Final[dict[State, State]] = dict(pairwise(_ORDER))
ENDED: Final = frozenset({State.PUBLISHED, State.ABORTED})
HOLDS_RAW: Final = frozenset({State.OPTIN_OPEN, State.OPTIN_CLOSED, State.HEADLIST_READY})
"""states in which sealed opt-in records and the key that opens them may exist"""
PAST_RAW: Final = frozenset(State) - HOLDS_RAW - {State.DRAFT}
"""states in which neither may exist any more"""
TAKES_REPORTS: Final = frozenset({State.CLIENT_OPEN, State.CLIENT_GRACE})


def may_follow(before: State, after: State) -> bool:
    """Whether there is an arrow: to the next state, or to ABORTED from any that has not ended."""
    return NEXT.get(before) is after or (after is State.ABORTED and before not in ENDED)
