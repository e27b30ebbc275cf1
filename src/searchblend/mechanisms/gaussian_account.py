"""What Gaussian noise costs: one account for every Gaussian part of a release. proofs/gaussian_threshold.md

``total_delta`` is for a user who is added or removed, ``replaced_delta`` for one who is replaced by another.

What one user can do to a step has two sides. Counts that are there without the user move: together they are as easy to
tell apart as one normal variable moved by μ = Δ/σ. Counts that are there through the user alone may reach the threshold
and be named; nothing of theirs is named with probability e^{quiet}. Steps that follow each other, each knowing what the
ones before have published, cost the sum of the μ² and the sum of the ``quiet``.

Two selections are accounted for. Counts of distinct users, the Gaussian sparse histogram (Wilkins, Kifer, Zhang, Karrer
2024): each user adds 1 to at most d counts, so that the ℓ2 norm is √d where Laplace noise pays d; exact δ, not the sum
of two bounds. Weights, the base of DP set union (Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020): each of a
user's s queries gets 1/√s, so that each user has ℓ2 norm 1; in whole numbers a weight 1 is ``units``, and each
query gets floor(units/√s) (proofs/weighted_gaussian.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchblend.core.errors import InvalidParameter
from searchblend.mechanisms.rounded_gaussian import gaussian_at_least
from searchblend.mechanisms.threshold import least_integer

SLACK: Final = 1e-8
"""more than the relative floating-point error of a δ"""
_HALVINGS: Final = 60
_LARGEST_THRESHOLD: Final = 1 << 40
Floats = NDArray[np.float64]
MOST_UNITS: Final = 1000
"""A user with 100 queries loses at most 1 % of their weight to rounding."""
_LARGEST_SIGMA: Final = 2048
"""A longer noise table would take seconds to make."""
_LEAST_WEIGHT: Final = 8
"""Coarser weights would lose more than an eighth."""


@dataclass(frozen=True)
class Reach:
    """What a user can do to one step, in one or in several ways."""

    mu_squared: NDArray[np.float64]
    """Σ (Δ/σ)² of the counts that are there without the user"""
    quiet: NDArray[np.float64]
    """ln P(nothing that the user alone holds is named), at most 0"""
    entwined: bool = False
    """whether naming what the user alone holds may depend on the noise that decides how the shared counts move"""

    @classmethod
    def one(cls, mu_squared: float, quiet: float = 0.0, *, entwined: bool = False) -> Reach:
        return cls(np.array([mu_squared]), np.array([quiet]), entwined)

    @property
    def frontier(self) -> Reach:
        """The ways that no other way is worse than on both sides: the others need not be looked at."""
        order = np.lexsort((self.quiet, -self.mu_squared))
        quiet = self.quiet[order]
        louder = np.concatenate([[True], quiet[1:] < np.minimum.accumulate(quiet)[:-1]])
        return Reach(self.mu_squared[order][louder], quiet[louder])

    @property
    def worst(self) -> Reach:
        """The worst of both sides at once: it dominates every way, so that it may follow other steps."""
        return Reach.one(float(self.mu_squared.max()), float(self.quiet.min()))


def total_delta(epsilon: float, first: Reach, *later: Reach) -> float:
    """δ at this ε of a first step, in its worst way, and of later steps that know what it published.

    Which way applies to the first step is fixed by the data; a later step's may depend on what was published, so later
    steps count at their worst on both sides.
    """
    assert not any(step.entwined for step in later), "proved for a first step alone"
    worst = [step.worst for step in later]
    mu = np.sqrt(first.mu_squared + math.fsum(float(step.mu_squared[0]) for step in worst))
    quiet = first.quiet + math.fsum(float(step.quiet[0]) for step in worst)
    independent = quiet - first.quiet if first.entwined else quiet
    appears = -np.expm1(quiet) + np.exp(quiet) * gaussian_delta(epsilon - independent, mu)
    vanishes = gaussian_delta(epsilon + quiet, mu)
    return float(np.maximum(appears, vanishes).max()) * (1 + SLACK)


def replaced_delta(epsilon: float, first: Reach, *later: Reach) -> float:
    """δ at this ε when one user is replaced by another: ``total_delta`` with two users, one gone and one come.

    Each of the two has a way in the first step, whatever the other's is. What both add to counts that are there anyway
    is not negative, so that the squares of their norms add up (proofs/many_records.md).
    """
    assert not any(step.entwined for step in (first, *later)), "proved for adding and removing a user alone"
    worst, ways = [step.worst for step in later], first.frontier
    after = math.fsum(float(step.mu_squared[0]) for step in worst)
    quiet = ways.quiet + math.fsum(float(step.quiet[0]) for step in worst)
    mu = np.sqrt(ways.mu_squared[:, None] + ways.mu_squared[None, :] + 2 * after)
    gone, come = quiet[:, None], quiet[None, :]
    delta = -np.expm1(gone) + np.exp(gone) * gaussian_delta(epsilon + come - gone, mu)
    return float(delta.max()) * (1 + SLACK)


def gaussian_delta(epsilon: float | NDArray[np.float64], mu: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ): the hockey-stick divergence of N(μ, 1) and N(0, 1), at any real ε.

    Balle and Wang 2018, Theorem 8. Computed as a product, so that small values keep their digits.
    """
    epsilon, mu = np.asarray(epsilon, dtype=np.float64), np.asarray(mu, dtype=np.float64)
    moved = np.where(mu > 0, mu, 1.0)
    above = _special().log_ndtr(moved / 2 - epsilon / moved)
    below = _special().log_ndtr(-moved / 2 - epsilon / moved)
    delta = np.exp(above) * -np.expm1(np.minimum(epsilon + below - above, 0.0))
    still: NDArray[np.float64] = np.where(mu > 0, delta, -np.expm1(np.minimum(epsilon, 0.0)))
    return still


