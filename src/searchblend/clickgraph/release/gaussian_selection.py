"""Counts of distinct users with Gaussian noise against a threshold; the noisy counts are published too.

The Gaussian sparse histogram (Wilkins, Kifer, Zhang, Karrer 2024): each user adds 1 to at most d counts, so that the ℓ2
norm is √d where Laplace noise pays d. Exact δ, not the sum of two bounds. proofs/gaussian_threshold.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from searchblend.clickgraph.release.gaussian_account import Reach
from searchblend.core.errors import InvalidParameter
from searchblend.mechanisms.rounded_gaussian import gaussian_at_least

_LARGEST_THRESHOLD: Final = 1 << 40


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
    low, high = above, above + 1
    while not is_private(high):
        low, high = high, 2 * high
        if high > _LARGEST_THRESHOLD:
            raise InvalidParameter("delta", "too small at this ε: no threshold reaches it")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_private(middle) else (middle, high)
    return high
