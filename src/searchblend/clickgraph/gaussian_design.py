"""The steps of a release with Gaussian noise: the least thresholds, then the least noise, that one (ε, δ) allows.

μ is shared out among the steps; it is searched from the largest that Gaussian noise alone may have downwards, since a
little more noise leaves more δ to the thresholds. proofs/gaussian_threshold.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from searchblend.clickgraph.click_log import Cap
from searchblend.clickgraph.dp_sips import ROUNDS, THRESHOLD_SHARE
from searchblend.clickgraph.gaussian_account import Reach, largest_mu, least_epsilon, total_delta
from searchblend.clickgraph.gaussian_selection import least_threshold, named_alone, reach_of_users
from searchblend.clickgraph.step import StepDesign
from searchblend.clickgraph.weighted_gaussian import reach_of_weights, units_for
from searchblend.errors import InvalidParameter
from searchblend.mechanisms.rounded_gaussian import LARGEST_SIGMA, RoundedGaussian, distance_bound, on_sigma_grid
from searchblend.params import ClickGraphParams
from searchblend.privacy import Budget

LATER_THRESHOLD_SHARE: Final = 0.25
"""the part of δ that private pairs and reformulations may use, each"""
_COARSE: Final = [1 + step / 100 for step in range(36)]
_REFINEMENTS: Final = 6


@dataclass(frozen=True)
class _Plan:
    """A step before its noise is known."""

    name: str
    cap: Cap
    share: float
    """of μ²"""
    kind: str
    """``counts``, ``users`` (thresholded) or ``weights`` (thresholded)"""
    delta: float | None = None
    """what its threshold may use; None: as much as is left"""


@dataclass(frozen=True)
class _Sized:
    """A step with its noise, and its threshold once it is known."""

    plan: _Plan
    sigma: Fraction
    units: int
    threshold: int | None = None

    @property
    def least(self) -> int:
        """What one user may add to a count."""
        return self.units

    def reach(self, threshold: int | None) -> Reach:
        sigma, cap = float(self.sigma), self.plan.cap.first
        if threshold is None:
            return Reach.one(
                cap * (self.units / sigma) ** 2 if self.plan.kind != "weights" else (self.units / sigma) ** 2
            )
        if self.plan.kind == "weights":
            return reach_of_weights(cap, self.units, sigma, threshold)
        return reach_of_users(cap, sigma, threshold)


def gaussian_steps(params: ClickGraphParams) -> list[StepDesign]:
    """All steps, in the order in which they are run; the first one's threshold takes what δ the others leave."""
    plans = _plans(params)
    best: tuple[tuple[float, ...], float] | None = None
    ceiling = largest_mu(params.budget.epsilon, params.budget.delta)
    for factor in _COARSE:
        found = _try(plans, ceiling / factor, params.budget)
        if found and (best is None or _merit(found) < best[0]):
            best = _merit(found), factor
    if best is None:
        raise InvalidParameter("delta", "too small at this ε: it must cover thresholds and the noise sampler")
    factor = _refined(best[1], lambda f: _merit_or_inf(_try(plans, ceiling / f, params.budget)))
    sized = _try(plans, ceiling / factor, params.budget)
    assert sized is not None
    return [_step(step, params.budget) for step in sized]


def _plans(params: ClickGraphParams) -> list[_Plan]:
    """Which steps there are, with their shares of μ²; shares of steps left out go to the others."""
    shares, later = params.shares, LATER_THRESHOLD_SHARE * params.budget.delta
    fresh = params.query_noise == "fresh"
    plans = [
        _Plan(
            "select queries",
            Cap(params.max_queries_per_user),
            shares.select + (0 if fresh else shares.counts),
            "users" if params.algorithm == "gaussian" else "weights",
        )
    ]
    if fresh:
        plans.append(_Plan("query counts", Cap(params.counted_queries_per_user), shares.counts, "counts"))
    if params.urls != "none":
        private = params.urls == "private"
        cap = Cap(params.max_clicks_per_user)
        kind = "users" if private else "counts"
        plans.append(_Plan("click counts", cap, shares.clicks, kind, later if private else None))
    if params.reformulations == "typed":
        cap = Cap(params.max_reformulations_per_user)
        plans.append(_Plan("reformulations", cap, shares.reformulations, "users", later))
    total = math.fsum(plan.share for plan in plans)
    plans = [replace(plan, share=plan.share / total) for plan in plans]
    return _in_rounds(plans, params.budget.delta) if params.algorithm == "dp_sips" else plans


