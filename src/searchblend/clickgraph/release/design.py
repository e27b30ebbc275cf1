"""What is known of a release before the log is read: noises, thresholds, caps and what each step costs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

from searchblend.clickgraph.release.attribute_counts import (
    TOTALS,
    AttributeForecast,
    AttributeTable,
    Details,
    attribute_plans,
    attribute_tables,
    coarser,
    finest,
    typical_count,
)
from searchblend.clickgraph.release.click_log import Cap
from searchblend.clickgraph.release.gaussian_design import gaussian_steps, gaussian_total_delta
from searchblend.clickgraph.release.laplace_design import delta_of, laplace_steps
from searchblend.clickgraph.release.step import (
    StepDesign,
    StepPlan,
    step_accounts_to_force,
    step_release_probability,
)
from searchblend.core.attributes import OF_SEARCHES
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams
from searchblend.mechanisms.threshold import least_integer

SELECT: Final = "select queries"
QUERY_COUNTS: Final = "query counts"
CLICK_COUNTS: Final = "click counts"
REFORMULATIONS: Final = "reformulations"
LATER_THRESHOLD_SHARE: Final = 0.25
"""the part of δ that private pairs and reformulations may use, each"""
_QUANTILES: Final = (0.01, 0.5, 0.99)
_CURVE_POINTS: Final = 60


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
    details: Details = field(default_factory=dict)
    """how fine the counts by attribute are, of searches and of clicks"""

    @classmethod
    def of(cls, params: ClickGraphParams) -> ClickGraphDesign:
        """The least thresholds and noise that the budget allows, and the finest attributes that can then be read."""
        details = finest(params)
        design = cls._with_details(params, details)
        while params.attribute_detail == "auto" and (less := coarser(design.forecasts())) != details:
            design, details = cls._with_details(params, less), less
        return design

    @classmethod
    def _with_details(cls, params: ClickGraphParams, details: Details) -> ClickGraphDesign:
        plans, budget = step_plans(params, details), params.budget
        if params.gaussian_noise:
            steps = tuple(gaussian_steps(plans, budget))
            mechanism = gaussian_total_delta(budget.epsilon, steps, windows=params.per != "none")
        else:
            steps = tuple(laplace_steps(plans, budget, params.accounting))
            mechanism = math.fsum(step.delta for step in steps)
        growth = math.exp(budget.epsilon)
        sampler = (1 + growth) * math.fsum(step.sampler_distance for step in steps)
        design = cls(params, steps, mechanism, sampler, details)
        if not design.delta <= budget.delta:  # a δ that is NaN is refused, too
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
    def attribute_steps(self) -> list[tuple[AttributeTable, StepDesign]]:
        """What is counted by attribute, and the step that pays for it."""
        steps = {step.name: step for step in self.steps}
        return [(table, steps[table.name]) for table in attribute_tables(self.params, self.details)]

    def forecasts(self) -> list[AttributeForecast]:
        """How well counts by attribute can be read, for each kind of them."""
        forecasts = []
        for of, detail in self.details.items():
            tables = [(table, step) for table, step in self.attribute_steps if table.of == of]
            cells = max(table.cells for table, _ in tables)
            half = max(step.law.half_width() for _, step in tables)
            people = self.params.population if detail == TOTALS else None
            forecasts.append(AttributeForecast(of, detail, people or self._typical(of), cells, half))
        return forecasts

    def _typical(self, of: str) -> float:
        if of == OF_SEARCHES or self.click_counts is None:
            return typical_count(least_count(self.rounds[-1], 0.5), self.params.population)
        return typical_count(self.click_counts.edge_cut, self.params.population)

    @property
    def searches_only(self) -> bool:
        """Whether each user's distinct queries are all that is asked of a log."""
        return self.params.distinct and not (self.click_counts or self.reformulations or self.params.attributes)

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
            **({} if self.params.per == "none" else {"per": self.params.per, "cap": "month"}),
            "reformulations": self.params.reformulations,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mechanism_delta": self.mechanism_delta,
            "sampler_delta": self.sampler_delta,
            "steps": [step.as_json() for step in self.steps],
            **({"attributes": [_forecast(one) for one in self.forecasts()]} if self.details else {}),
        }


