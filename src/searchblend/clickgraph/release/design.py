"""What is known of a release before the log is read: noises, thresholds, caps and what each step costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from searchblend.clickgraph.release.click_log import Cap
from searchblend.clickgraph.release.gaussian_design import gaussian_steps, gaussian_total_delta
from searchblend.clickgraph.release.laplace_design import laplace_steps
from searchblend.clickgraph.release.step import StepDesign, StepPlan
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams

SELECT: Final = "select queries"
QUERY_COUNTS: Final = "query counts"
CLICK_COUNTS: Final = "click counts"
REFORMULATIONS: Final = "reformulations"
LATER_THRESHOLD_SHARE: Final = 0.25
"""the part of δ that private pairs and reformulations may use, each"""


@dataclass(frozen=True)
class ClickGraphDesign:
    """A release as it will be run. Public: made from the parameters alone."""

    params: ClickGraphParams
    steps: tuple[StepDesign, ...]
    """in the order in which they are run"""
    mechanism_delta: float
    """δ with ideal noise"""
    sampler_delta: float
    """what the samplers' distance from the ideal laws adds"""

    @classmethod
    def of(cls, params: ClickGraphParams) -> ClickGraphDesign:
        """The least thresholds and noise that the budget allows."""
        plans, budget = step_plans(params), params.budget
        if params.gaussian_noise:
            steps = tuple(gaussian_steps(plans, budget))
            mechanism = gaussian_total_delta(budget.epsilon, steps)
        else:
            steps = tuple(laplace_steps(plans, budget, params.accounting))
            mechanism = math.fsum(step.delta for step in steps)
        growth = math.exp(budget.epsilon)
        sampler = (1 + growth) * math.fsum(step.sampler_distance for step in steps)
        design = cls(params, steps, mechanism, sampler)
        if design.delta > budget.delta:
            raise InvalidParameter("delta", f"too small at this ε: these steps need δ ≥ {design.delta:.3g}")
        return design

    @property
    def epsilon(self) -> float:
        """ε of the whole release."""
        return self.params.budget.epsilon

    @property
    def delta(self) -> float:
        """What is really used of the budget's δ."""
        return self.mechanism_delta + self.sampler_delta

    @property
    def rounds(self) -> tuple[StepDesign, ...]:
        """The selection of queries: one step, or the rounds of DP-SIPS."""
        return tuple(step for step in self.steps if step.name.startswith(SELECT))

    @property
    def query_counts(self) -> StepDesign:
        """The step whose noise is on the published query counts: the selection itself if noise is re-used."""
        return self._step(QUERY_COUNTS) or self.rounds[-1]

    @property
    def reuses_noise(self) -> bool:
        """Whether the noisy counts that selected the queries are themselves published."""
        return self._step(QUERY_COUNTS) is None

    @property
    def click_counts(self) -> StepDesign | None:
        """The step that counts clicks, if there is one."""
        return self._step(CLICK_COUNTS)

    @property
    def reformulations(self) -> StepDesign | None:
        """The step that counts reformulations, if there is one."""
        return self._step(REFORMULATIONS)

    @property
    def searches_only(self) -> bool:
        """Whether each user's distinct queries are all that is asked of a log."""
        return self.params.distinct and not self.click_counts and not self.reformulations

    @property
    def searches_kept(self) -> Cap:
        """Clicks count for these searches of a user alone."""
        return Cap(self.params.max_queries_per_user, self.params.distinct)

    def _step(self, name: str) -> StepDesign | None:
        return next((step for step in self.steps if step.name == name), None)

    def as_json(self) -> dict[str, Any]:
        """As it stands in the statement."""
        return {
            "algorithm": self.params.algorithm,
            "accounting": self.params.accounting,
            "query_noise": self.params.query_noise,
            "urls": self.params.urls,
            "reformulations": self.params.reformulations,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mechanism_delta": self.mechanism_delta,
            "sampler_delta": self.sampler_delta,
            "steps": [step.as_json() for step in self.steps],
        }


def step_plans(params: ClickGraphParams) -> list[StepPlan]:
    """Which steps there are, in order, and their shares; the shares of steps that are left out go to the others."""
    shares, distinct, fresh = params.shares, params.distinct, params.query_noise == "fresh"
    later = LATER_THRESHOLD_SHARE * params.budget.delta
    weighted = params.algorithm in ("weighted_gaussian", "dp_sips")
    plans = [
        StepPlan(
            SELECT,
            Cap(params.max_queries_per_user, distinct),
            Fraction(shares.select) + (0 if fresh else Fraction(shares.counts)),
            weighted=weighted,
            rounds=params.algorithm == "dp_sips",
        )
    ]
    if fresh:
        cap = Cap(params.counted_queries_per_user, distinct)
        plans.append(StepPlan(QUERY_COUNTS, cap, Fraction(shares.counts), thresholded=False))
    if params.urls != "none":
        private = params.urls == "private"
        cap = Cap(params.max_clicks_per_user, distinct)
        plans.append(StepPlan(CLICK_COUNTS, cap, Fraction(shares.clicks), private, delta=later if private else None))
    if params.reformulations == "typed":
        cap = Cap(params.max_reformulations_per_user, distinct)
        plans.append(StepPlan(REFORMULATIONS, cap, Fraction(shares.reformulations), delta=later))
    total = sum((plan.share for plan in plans), Fraction(0))
    return [replace(plan, share=plan.share / total) for plan in plans]
