"""What people agree to, word for word. The SHA-256 of the text is kept with the time and the mode."""

from __future__ import annotations

import hashlib
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from searchblend.blender.report_odds import list_odds
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.device.policy import POLICY, Policy
from searchblend.wire.consent import odds_words, own_words, task_consent

if TYPE_CHECKING:
    from searchblend.device.state import Consent

OFF: Final = "off"
SEARCH: Final = "search"
"""packs are fetched and searched, and nothing is given"""
LOCAL: Final = "local"
OPT_IN: Final = "opt-in"
GIVING: Final = (LOCAL, OPT_IN)
"""modes that need consent to a text"""
MODES: Final = (OFF, SEARCH, *GIVING)
_USUAL: Final = BlenderParams(Budget(4.0, 1e-5))
"""what a task asks for unless its operator changes it"""
_WIDTH: Final = 100


def local_text(policy: Policy, records: int = 1) -> str:
    """No list is known yet, so it states the odds of a usual one, and of the worst that the policy lets through.

    Of several records the worst is that a round asks for one alone, which then has all of ε.
    """
    asked = replace(_USUAL, records_per_client=records)
    worst = BlenderParams(Budget(policy.largest_epsilon, policy.largest_delta))
    usual_odds = odds_words(list_odds(asked, asked.max_head_queries))
    worst_odds = odds_words(list_odds(worst, policy.fewest_queries))
    searches = "one search" if policy.fewest_queries == 1 else f"{policy.fewest_queries} searches"
    drawn, answers = ("one", "a randomized answer") if records == 1 else (f"up to {records}", "randomized answers")
    paragraphs = (
        f"This device keeps your searches and the results that you chose. In each round of the task it draws {drawn} "
        f"of them at random and sends {answers} about a list of common searches. A search that is not on the list is "
        "never named.",
        f"Randomized does not mean secret. Over a list of {_USUAL.max_head_queries} searches at "
        f"ε = {_USUAL.budget.epsilon:g}, {usual_odds}. Over {searches} at ε = {policy.largest_epsilon:g}, the shortest "
        f"list and the most that this device accepts in a round, {worst_odds}. Several reports together reveal more "
        "than one. `searchblend device show` states the odds of each.",
        "That you take part, and when, can be seen. You can look at everything that was sent, pause, erase what is "
        "kept, and leave at any time; what was sent cannot be taken back.",
    )
    return "\n".join(textwrap.fill(paragraph, _WIDTH) for paragraph in paragraphs)


def usual_records(mode: str) -> int:
    """How many searches a round of a usual task takes, which is what people are asked for unless they say a number."""
    return POLICY.most_records_per_round if mode == OPT_IN else _USUAL.records_per_client


def text_of(mode: str, records: int = 1, own: str = "") -> str:
    """What is agreed to in a mode: how many searches a round may take, and for opt-in the task's own words."""
    if not 1 <= records <= POLICY.most_records_per_round:
        raise InvalidParameter("records", f"expected 1 to {POLICY.most_records_per_round}")
    return local_text(POLICY, records) if mode == LOCAL else task_consent(records, own)


def digest_for(consent: Consent, asked: int) -> str:
    """Of the opt-in text for a round that takes ``asked`` searches, in the words of a consent to at least as many:
    whoever agreed to up to 20 agreed to up to 5."""
    return text_digest(task_consent(asked, own_words(consent.records, consent.text or "")))


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
