"""Do opt-in users and clients search alike? Tests on released values, so they cost no privacy.

The blend rests on it. If the groups differ, the result says so, the opt-in counts lose weight, and the difference is
given as a number.
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
    """The verdict for all tested queries together, and query by query."""

    tested: int
    p_value: float
    """of "both groups have the same shares", by χ² over the tested queries"""
    tilt: float
    """τ²: how much the opt-in users' preference varies from query to query, relative (0 if the groups agree)"""
    flagged: tuple[int, ...]
    """positions of queries whose own difference is significant after Holm's correction"""

    @property
    def agrees(self) -> bool:
        return self.p_value >= LEVEL

    @property
    def divergence(self) -> float:
        """τ: the typical relative difference between the groups' shares of a query"""
        return math.sqrt(self.tilt)


def check_groups(gap: Floats, variance: Floats, total: Floats, testable: NDArray[np.bool_]) -> GroupCheck:
    """χ² of all gaps, Holm for each, and the tilt by the method of moments.

    ``gap`` = opt-in minus client share of each query, ``variance`` its variance if the groups agree, ``total`` the
    pooled share. Only ``testable`` queries are used: near the threshold selection alone makes the gap positive.
    """
    where = np.flatnonzero(testable)
    if not len(where):
        return GroupCheck(0, 1.0, 0.0, ())
    gap, variance, total = gap[where], variance[where], total[where]
    p_value = chi_square_tail(len(where), float((gap**2 / variance).sum()))
    weight = total**4 / variance**2
    moment = float((weight * (gap**2 - variance) / total**2).sum() / weight.sum())
    tilt = max(moment, 0.0) if p_value < LEVEL else 0.0
    return GroupCheck(len(where), p_value, tilt, tuple(where[_holm(gap / np.sqrt(variance))].tolist()))


def _holm(z: Floats) -> list[int]:
    """The positions rejected by Holm's step-down procedure at the 5 % level."""
    p = np.array([math.erfc(abs(value) / math.sqrt(2)) for value in z.tolist()])
    rejected: list[int] = []
    for step, i in enumerate(np.argsort(p).tolist()):
        if p[i] > LEVEL / (len(p) - step):
            break
        rejected.append(i)
    return sorted(rejected)


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
