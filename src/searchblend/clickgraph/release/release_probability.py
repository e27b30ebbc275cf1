"""How likely a query of given frequency is published ([KKMN09] Fig. 1), and how many accounts force it out (§8).

Differential privacy is no defence against people who want a text to appear: whoever controls enough accounts can have
it published. These figures belong in every plan.
"""

from __future__ import annotations

import math
from typing import Final

from searchblend.clickgraph.release.step import StepDesign
from searchblend.mechanisms.gaussian_account import weight

SURE: Final = 1 - math.exp(-5) / 2
"""The paper's "virtually guaranteed": noise of 5b or more on the wrong side is left out."""


def release_probability(count: float, threshold: float, noise_scale: float) -> float:
    """P(M + Lap(b) > K), the paper's real numbers. Fig. 1"""
    distance = (count - threshold) / noise_scale
    return math.exp(distance) / 2 if distance <= 0 else 1 - math.exp(-distance) / 2


def accounts_to_force(threshold: float, noise_scale: float, searches: int, *, distinct: bool = False) -> float:
    """The accounts that make K + 5b searches, one by one or d each. §8

    The paper says K + 5b, but where repeats count each account searches d times: about nine are enough at d = 20.
    """
    return (threshold + 5 * noise_scale) / (1 if distinct else searches)


def step_release_probability(step: StepDesign, count: int) -> float:
    """P(N + Y ≥ T) for something that occurs ``count`` ≥ 1 times: users or impressions, in units where they weigh."""
    threshold = step.count_threshold
    return threshold.noise.at_least(threshold.integer - count)


def step_accounts_to_force(step: StepDesign, sure: float = SURE) -> int:
    """The least number of accounts whose searches alone publish a query with this probability.

    Each does all it can for the one query: searches it ``first`` times where repeats count, and searches nothing else
    where weights are shared out.
    """
    each = weight(step.units, 1) if step.cap.distinct else step.cap.first
    low, high = 0, 1
    while step_release_probability(step, high * each) < sure:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if step_release_probability(step, middle * each) >= sure else (middle, high)
    return high
