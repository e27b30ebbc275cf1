"""What a release of a click graph would do, from its parameters alone: [KKMN09] Table 1 and Fig. 1."""

from __future__ import annotations

from typing import Any, Final

from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release import FALSE_EDGE_RATE
from searchblend.clickgraph.release.step import StepDesign, step_accounts_to_force, step_release_probability
from searchblend.clickgraph.release.theorem1 import delta_of

_QUANTILES: Final = (0.01, 0.5, 0.99)
_CURVE_POINTS: Final = 60


def release_plan(design: ClickGraphDesign, *, selection_only: bool = False) -> dict[str, Any]:
    """A JSON document: thresholds, scales, widths, the release curve, and what forces a query out. Reads no data.

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
        "false_edge_cut": None if clicks is None else clicks.threshold or clicks.law.false_edge_cut(FALSE_EDGE_RATE),
        "accounts_to_force": step_accounts_to_force(select),
        "quantiles": {f"{share:g}": least_count(select, share) for share in _QUANTILES},
        "curve": [{"count": n, "probability": probability(select, n)} for n in _curve_counts(select)],
        "steps": [{**step.as_json(), "half_width": step.law.half_width()} for step in design.steps],
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
    low, high = 0, 1
    while probability(step, high) < share:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if probability(step, middle) >= share else (middle, high)
    return high


def _curve_counts(step: StepDesign) -> list[int]:
    first, last = max(least_count(step, 1e-4) - 1, 1), least_count(step, 1 - 1e-4) + 1
    width = max((last - first) // _CURVE_POINTS, 1)
    return list(range(first, last + width, width))
