"""The steps of [KKMN09] Algorithm 1 with integer noise, and the same accounting for private pairs.

proofs/click_graph_laplace.md
"""

from __future__ import annotations

import math
from fractions import Fraction

from searchblend.clickgraph.click_log import Cap
from searchblend.clickgraph.step import StepDesign
from searchblend.clickgraph.theorem1 import printed_threshold
from searchblend.errors import InvalidParameter
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.privacy import Budget

_SLACK = 1e-9
_LARGEST_THRESHOLD = 1 << 40


def laplace_counts(name: str, cap: Cap, epsilon: Fraction) -> StepDesign:
    """Lap(cap/ε) on every count: a user moves them by ``cap`` in all. Steps 5 and 6, Theorem 2."""
    return StepDesign(name, cap, DiscreteLaplace(epsilon / cap.first), epsilon=float(epsilon), delta=0.0)


def laplace_selection(name: str, cap: Cap, epsilon: Fraction, delta: float, accounting: str = "exact") -> StepDesign:
    """Lap(d/ε) and the least integer threshold that δ allows. Step 4, Lemmas 1 and 5.

    The paper's K is kept beside T: M + Lap(b) > K becomes M + Y ≥ T with the integer law's own tail.
    """
    noise = DiscreteLaplace(epsilon / cap.first)
    threshold = _least_threshold(noise, cap, delta, accounting)
    return StepDesign(
        name,
        cap,
        noise,
        epsilon=float(epsilon),
        delta=named_alone(noise, threshold, cap, accounting),
        threshold=threshold,
        printed_threshold=printed_threshold(
            Budget(float(epsilon), delta), cap.first, accounting=accounting, distinct=cap.distinct
        ),
    )


def named_alone(noise: DiscreteLaplace, threshold: int, cap: Cap, accounting: str = "exact") -> float:
    """The probability, at most, that a query which one user alone has is published.

    ``paper``: d queries that occur d times each, the union bound of Theorem 1. ``exact``: what is the worst of d
    searches in all, one query d times or d queries once (proofs/click_graph_laplace.md).
    """
    d = cap.first
    if accounting == "paper":
        return d * noise.at_least(threshold - d)
    once_each = -math.expm1(d * math.log1p(-noise.at_least(threshold - 1)))
    return once_each if cap.distinct else max(once_each, noise.at_least(threshold - d))


def _least_threshold(noise: DiscreteLaplace, cap: Cap, delta: float, accounting: str) -> int:
    """Least T with ``named_alone`` ≤ δ, T above what one user adds to a count, and e^{1/b} ≥ 1/(1 − π₁).

    The last is the paper's condition that α = e^{1/b}: it always holds at the δ of a sane release.
    """

    def too_low(threshold: int) -> bool:
        quiet = -math.log1p(-noise.at_least(threshold - 1))
        unlikely = named_alone(noise, threshold, cap, accounting) <= delta * (1 - _SLACK)
        return not unlikely or quiet > float(noise.rate) * (1 - _SLACK)

    low = 1 if cap.distinct else cap.first
    high = low + 1
    while too_low(high):
        low, high = high, 2 * high
        if high > _LARGEST_THRESHOLD:
            raise InvalidParameter("delta", "too small at this ε: no threshold reaches it")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if too_low(middle) else (low, middle)
    return high