def _in_rounds(plans: Sequence[_Plan], delta: float) -> list[_Plan]:
    left = delta - math.fsum(plan.delta for plan in plans if plan.delta)
    rounds = [
        replace(
            plans[0],
            name=f"select queries, round {number}",
            share=plans[0].share * float(share),
            delta=left * float(THRESHOLD_SHARE * share),
        )
        for number, share in enumerate(ROUNDS, start=1)
    ]
    return [*rounds, *plans[1:]]


def _try(plans: Sequence[_Plan], mu: float, budget: Budget) -> list[_Sized] | None:
    """Noise and thresholds at this μ, or None if they need more than δ."""
    sized = [_with_noise(plan, mu) for plan in plans]
    sized = [_with_threshold(step) if step.plan.delta else step for step in sized]
    later = [step.reach(step.threshold) for step in sized[1:]]
    left = budget.delta - _sampler_delta(sized, budget)
    first = sized[0]

    def is_private(threshold: int | None) -> bool:
        return total_delta(budget.epsilon, first.reach(threshold), *later) <= left

    if first.threshold is not None:
        return sized if is_private(first.threshold) else None
    if not is_private(None):
        return None
    return [replace(first, threshold=least_threshold(is_private, first.least)), *sized[1:]]


def _with_noise(plan: _Plan, mu: float) -> _Sized:
    """σ = Δ/(μ√share) on the grid; weights are as fine as the noise table allows."""
    relative = 1 / (mu * math.sqrt(plan.share))
    units = units_for(relative * 1.001, plan.cap.first) if plan.kind == "weights" else 1
    norm = units if plan.kind == "weights" else math.sqrt(plan.cap.first)
    if relative * norm > LARGEST_SIGMA:
        raise InvalidParameter("epsilon", f"too small: Gaussian noise of {relative * norm:.4g} drowns any log")
    return _Sized(plan, on_sigma_grid(relative * norm), units)


def _with_threshold(step: _Sized) -> _Sized:
    allowed = step.plan.delta or 0.0
    threshold = least_threshold(lambda t: named_alone(step.reach(t)) <= allowed, step.least)
    return replace(step, threshold=threshold)


def _sampler_delta(sized: Sequence[_Sized], budget: Budget) -> float:
    draws = math.fsum(step.plan.cap.first * distance_bound(float(step.sigma)) for step in sized)
    return (1 + math.exp(budget.epsilon)) * draws


def _merit(sized: Sequence[_Sized]) -> tuple[float, ...]:
    """Least threshold of the selection, in users; then the least noise."""
    first = sized[-1] if sized[0].plan.delta else sized[0]
    named = [step for step in sized if step.plan.kind == "weights"] or [first]
    return (round((named[-1].threshold or 0) / named[-1].units, 9), float(sized[0].sigma) / sized[0].units)


def _merit_or_inf(sized: Sequence[_Sized] | None) -> tuple[float, ...]:
    return _merit(sized) if sized else (math.inf, math.inf)


def _refined(factor: float, merit: Callable[[float], tuple[float, ...]]) -> float:
    """Between the coarse factor and the one before: the least noise with a threshold that is no higher."""
    low, high, best = max(factor - 0.01, 1.0), factor, merit(factor)
    for _ in range(_REFINEMENTS):
        middle = (low + high) / 2
        found = merit(middle)
        if found <= best:
            high, best = middle, found
        else:
            low = middle
    return high


def _step(step: _Sized, budget: Budget) -> StepDesign:
    reach = step.reach(step.threshold)
    return StepDesign(
        step.plan.name,
        step.plan.cap,
        RoundedGaussian(step.sigma),
        epsilon=least_epsilon(budget.delta, reach),
        delta=named_alone(reach) if step.threshold else 0.0,
        threshold=step.threshold,
        units=step.units,
        mu=math.sqrt(float(reach.mu_squared.max())),
    )
