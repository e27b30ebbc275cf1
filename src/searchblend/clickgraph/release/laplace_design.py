"""The steps of [KKMN09] Algorithm 1 with integer noise, and the same accounting for private pairs.

proofs/click_graph_laplace.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from searchblend.clickgraph.release.click_log import Cap
from searchblend.clickgraph.release.step import StepDesign, StepPlan
from searchblend.clickgraph.release.theorem1 import printed_threshold
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.gaussian_account import least_threshold

_SLACK: Final = 1e-9
"""more than the relative floating-point error of a tail"""


def laplace_steps(plans: Sequence[StepPlan], budget: Budget, accounting: str) -> list[StepDesign]:
    """[KKMN09] §6: ε_i = w_i ε, b_i = d_i/ε_i, and the selection's threshold from what δ the others leave.

    ``accounting`` is the selection's; pairs, which the paper does not threshold, always have the exact one.
    """
    epsilons = [Fraction(budget.epsilon) * plan.share for plan in plans]
    noises = [DiscreteLaplace(epsilon / plan.cap.first) for plan, epsilon in zip(plans, epsilons, strict=True)]
    draws = math.fsum(plan.cap.first * noise.distance for plan, noise in zip(plans, noises, strict=True))
    sampler = (1 + math.exp(budget.epsilon)) * draws
    left = budget.delta - sampler * (1 + _SLACK) - math.fsum(plan.delta or 0 for plan in plans)
    if left <= 0:
        raise InvalidParameter("delta", f"too small at this ε: the noise sampler alone needs {sampler:.3g}")
    return [
        _selection(plan, epsilon, noise, plan.delta or left, accounting if plan is plans[0] else "exact")
        if plan.thresholded
        else StepDesign(plan.name, plan.cap, noise, epsilon=float(epsilon), delta=0.0)
        for plan, epsilon, noise in zip(plans, epsilons, noises, strict=True)
    ]


def _selection(plan: StepPlan, epsilon: Fraction, noise: DiscreteLaplace, delta: float, accounting: str) -> StepDesign:
    """Lap(d/ε) and the least integer threshold that δ allows. Step 4, Lemmas 1 and 5.

    The paper's K is kept beside T: M + Lap(b) > K becomes M + Y ≥ T with the integer law's own tail.
    """
    cap = plan.cap
    threshold = _least_threshold(noise, cap, delta, accounting)
    printed = printed_threshold(Budget(float(epsilon), delta), cap.first, accounting=accounting, distinct=cap.distinct)
    return StepDesign(
        plan.name,
        cap,
        noise,
        epsilon=float(epsilon),
        delta=named_alone(noise, threshold, cap, accounting),
        threshold=threshold,
        printed_threshold=printed,
    )


def named_alone(noise: DiscreteLaplace, threshold: int, cap: Cap, accounting: str = "exact") -> float:
    """The probability, at most, that something which one user alone has is published.

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

    def is_private(threshold: int) -> bool:
        quiet = -math.log1p(-noise.at_least(threshold - 1))
        unlikely = named_alone(noise, threshold, cap, accounting) <= delta * (1 - _SLACK)
        return unlikely and quiet <= float(noise.rate) * (1 - _SLACK)

    return least_threshold(is_private, above=1 if cap.distinct else cap.first)
