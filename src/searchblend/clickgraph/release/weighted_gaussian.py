"""Selection by weights: each of a user's s queries gets 1/√s, so that everybody has the same ℓ2 norm 1.

The base of DP set union (Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020). In whole numbers a weight 1 is
``units``, and each query gets floor(units/√s). proofs/weighted_gaussian.md
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from searchblend.clickgraph.release.click_log import weight
from searchblend.clickgraph.release.gaussian_account import Reach
from searchblend.core.errors import InvalidParameter

Floats = NDArray[np.float64]

MOST_UNITS: Final = 1000
"""A user with 100 queries loses at most 1 % of their weight to rounding."""
_LARGEST_SIGMA: Final = 2048
"""A longer noise table would take seconds to make."""
_LEAST_WEIGHT: Final = 8
"""Coarser weights would lose more than an eighth."""


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
    named = ndtr(-(threshold - weights - 0.5) / sigma)
    return Reach(there * (weights / sigma) ** 2, (queries - there) * np.log1p(-named))


@lru_cache(maxsize=16)
def _ways(cap: int, units: int) -> tuple[Floats, Floats, Floats]:
    """(s, j, weight) for every s and j"""
    queries = np.repeat(np.arange(1, cap + 1), np.arange(2, cap + 2))
    there = np.concatenate([np.arange(s + 1) for s in range(1, cap + 1)])
    weights = np.array([weight(units, s) for s in range(1, cap + 1)])[queries - 1]
    return queries.astype(np.float64), there.astype(np.float64), weights.astype(np.float64)
