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


def understates(consent: str, records: int) -> bool:
    """Whether this is our own sentence for fewer searches than ``records``. A custom text is its author's to answer."""
    return any(consent == optin_consent(fewer) for fewer in range(1, records))


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
