"""DP-SIPS (Swanberg, Desfontaines, Haney 2023): weighted selection in rounds, what is published left out of the next.

A cheap first round finds the head; users then weigh only what is not found yet. Three rounds with 1/13, 3/13 and 9/13
of μ² and of the thresholds' δ. proofs/dp_sips.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from searchblend.clickgraph.release.step import StepPlan

ROUNDS: Final = (Fraction(1, 13), Fraction(3, 13), Fraction(9, 13))
"""the share of each round"""
THRESHOLD_SHARE: Final = 0.5
"""the part of δ that the thresholds of all rounds may use; the rest is the noise's"""


def in_rounds(plans: Sequence[StepPlan], delta: float) -> list[StepPlan]:
    """The selection, which comes first, in rounds."""
    selection, *others = plans
    left = delta - math.fsum(plan.delta for plan in others if plan.delta)
    rounds = [
        replace(
            selection,
            name=f"{selection.name}, round {number}",
            share=selection.share * share,
            delta=left * THRESHOLD_SHARE * float(share),
        )
        for number, share in enumerate(ROUNDS, start=1)
    ]
    return [*rounds, *others]
