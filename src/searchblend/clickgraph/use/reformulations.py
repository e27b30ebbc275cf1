"""Which published query was typed after which: an extension of [KKMN09] §6, which has clicks on suggestions only.

All pairs of published queries are public candidates, but too many to publish a noisy count for each: pairs of the log
pass a threshold with a budget of their own. proofs/click_edges.md. Run by the curator.
"""

from __future__ import annotations

from collections.abc import Sequence

from searchblend.clickgraph.release.click_log import ClickLog
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.randomness import Randomness
from searchblend.core.records import Record
from searchblend.mechanisms.noisy_counts import noisy_counts


def typed_reformulations(
    log: ClickLog, queries: Sequence[str], step: StepDesign, *, randomness: Randomness
) -> dict[Record, int]:
    """⟨q, q'⟩ with the noisy number of times that q' came after q, where it reaches the threshold."""
    return noisy_counts(log.reformulations(queries, step.cap), step.count_threshold, randomness=randomness)
