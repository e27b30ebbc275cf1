"""The steps of a release with Gaussian noise: the least thresholds, then the least noise, that one (ε, δ) allows.

μ is shared out among the steps; it is searched from the largest that Gaussian noise alone may have downwards, since a
little more noise leaves more δ to the thresholds. proofs/gaussian_threshold.md

DP-SIPS (Swanberg, Desfontaines, Haney 2023) selects by weight in rounds, what is published left out of the next: a
cheap first round finds the head, users then weigh only what is not found yet. Three rounds with 1/13, 3/13 and 9/13 of
μ² and of the thresholds' δ. proofs/dp_sips.md. Adaptive selection has two rounds in one step
(``adaptive_selection.py``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final

from searchblend.clickgraph.release.adaptive_selection import (
    FirstRound,
    OwnQueries,
    reach_of_two_rounds,
    sampler_distance,
    two_rounds,
)
from searchblend.clickgraph.release.step import StepDesign, StepPlan
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget
from searchblend.mechanisms.gaussian_account import (
    Reach,
    largest_mu,
    least_epsilon,
    least_threshold,
    named_alone,
    reach,
    total_delta,
    units_for,
)
from searchblend.mechanisms.rounded_gaussian import LARGEST_SIGMA, RoundedGaussian, distance_bound, on_sigma_grid

_COARSE: Final = tuple(1 + step / 64 for step in range(24))
"""how much more noise than the least is tried"""
_REFINEMENTS: Final = 7
ROUNDS: Final = (Fraction(1, 13), Fraction(3, 13), Fraction(9, 13))
"""the share of each round"""
THRESHOLD_SHARE: Final = 0.5
"""the part of δ that the thresholds of all rounds may use; the rest is the noise's"""


@dataclass(frozen=True)
class _Sized:
    """A step with its noise, and its threshold once it is known."""

    plan: StepPlan
    sigma: Fraction
    units: int
    threshold: int | None = None
    first_round: FirstRound | None = None

    @cached_property
    def _own(self) -> OwnQueries:
        assert self.first_round is not None
        return OwnQueries(self.plan.cap.first, self.first_round, float(self.sigma), self.units)

    def reach(self, threshold: int | None) -> Reach:
        if self.first_round is not None:
            named = 0.0 if threshold is None else self._own.named(threshold)
            return reach_of_two_rounds(self.first_round, self.units, float(self.sigma), named)
        outcome = reach(self.plan.cap.first, self.units, float(self.sigma), threshold)
        return outcome.worst if self.plan.windows else outcome


def gaussian_steps(plans: Sequence[StepPlan], budget: Budget) -> list[StepDesign]:
    """All steps, in the order in which they are run; a selection in one step takes what δ the others leave."""
    if plans[0].rounds:
        plans = in_rounds(plans, budget.delta)
    elif plans[0].adaptive:
        plans = [replace(plans[0], delta=THRESHOLD_SHARE * _left(plans, budget.delta)), *plans[1:]]
    ceiling = largest_mu(budget.epsilon, budget.delta)
    best: tuple[tuple[float, float], float, list[_Sized]] | None = None
    for factor in _COARSE:
        steps = _at(plans, ceiling / factor, budget)
        if steps and (best is None or _merit(steps) < best[0]):
            best = _merit(steps), factor, steps
        if steps and plans[0].delta:
            break  # thresholds are given their δ: more noise is only worse
    if best is None:
        raise InvalidParameter("delta", "too small at this ε: it must cover the thresholds and the noise sampler")
    sized = _refined(plans, ceiling, best[1], best[2], budget)
    return [_step(step, budget) for step in sized]


def _at(plans: Sequence[StepPlan], mu: float, budget: Budget) -> list[_Sized] | None:
    """Noise and thresholds at this μ, or None if they need more than δ."""
    sized = [_with_noise(plan, mu) for plan in plans]
    sized = [_with_threshold(step, step.plan.delta) if step.plan.delta else step for step in sized]
    first, later = sized[0], [step.reach(step.threshold) for step in sized[1:]]
    left = budget.delta - _sampler_delta(sized, budget)

    def is_private(threshold: int | None) -> bool:
        return total_delta(budget.epsilon, first.reach(threshold), *later) <= left

    if not is_private(first.threshold):
        return None
    if first.threshold is None:
        first = replace(first, threshold=least_threshold(is_private, first.units))
    return [first, *sized[1:]]


