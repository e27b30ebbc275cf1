"""Do opt-in users and clients search alike? A test of released values, for the reader: nothing is decided by it.

The blend averages over how much the groups may differ (``trust.py``); the p-value, the size of the difference and the
queries whose figures cannot be explained by it stand beside the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.estimates import Floats

LEVEL: Final = 0.05


@dataclass(frozen=True)
class GroupCheck:
    """What the reader is told about both groups."""

    tested: int
    p_value: float
    """of "both groups have the same shares", by χ² over the tested queries"""
    divergence: float
    """τ: the typical relative difference between the groups' shares of a query, averaged over what it may be"""
    flagged: tuple[int, ...]
    """the alarm: positions of queries whose gap no difference of that size explains, fabricated reports perhaps; one
    false alarm in a hundred releases"""

    @property
    def agrees(self) -> bool:
        return self.p_value >= LEVEL


def p_value_of(z: Floats, testable: NDArray[np.bool_]) -> float:
    """P(χ² ≥ Σ z²) over the testable queries; 1 if there is none."""
    tested = int(testable.sum())
    return chi_square_tail(tested, float((z**2)[testable].sum())) if tested else 1.0


def chi_square_tail(freedom: int, value: float) -> float:
    """P(χ² ≥ value) with a whole number of degrees of freedom, in closed form: e^{−y} Σ y^i/Γ(i+1), y = value/2.

    i runs up to freedom/2 − 1, from 0 in whole steps or from 1/2; in the second case erfc(√y) is added. All terms are
    positive, so small tails keep their digits. By hand, since scipy's twin takes a quarter of a second to import.
    """
    y = value / 2
    if y <= 0:
        return 1.0
    first = 0.5 * (freedom % 2)
    powers = (i + first for i in range(freedom // 2))
    terms = (math.exp(i * math.log(y) - y - math.lgamma(i + 1)) for i in powers)
    return min(math.fsum(terms) + (math.erfc(math.sqrt(y)) if first else 0.0), 1.0)
