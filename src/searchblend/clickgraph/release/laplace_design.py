"""The steps of [KKMN09] Algorithm 1: the integers that are run, and Theorem 1 in real numbers as the paper has them.

α = max(e^{1/b}, 1 + 1/(2e^{(K−1)/b} − 1)), ε = d ln α + d/b_q + d_c/b_c, δ = (d/2) e^{(d−K)/b}, K ≥ d.

``paper`` is that, as printed. ``exact`` is the same algorithm with the δ it really has: the d searches of one user are
at worst one query d times or d queries once, δ = ½ max(e^{(d−K)/b}, d e^{(1−K)/b}), the latter exactly
1 − (1 − ½e^{(1−K)/b})^d. Equation (9) of the paper drops the factor d and promises too much: it is not offered.
The integer mechanism has thresholds of its own, and the same accounting for private pairs.
proofs/click_graph_laplace.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from searchblend.clickgraph.release.click_log import Cap
from searchblend.clickgraph.release.step import StepDesign, StepPlan
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.gaussian_account import least_threshold

ACCOUNTINGS: Final = ("paper", "exact")
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


def noise_scale(epsilon: float, searches: int) -> float:
    """b = d/ε of the selection alone. §6"""
    return searches / epsilon


def printed_threshold(budget: Budget, searches: int, *, accounting: str = "paper", distinct: bool = False) -> float:
    """K at this (ε, δ) of the selection alone.

    ``paper``: d(1 − ln(2δ/d)/ε), Table 1. ``exact``: max(d + b ln(1/2δ), 1 + b ln(1/2δ₁)) with δ = 1 − (1 − δ₁)^d, the
    second alone if each user counts at most once per query (``distinct``).
    """
    _check(accounting, searches, budget.delta)
    b = noise_scale(budget.epsilon, searches)
    if accounting == "paper":
        return searches + b * math.log(searches / (2 * budget.delta))
    once_each = 1 + b * math.log(1 / (2 * _share_of_one(budget.delta, searches)))
    return once_each if distinct else max(searches + b * math.log(1 / (2 * budget.delta)), once_each)


def delta_of(
    noise_scale: float, threshold: float, searches: int, *, accounting: str = "paper", distinct: bool = False
) -> float:
    """δ of the selection with Lap(b) and K. K ≥ d is required, K ≥ 1 if each user counts once per query."""
    _check(accounting, searches)
    _check_threshold(threshold, 1 if distinct else searches)
    if accounting == "paper":
        return searches / 2 * math.exp((searches - threshold) / noise_scale)
    once_each = -math.expm1(searches * math.log1p(-math.exp((1 - threshold) / noise_scale) / 2))
    return once_each if distinct else max(once_each, math.exp((searches - threshold) / noise_scale) / 2)


def alpha(noise_scale: float, threshold: float) -> float:
    """α: what one search changes in any likelihood of the selection, at most."""
    return max(math.exp(1 / noise_scale), 1 + 1 / (2 * math.exp((threshold - 1) / noise_scale) - 1))


def alpha_threshold(noise_scale: float) -> float:
    """K_α: α = e^{1/b} iff K is at least this. Footnote 4 in closed form: 1 + b ln(1/(2(1 − e^{−1/b})))"""
    return 1 + noise_scale * math.log(1 / (-2 * math.expm1(-1 / noise_scale)))


def epsilon_of(
    noise_scale: float,
    threshold: float,
    searches: int,
    *,
    count_noise_scale: float = math.inf,
    clicks: int = 0,
    click_noise_scale: float = math.inf,
    distinct: bool = False,
) -> float:
    """ε = d ln α + d/b_q + d_c/b_c; a step that is left out has noise of infinite scale."""
    _check_threshold(threshold, 1 if distinct else searches)
    chosen = searches * math.log(alpha(noise_scale, threshold))
    return chosen + searches / count_noise_scale + clicks / click_noise_scale


def _share_of_one(delta: float, searches: int) -> float:
    """δ₁ with δ = 1 − (1 − δ₁)^d"""
    return -math.expm1(math.log1p(-delta) / searches)


def _check(accounting: str, searches: int, delta: float = 0.0) -> None:
    """δ ≥ ½ would need K < d, where the formulas do not hold."""
    if accounting not in ACCOUNTINGS:
        raise InvalidParameter("accounting", f"expected {' or '.join(ACCOUNTINGS)}")
    if searches < 1:
        raise InvalidParameter("max_queries_per_user", f"expected a whole number of at least 1, found {searches!r}")
    if not 0 <= delta < 0.5:
        raise InvalidParameter("delta", f"expected less than 1/2 for a selection, found {delta:g}")


def _check_threshold(threshold: float, least: int) -> None:
    if not threshold >= least:
        raise InvalidParameter(
            "threshold", f"expected at least {least}, found {threshold:g}: the proof holds for no smaller one"
        )
