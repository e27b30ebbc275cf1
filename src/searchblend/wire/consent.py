"""The sentences that people agree to, as service and devices write them by themselves.

Each is true of the mechanism because it is computed from it (blender/report_odds.py). The JavaScript twin writes the
same ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from searchblend.blender.report_odds import ReportOdds

BELIEF: Final = 0.02
"""what a reader believes before a report, in the sentences that say what becomes of it"""


def optin_consent(records: int) -> str:
    """It says how many searches are sent: a round takes up to ``records`` of each person."""
    sent = "one of my searches is" if records == 1 else f"up to {records} of my searches are"
    return f"I agree that {sent} sent, sealed, to the curator of this list."


def task_consent(records: int, own: str) -> str:
    """What opt-in users of a task agree to: our sentence, then the operator's own words, if there are any.

    ``own`` may also be such a whole text: it stays as it is.
    """
    words = own_words(records, own)
    return f"{optin_consent(records)}\n{words}" if words else optin_consent(records)


def own_words(records: int, consent: str) -> str:
    """The operator's part of a text."""
    sentence = optin_consent(records)
    words = consent.removeprefix(f"{sentence}\n")
    return "" if words == sentence else words


def odds_words(odds: ReportOdds) -> str:
    """What a report gives away, as a part of a sentence."""
    times = times_in_100(odds.named)
    if odds.answers > 1:
        sent = f"each of the {odds.answers} answers names your true search {times}"
    elif odds.most_items > 1:
        sent = f"your true search is among the up to {odds.most_items} that are sent {times}"
    else:
        sent = f"your true search is sent {times}"
    most = math.ceil(100 * odds.belief_after(BELIEF))
    bound = f"at most {most} %" if most < 100 else "almost certainty"
    return f"{sent}, and whoever sees the report can raise a belief of 2 % that you made a search to {bound}"


def times_in_100(probability: float) -> str:
    """Rounded to whole hundredths; "never" and "always" are not said of what only seldom fails."""
    times = math.floor(100 * probability + 0.5)
    if times < 1:
        return "less than once in 100 times"
    if times > 99:
        return "more than 99 times in 100"
    return "about once in 100 times" if times == 1 else f"about {times} times in 100"
