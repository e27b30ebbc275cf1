"""What people read about a round: its states, and why it ended. ``actions`` has who is next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from searchblend.service.actions import next_action, next_actor
from searchblend.store.rounds import Round
from searchblend.store.states import State


@dataclass(frozen=True)
class StateWords:
    """A state in words."""

    state: State
    title: str
    explains: str
    """what happens now and what the button does"""
    by_itself: str = ""
    """what time does if the button is not pressed; ``{when}`` is filled in"""

    @property
    def who(self) -> str:
        """Who moves the round on: a role of people, or a part of the service."""
        return next_actor(self.state)

    @property
    def action(self) -> str:
        """The last part of the address that the button posts to; empty where there is no button."""
        action = next_action(self.state)
        return action.path if action else ""

    @property
    def button(self) -> str:
        action = next_action(self.state)
        return action.button if action else ""


_WORDS: Final = (
    StateWords(
        State.DRAFT,
        "Draft",
        "Nobody has been asked yet. Opening makes the round's key and lets opt-in users send sealed records.",
    ),
    StateWords(
        State.OPTIN_OPEN,
        "Opt-in window open",
        "Opt-in users send one sealed record each. Nobody can read them before the window closes.",
        "It closes by itself {when}.",
    ),
    StateWords(
        State.OPTIN_CLOSED,
        "Drawing the head list",
        "The curator opens the records once, in memory, and draws the private head list.",
    ),
    StateWords(
        State.HEADLIST_READY,
        "Shredding raw records",
        "The head list is drawn. The key and the raw records are being destroyed.",
    ),
    StateWords(
        State.SHREDDED,
        "Waiting for review",
        "A reviewer, who is not the one who opened the round, looks at the list before anybody else sees it.",
    ),
    StateWords(
        State.REVIEWED,
        "Opening for clients",
        "The reviewed list is being signed and published to devices.",
    ),
    StateWords(
        State.CLIENT_OPEN,
        "Client window open",
        "Devices randomize their own record over the list and report. Counts grow; no report is kept.",
        "It closes by itself {when}.",
    ),
    StateWords(
        State.CLIENT_GRACE,
        "Grace period",
        "No new reports are asked for; those on their way are still counted.",
        "It ends by itself {when}.",
    ),
    StateWords(State.CLOSED, "Estimating", "Counts become shares: both groups are weighed and blended."),
    StateWords(State.ESTIMATED, "Publishing", "The result is being signed and published."),
    StateWords(State.PUBLISHED, "Published", "The result is public and will not change."),
    StateWords(State.ABORTED, "Ended without a result", "Nothing is published. Raw records and counts are gone."),
)
STATE_WORDS: Final = {words.state: words for words in _WORDS}
REASONS: Final = {
    "too-few-opt-in-users": "Fewer opt-in users took part than the task asks for.",
    "too-few-usable-records": "Too many of the sealed records could not be read.",
    "too-few-clients": "Fewer devices reported than the task asks for.",
    "too-few-queries": "The head list had fewer queries than the task asks for.",
    "budget-exceeded": "The ledger's cap does not allow another head list for this population.",
    "key-lost": "The round's key is gone, so nobody can read its records.",
    "job-failed": "A step failed again and again, whatever was tried; the audit log has which and why.",
    "shredding-deadline": "Raw records reached their deadline and were destroyed before a list was drawn.",
    "rejected": "The reviewer rejected the list.",
    "operator": "The operator ended it.",
    "killed": "The task was stopped.",
}
"""why a round ended without a result"""


def words_of(round_: Round) -> StateWords:
    return STATE_WORDS[round_.state]


def deadline(round_: Round) -> int | None:
    """When time itself takes the round on."""
    return {
        State.OPTIN_OPEN: round_.optin_closes,
        State.CLIENT_OPEN: round_.client_closes,
        State.CLIENT_GRACE: round_.grace_until,
    }.get(round_.state)
