"""DP-SIPS (Swanberg, Desfontaines, Haney 2023): weighted selection in rounds, what is published left out of the next.

A cheap first round finds the head; users then weigh only what is not found yet. Three rounds with 1/13, 3/13 and 9/13
of μ² and of the thresholds' δ. proofs/dp_sips.md
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

ROUNDS: Final = (Fraction(1, 13), Fraction(3, 13), Fraction(9, 13))
"""the share of each round"""
THRESHOLD_SHARE: Final = Fraction(1, 2)
"""the part of δ that the thresholds of all rounds may use; the rest is the noise's"""
