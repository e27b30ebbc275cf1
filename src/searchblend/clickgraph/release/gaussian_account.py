"""What Gaussian noise costs: one account for every Gaussian part of a release. proofs/gaussian_threshold.md

What one user can do to a step has two sides. Counts that are there without the user move: together they are as easy to
tell apart as one normal variable moved by μ = Δ/σ. Counts that are there through the user alone may reach the threshold
and be named; nothing of theirs is named with probability e^{quiet}. Steps that follow each other, each knowing what the
ones before have published, cost the sum of the μ² and the sum of the ``quiet``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

SLACK: Final = 1e-8
"""more than the relative floating-point error of a δ"""
_HALVINGS: Final = 60


@dataclass(frozen=True)
class Reach:
    """What a user can do to one step, in one or in several ways."""

    mu_squared: NDArray[np.float64]
    """Σ (Δ/σ)² of the counts that are there without the user"""
    quiet: NDArray[np.float64]
    """ln P(nothing that the user alone holds is named), at most 0"""

    @classmethod
    def one(cls, mu_squared: float, quiet: float = 0.0) -> Reach:
        return cls(np.array([mu_squared]), np.array([quiet]))

    @property
    def worst(self) -> Reach:
        """The worst of both sides at once: it dominates every way, so that it may follow other steps."""
        return Reach.one(float(self.mu_squared.max()), float(self.quiet.min()))


def total_delta(epsilon: float, first: Reach, *later: Reach) -> float:
    """δ at this ε of a first step, in its worst way, and of later steps that know what it published.

    Which way applies to the first step is fixed by the data; a later step's may depend on what was published, so later
    steps count at their worst on both sides.
    """
    worst = [step.worst for step in later]
    mu = np.sqrt(first.mu_squared + math.fsum(float(step.mu_squared[0]) for step in worst))
    quiet = first.quiet + math.fsum(float(step.quiet[0]) for step in worst)
    appears = -np.expm1(quiet) + np.exp(quiet) * gaussian_delta(epsilon - quiet, mu)
    vanishes = gaussian_delta(epsilon + quiet, mu)
    return float(np.maximum(appears, vanishes).max()) * (1 + SLACK)


def gaussian_delta(epsilon: float | NDArray[np.float64], mu: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ): the hockey-stick divergence of N(μ, 1) and N(0, 1), at any real ε.

    Balle and Wang 2018, Theorem 8. Computed as a product, so that small values keep their digits.
    """
    epsilon, mu = np.asarray(epsilon, dtype=np.float64), np.asarray(mu, dtype=np.float64)
    moved = np.where(mu > 0, mu, 1.0)
    above = log_ndtr(moved / 2 - epsilon / moved)
    below = log_ndtr(-moved / 2 - epsilon / moved)
    delta = np.exp(above) * -np.expm1(np.minimum(epsilon + below - above, 0.0))
    still: NDArray[np.float64] = np.where(mu > 0, delta, -np.expm1(np.minimum(epsilon, 0.0)))
    return still


def largest_mu(epsilon: float, delta: float) -> float:
    """The largest μ at which Gaussian noise alone is (ε, δ)-private."""
    low, high = 0.0, 1.0
    while gaussian_delta(epsilon, high) <= delta:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(epsilon, middle) * (1 + SLACK) <= delta else (low, middle)
    return low


def least_epsilon(delta: float, first: Reach, *later: Reach) -> float:
    """The least ε at which these steps are (ε, δ)-private; ∞ if what they name alone exceeds δ."""
    if total_delta(700.0, first, *later) > delta:
        return math.inf
    low, high = 0.0, 700.0
    if total_delta(low, first, *later) <= delta:
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if total_delta(middle, first, *later) <= delta else (middle, high)
    return high


def reach_of_counts(moved: Sequence[int] | NDArray[np.int64], sigma: float) -> Reach:
    """Counts without a threshold: the user moves them by at most these whole numbers."""
    return Reach.one(float(np.square(np.asarray(moved, dtype=np.float64)).sum()) / sigma**2)
