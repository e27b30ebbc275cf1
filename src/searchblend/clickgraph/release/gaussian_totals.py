"""What a user can do to Gaussian steps as they are: from noise, caps, weights and thresholds to one δ."""

from __future__ import annotations

from collections.abc import Sequence

from searchblend.clickgraph.release.gaussian_account import Reach, total_delta
from searchblend.clickgraph.release.gaussian_selection import reach_of_users
from searchblend.clickgraph.release.step import StepDesign
from searchblend.clickgraph.release.weighted_gaussian import reach_of_weights


def gaussian_total_delta(epsilon: float, steps: Sequence[StepDesign]) -> float:
    """δ at this ε of all steps together, with ideal noise."""
    first, *later = [reach(step.cap.first, step.units, step.noise.scale, step.threshold) for step in steps]
    return total_delta(epsilon, first, *later)


def reach(cap: int, units: int, sigma: float, threshold: int | None) -> Reach:
    """A user adds 1 to at most ``cap`` counts, or weights of norm ``units`` if those are more than 1.

    Without a threshold nothing can be named: the counts are those of things that are known already.
    """
    if threshold is None:
        return Reach.one((cap if units == 1 else units**2) / sigma**2)
    if units == 1:
        return reach_of_users(cap, sigma, threshold)
    return reach_of_weights(cap, units, sigma, threshold)
