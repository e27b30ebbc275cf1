"""The δ of a list of Gaussian steps, computed anew from what they are: noise, caps, weights and thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from searchblend.clickgraph.gaussian_account import Reach, total_delta
from searchblend.clickgraph.gaussian_selection import reach_of_users
from searchblend.clickgraph.step import StepDesign
from searchblend.clickgraph.weighted_gaussian import reach_of_weights


def gaussian_total_delta(epsilon: float, steps: Sequence[StepDesign]) -> float:
    """δ at this ε of all steps together, with ideal noise."""
    first, *later = [reach_of_step(step) for step in steps]
    return total_delta(epsilon, first, *later)


def reach_of_step(step: StepDesign) -> Reach:
    """What one user can do to the step."""
    sigma, cap = step.noise.scale, step.cap.first
    if step.threshold is None:
        return Reach.one(cap / sigma**2)
    if step.units > 1:
        return reach_of_weights(cap, step.units, sigma, step.threshold)
    return reach_of_users(cap, sigma, step.threshold)