def _special() -> Any:
    """Loaded when a design is made: it takes a quarter of a second, and most commands make none."""
    from scipy import special

    return special


def normal_tail(x: Floats | float) -> Any:
    """P(G ≥ x) of a standard normal variable."""
    return _special().ndtr(-np.asarray(x))


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


def reach_of_users(cap: int, sigma: float, threshold: int) -> Reach:
    """What a user with ``cap`` queries can do: j of them are there without the user, the others are not."""
    there = np.arange(cap + 1, dtype=np.float64)
    named = gaussian_at_least(threshold - 1, sigma)
    return Reach(there / sigma**2, (cap - there) * math.log1p(-named))


def named_alone(reach: Reach) -> float:
    """The probability, at most, that something which one user alone has is published."""
    return -math.expm1(float(reach.quiet.min()))


def least_threshold(is_private: Callable[[int], bool], above: int) -> int:
    """The least T > ``above`` at which a step is private; raising T never makes it less so."""
    if not is_private(_LARGEST_THRESHOLD):
        raise InvalidParameter("delta", "too small at this ε: no threshold reaches it")
    return least_integer(is_private, above=above)


def weight(units: int, items: int) -> int:
    """floor(units/√s), exactly: what each of a user's s items gets"""
    return math.isqrt(units * units // items)


def units_for(relative_sigma: float, cap: int) -> int:
    """As many units as the noise table allows; ``relative_sigma`` is σ for weight 1."""
    units = min(MOST_UNITS, math.floor(_LARGEST_SIGMA / relative_sigma))
    if weight(max(units, 1), cap) < _LEAST_WEIGHT:
        raise InvalidParameter(
            "epsilon", f"too small to weigh {cap} queries per user in whole numbers; lower max_queries_per_user"
        )
    return units


def reach_of_weights(cap: int, units: int, sigma: float, threshold: int) -> Reach:
    """A user with s ≤ ``cap`` queries, of which j are there without the user."""
    queries, there, weights = _ways(cap, units)
    named = _special().ndtr(-(threshold - weights - 0.5) / sigma)
    return Reach(there * (weights / sigma) ** 2, (queries - there) * np.log1p(-named))


@lru_cache(maxsize=16)
def _ways(cap: int, units: int) -> tuple[Floats, Floats, Floats]:
    """(s, j, weight) for every s and j"""
    queries = np.repeat(np.arange(1, cap + 1), np.arange(2, cap + 2))
    there = np.concatenate([np.arange(s + 1) for s in range(1, cap + 1)])
    weights = np.array([weight(units, s) for s in range(1, cap + 1)])[queries - 1]
    return queries.astype(np.float64), there.astype(np.float64), weights.astype(np.float64)


def reach(cap: int, units: int, sigma: float, threshold: int | None) -> Reach:
    """A user adds 1 to at most ``cap`` counts, or weights of norm ``units`` if those are more than 1.

    Without a threshold nothing can be named: the counts are those of things that are known already.
    """
    if threshold is None:
        return Reach.one((cap if units == 1 else units**2) / sigma**2)
    if units == 1:
        return reach_of_users(cap, sigma, threshold)
    return reach_of_weights(cap, units, sigma, threshold)
