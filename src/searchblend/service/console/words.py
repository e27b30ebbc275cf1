"""The words of the pages: numbers, moments and sizes as people write them, a round's states, why a round ended or a
message was refused.

Every page uses these and no others. ``actions`` has who takes a round on, and by which button.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from searchblend.core.visible import visible
from searchblend.service.actions import next_action, next_actor
from searchblend.service.clock import DAY
from searchblend.store.rounds import Round
from searchblend.store.states import State
from searchblend.wire import problems

NOTHING: Final = "–"
_MINUTE: Final = 60
_HOUR: Final = 3600


def number(value: float | None) -> str:
    """12,345"""
    return NOTHING if value is None else f"{value:,.0f}"


def percent(value: float | None) -> str:
    """A share with three significant digits: 12.3 %, 0.0123 %."""
    if value is None or not math.isfinite(value):
        return NOTHING
    hundredth = 100 * value
    if hundredth == 0:
        return "0 %"
    digits = max(0, min(6, 2 - math.floor(math.log10(abs(hundredth)))))
    return f"{hundredth:.{digits}f} %".replace("-", "−")


def points(value: float | None) -> str:
    """A difference of shares, with its sign: +0.12 pp."""
    if value is None:
        return NOTHING
    hundredth = 100 * value
    digits = 0 if hundredth == 0 else max(0, min(6, 1 - math.floor(math.log10(abs(hundredth)))))
    return f"{hundredth:+.{digits}f} pp".replace("-", "−")


def plain(value: float | None, digits: int = 4) -> str:
    """An ε, a δ or another number without a unit."""
    if value is None or math.isnan(value):
        return NOTHING
    return "∞" if math.isinf(value) else f"{value:.{digits}g}"


def moment(when: int | None) -> str:
    """16 Nov 2026, 02:29 UTC"""
    if when is None:
        return NOTHING
    day = datetime.fromtimestamp(when, UTC)
    return f"{day.day} {day:%b %Y, %H:%M} UTC"


def days(period: tuple[int, int]) -> str:
    """9 Nov 2026, 9 to 13 Nov 2026, 30 Nov to 2 Dec 2026"""
    first, last = (datetime.fromtimestamp(when, UTC) for when in period)
    end = f"{last.day} {last:%b %Y}"
    if first.date() == last.date():
        return end
    begin = str(first.day)
    if (first.year, first.month) != (last.year, last.month):
        begin += f" {first:%b}" if first.year == last.year else f" {first:%b %Y}"
    return f"{begin} to {end}"


def iso(when: int | None) -> str:
    """For machines: the ``datetime`` attribute of a time."""
    return "" if when is None else datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float) -> str:
    """How long: 3 days, 5 h 20 min, 12 s."""
    seconds = int(abs(seconds))
    if seconds >= 2 * DAY:
        return f"{seconds // DAY} days"
    if seconds >= _HOUR:
        hours, minutes = seconds // _HOUR, seconds % _HOUR // _MINUTE
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    if seconds >= _MINUTE:
        return f"{seconds // _MINUTE} min"
    return f"{seconds} s"


def size(n: int | None) -> str:
    """1.2 kB, in thousands"""
    if n is None:
        return NOTHING
    for unit, step in (("MB", 1_000_000), ("kB", 1_000)):
        if n >= step:
            return f"{n / step:.3g} {unit}"
    return f"{n} B"


def plural(n: int, one: str, many: str | None = None) -> str:
    """1 round, 2 rounds"""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


FILTERS: Final = {
    "number": number,
    "percent": percent,
    "points": points,
    "plain": plain,
    "moment": moment,
    "days": days,
    "iso": iso,
    "span": span,
    "size": size,
    "plural": plural,
    "visible": visible,
}


@dataclass(frozen=True)
class StateWords:
    """A state in words."""

    state: State
    title: str
    explains: str
    """what happens now, and what the button does"""
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
        "No one has been asked yet. Opening makes the round's key and lets opt-in users send sealed records.",
    ),
    StateWords(
        State.OPTIN_OPEN,
        "Opt-in window open",
        "Opt-in users send sealed records, each user one message. No one can read them before the window closes.",
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
        "A reviewer, who is not the one who opened the round, looks at the list before anyone else sees it.",
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
    "too-few-opt-in-users": "Fewer opt-in users took part than the task asks for. "
    "Give out more codes, or let the opt-in window stay open longer.",
    "too-few-usable-records": "Too many of the sealed records could not be read.",
    "too-few-clients": "Fewer devices reported than the task asks for. "
    "Let the client window stay open longer, or make a task that asks for fewer.",
    "too-few-queries": "The head list had fewer queries than the task asks for. "
    "More opt-in users or a larger ε list more; the planner says how many.",
    "budget-exceeded": "The ledger's cap does not allow another head list for this population. "
    "The page Budget says what is left.",
    "key-lost": "The round's key is gone, so no one can read its records.",
    "job-failed": "A step kept failing; the audit log says which one and why.",
    "shredding-deadline": "Raw records reached their deadline and were destroyed before a list was drawn.",
    "altered-list": "The list was changed after the curator had drawn it; nothing of it was published.",
    "altered-round": "The round was changed after the curator had opened it; its records were not opened.",
    "restored": "The service was restored from a backup, which holds no raw records.",
    "rejected": "The reviewer rejected the list.",
    "operator": "The operator ended it.",
    "killed": "The task was stopped.",
}
"""why a round ended without a result"""


@dataclass(frozen=True)
class Advice:
    """Why a message was refused, in words, and what to do about many of them."""

    means: str
    do: str


REFUSALS: Final[dict[str, Advice]] = {
    "malformed": Advice(
        "The message does not have the form that the round asks for.",
        "Many at once point to a device version that does not fit: raise the task's oldest device version.",
    ),
    "id-mismatch": Advice(
        "The report's id is not that of its bytes: it was changed on its way, or made by hand.",
        "Look for a proxy that rewrites bodies. If there is none, someone is probing the service; nothing was counted.",
    ),
    "wrong-round": Advice(
        "It was made for another task or round.",
        "A few come from late devices. If there are many, a cache serves an old manifest: shorten how long it may.",
    ),
    "wrong-head-list": Advice(
        "It was made for another head list.",
        "Check that caches serve artifacts under their own address, and that one database is behind all servers.",
    ),
    "window-closed": Advice(
        "It came when the round did not take it.",
        "A few are normal after closing. If there are many, lengthen the grace period in the task's settings.",
    ),
    "killed": Advice("The task was stopped.", "Nothing needs doing: devices learn of it from the next manifest."),
    "too-large": Advice(
        "The message is larger than is allowed.",
        "Look at the device version; a report of this round has one fixed size.",
    ),
    "bad-credential": Advice(
        "The enrolment code or token is missing or unknown.",
        "Opt-in: make new enrolment codes on the task's page. Reports: tokens of another round or issuer, or forged.",
    ),
    "spent-token": Advice(
        "The token was used before.", "If there are many, tokens are replayed; each counts once anyway."
    ),
    "wrong-consent": Advice(
        "The record was made under another consent text.",
        "Contributors must agree to the text of this round; check what the program shows them.",
    ),
    "conflicting-contribution": Advice(
        "The contributor has sent another record for this round before.",
        "One code on two devices, or a changed mind. The first record stays; it can be taken back and sent anew.",
    ),
    "not-admitted": Advice(
        "An opened record holds what no device keeps: control characters, personal data, or no web address.",
        "Devices of this project never send one. The audit log says how many of which kind; each was dropped alone.",
    ),
    "withdrawn": Advice(
        "A record that was taken back was in the database again when the list was drawn. It was not counted.",
        "Someone changes the database by hand: find out who, and change its passwords. The audit log has the number.",
    ),
}
assert set(REFUSALS) == set(problems.REASONS)


def words_of(round_: Round) -> StateWords:
    return STATE_WORDS[round_.state]


def deadline(round_: Round) -> int | None:
    """When time itself takes the round on."""
    return {
        State.OPTIN_OPEN: round_.optin_closes,
        State.CLIENT_OPEN: round_.client_closes,
        State.CLIENT_GRACE: round_.grace_until,
    }.get(round_.state)
