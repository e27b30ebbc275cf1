"""What is known of a release before the log is read: noises, thresholds, caps and what each step costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from searchblend.clickgraph.click_log import Cap
from searchblend.clickgraph.gaussian_design import LATER_THRESHOLD_SHARE, gaussian_steps
from searchblend.clickgraph.gaussian_totals import gaussian_total_delta
from searchblend.clickgraph.laplace_design import laplace_counts, laplace_selection
from searchblend.clickgraph.step import StepDesign
from searchblend.errors import InvalidParameter
from searchblend.params import ClickGraphParams

SELECT: Final = "select queries"
QUERY_COUNTS: Final = "query counts"
CLICK_COUNTS: Final = "click counts"
REFORMULATIONS: Final = "reformulations"


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
        steps = tuple(gaussian_steps(params) if params.gaussian_noise else _laplace_steps(params))
        growth = math.exp(params.budget.epsilon)
        sampler = (1 + growth) * math.fsum(step.sampler_distance for step in steps)
        if params.gaussian_noise:
            mechanism = gaussian_total_delta(params.budget.epsilon, steps)
        else:
            mechanism = math.fsum(step.delta for step in steps)
        design = cls(params, steps, mechanism, sampler)
        if design.delta > params.budget.delta:
            raise InvalidParameter("delta", f"too small at this ε: these steps need δ ≥ {design.delta:.3g}")
        return design

    @property
    def epsilon(self) -> float:
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
        return self._step(QUERY_COUNTS) is None

    @property
    def click_counts(self) -> StepDesign | None:
        return self._step(CLICK_COUNTS)

    @property
    def reformulations(self) -> StepDesign | None:
        return self._step(REFORMULATIONS)

    @property
    def searches_kept(self) -> Cap:
        """Clicks count for these searches of a user alone."""
        return Cap(self.params.max_queries_per_user, self.params.distinct)

    def _step(self, name: str) -> StepDesign | None:
        return next((step for step in self.steps if step.name == name), None)

    def as_json(self) -> dict[str, Any]:
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


def _laplace_steps(params: ClickGraphParams) -> Sequence[StepDesign]:
    """[KKMN09] §6: ε_i = w_i ε, b = d/ε_1, K from the whole δ but for what thresholded pairs need, b_q, b_c."""
    unit = params.distinct
    searches = Cap(params.max_queries_per_user, unit)
    clicks, pairs = Cap(params.max_clicks_per_user, unit), Cap(params.max_reformulations_per_user, unit)
    epsilons = _epsilons(params)
    private, typed = params.urls == "private", params.reformulations == "typed"
    later = LATER_THRESHOLD_SHARE * params.budget.delta
    left = params.budget.delta * (1 - _SAMPLER_SHARE) - later * (private + typed)
    steps = [laplace_selection(SELECT, searches, epsilons[SELECT], left, params.accounting)]
    if QUERY_COUNTS in epsilons:
        steps.append(laplace_counts(QUERY_COUNTS, searches, epsilons[QUERY_COUNTS]))
    if private:
        steps.append(laplace_selection(CLICK_COUNTS, clicks, epsilons[CLICK_COUNTS], later))
    elif params.urls == "public":
        steps.append(laplace_counts(CLICK_COUNTS, clicks, epsilons[CLICK_COUNTS]))
    if typed:
        steps.append(laplace_selection(REFORMULATIONS, pairs, epsilons[REFORMULATIONS], later))
    return steps


_SAMPLER_SHARE: Final = 1e-6
"""the part of δ that is kept for the samplers; far more than they need at any sane budget"""


def _epsilons(params: ClickGraphParams) -> dict[str, Fraction]:
    """What each step gets of ε; the shares of steps that are left out go to the others."""
    shares, fresh = params.shares, params.query_noise == "fresh"
    wanted = {SELECT: Fraction(shares.select) + (0 if fresh else Fraction(shares.counts))}
    if fresh:
        wanted[QUERY_COUNTS] = Fraction(shares.counts)
    if params.urls != "none":
        wanted[CLICK_COUNTS] = Fraction(shares.clicks)
    if params.reformulations == "typed":
        wanted[REFORMULATIONS] = Fraction(shares.reformulations)
    total = sum(wanted.values(), Fraction(0))
    return {name: Fraction(params.budget.epsilon) * share / total for name, share in wanted.items()}