def _with_noise(plan: StepPlan, mu: float) -> _Sized:
    """σ = Δ/(μ√share) on the grid; weights are as fine as the noise table allows."""
    relative = 1 / (mu * math.sqrt(plan.share))
    if plan.adaptive and plan.delta:
        first_round, least, units = two_rounds(plan.cap.first, relative, plan.delta)
        return _Sized(plan, least, units, first_round=first_round)
    units = units_for(relative, plan.cap.first) if plan.weighted else 1
    sigma = relative * (units if plan.weighted else math.sqrt(plan.cap.first))
    if sigma > LARGEST_SIGMA:
        raise InvalidParameter("epsilon", f"too small: Gaussian noise of {sigma:.4g} drowns any log")
    return _Sized(plan, min(on_sigma_grid(sigma), Fraction(LARGEST_SIGMA)), units)


def _with_threshold(step: _Sized, allowed: float) -> _Sized:
    return replace(step, threshold=least_threshold(lambda t: named_alone(step.reach(t)) <= allowed, step.units))


def _sampler_delta(sized: Sequence[_Sized], budget: Budget) -> float:
    draws = math.fsum(step.plan.cap.first * distance_bound(float(step.sigma)) for step in sized)
    draws += math.fsum(sampler_distance(step.plan.cap.first, step.first_round) for step in sized if step.first_round)
    return (1 + math.exp(budget.epsilon)) * draws


def _merit(sized: Sequence[_Sized]) -> tuple[float, float]:
    """Least threshold of a selection whose threshold was searched, in users; then the least noise."""
    first = sized[0]
    searched = 0 if first.plan.delta else first.threshold or 0
    return searched / first.units, float(first.sigma) / first.units


def _refined(
    plans: Sequence[StepPlan], ceiling: float, factor: float, best: list[_Sized], budget: Budget
) -> list[_Sized]:
    """Between this factor and the one before: less noise with a threshold that is not higher."""
    low, high = max(factor - (_COARSE[1] - _COARSE[0]), 1.0), factor
    for _ in range(_REFINEMENTS):
        middle = (low + high) / 2
        steps = _at(plans, ceiling / middle, budget)
        if steps and _merit(steps) <= _merit(best):
            high, best = middle, steps
        else:
            low = middle
    return best


def _step(step: _Sized, budget: Budget) -> StepDesign:
    reached = step.reach(step.threshold)
    return StepDesign(
        step.plan.name,
        step.plan.cap,
        RoundedGaussian(step.sigma),
        epsilon=least_epsilon(budget.delta, reached),
        delta=named_alone(reached) if step.threshold else 0.0,
        threshold=step.threshold,
        units=step.units,
        mu=math.sqrt(float(reached.mu_squared.max())),
        first_round=step.first_round,
    )


def in_rounds(plans: Sequence[StepPlan], delta: float) -> list[StepPlan]:
    """The selection, which comes first, in rounds."""
    selection, *others = plans
    left = _left(plans, delta)
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


def _left(plans: Sequence[StepPlan], delta: float) -> float:
    """Of δ, when the steps after the selection have theirs."""
    return delta - math.fsum(plan.delta for plan in plans[1:] if plan.delta)


def gaussian_total_delta(epsilon: float, steps: Sequence[StepDesign], *, windows: bool = False) -> float:
    """δ at this ε of all steps together, with ideal noise.

    ``windows``: of the steps of all windows that share their caps. What is new in one window may depend on what earlier
    ones published, so that the first step counts at its worst, too (proofs/releases_over_time.md).
    """
    first, *later = map(_reach_of, steps)
    return total_delta(epsilon, first.worst if windows else first, *later)


def _reach_of(step: StepDesign) -> Reach:
    if step.first_round is not None:
        own = OwnQueries(step.cap.first, step.first_round, step.noise.scale, step.units)
        return reach_of_two_rounds(step.first_round, step.units, step.noise.scale, own.named(step.threshold or 0))
    return reach(step.cap.first, step.units, step.noise.scale, step.threshold)