def _forecast(forecast: AttributeForecast) -> dict[str, Any]:
    return {**asdict(forecast), "readable": forecast.readable}


def step_plans(params: ClickGraphParams, details: Details) -> list[StepPlan]:
    """Which steps there are, in order, and their shares; the shares of steps that are left out go to the others."""
    shares, distinct, fresh = params.shares, params.distinct, params.query_noise == "fresh"
    later = LATER_THRESHOLD_SHARE * params.budget.delta
    weighted = params.algorithm in ("weighted_gaussian", "dp_sips", "adaptive_gaussian")
    plans = [
        StepPlan(
            SELECT,
            Cap(params.max_queries_per_user, distinct),
            Fraction(shares.select) + (0 if fresh else Fraction(shares.counts)),
            weighted=weighted,
            rounds=params.algorithm == "dp_sips",
            adaptive=params.algorithm == "adaptive_gaussian",
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
    plans += attribute_plans(params, details)
    plans = [replace(plan, windows=params.per != "none") for plan in plans]
    total = sum((plan.share for plan in plans), Fraction(0))
    return [replace(plan, share=plan.share / total) for plan in plans]


def release_plan(design: ClickGraphDesign, *, selection_only: bool = False) -> dict[str, Any]:
    """What a release would do: [KKMN09] Table 1 and Fig. 1, and how many accounts force a string in (§8).

    ``threshold`` is K where the paper has one and T else; counts of weighted algorithms are in users that search
    nothing else.
    """
    params, select = design.params, design.rounds[-1]
    budget = params.budget
    counts = None if selection_only else design.query_counts
    clicks = design.click_counts
    return {
        "algorithm": params.algorithm,
        "accounting": params.accounting,
        "selection_only": selection_only,
        "epsilon": budget.epsilon,
        "delta": _stated_delta(design),
        "mechanism_delta": design.delta,
        "budget_delta": budget.delta,
        "population": params.population,
        "delta_times_population": None if params.population is None else budget.delta * params.population,
        "unit": "users" if params.distinct else "impressions",
        "threshold": _in_users(select, select.printed_threshold or select.threshold or 0),
        "integer_threshold": select.threshold,
        "select_scale": _in_users(select, select.noise.scale),
        "query_scale": None if counts is None else counts.noise.scale,
        "click_scale": None if clicks is None else clicks.noise.scale,
        "false_edge_cut": None if clicks is None else clicks.edge_cut,
        "accounts_to_force": step_accounts_to_force(select),
        "quantiles": {f"{share:g}": least_count(select, share) for share in _QUANTILES},
        "curve": [{"count": n, "probability": probability(select, n)} for n in _curve_counts(select)],
        "steps": [{**step.as_json(), "half_width": step.law.half_width()} for step in design.steps],
        "attributes": [_forecast(one) for one in design.forecasts()],
    }


def _stated_delta(design: ClickGraphDesign) -> float:
    """δ at K and b as the paper has them, in real numbers; else that of the integer mechanism."""
    first, *later = design.steps
    if first.printed_threshold is None:
        return design.delta
    selection = delta_of(
        first.noise.scale,
        first.printed_threshold,
        first.cap.first,
        accounting=design.params.accounting,
        distinct=first.cap.distinct,
    )
    return selection + sum(step.delta for step in later)


def _in_users(step: StepDesign, value: float) -> float:
    return value / step.units


def probability(step: StepDesign, count: int) -> float:
    """How likely something with this count is published."""
    return step_release_probability(step, count * step.units)


def least_count(step: StepDesign, share: float) -> int:
    """The least count that is published with this probability."""
    return least_integer(lambda count: probability(step, count) >= share, above=0)


def _curve_counts(step: StepDesign) -> list[int]:
    first, last = max(least_count(step, 1e-4) - 1, 1), least_count(step, 1 - 1e-4) + 1
    width = max((last - first) // _CURVE_POINTS, 1)
    return list(range(first, last + width, width))
