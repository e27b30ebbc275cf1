"""How long a head list would be on an AOL-shaped population: a forecast that reads no data."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from searchblend.mechanisms.threshold import Threshold
from searchblend.synthetic.population import aol_query_shares, url_shares

_RANKS = 50_000


def expected_head_queries(n_head_users: int, threshold: Threshold, max_head_queries: int) -> float:
    """Expected number of queries with at least one record that passes, at most M.

    A record's count is Poisson(n·p); each URL of a query passes on its own. Ranks beyond 50,000 are so rare that
    only noise could name them.
    """
    shares = aol_query_shares()[:_RANKS, None] * url_shares(np.arange(_RANKS))
    missed = np.prod(1 - _pass_probability(n_head_users * shares, threshold), axis=1)
    return min(float((1 - missed).sum()), float(max_head_queries))


def _pass_probability(mean: NDArray[np.float64], threshold: Threshold) -> NDArray[np.float64]:
    """P(N ≥ 1 and N + Y ≥ T) for N ~ Poisson(mean)."""
    reach = threshold.integer + int(20 / float(threshold.noise.rate)) + 1
    passed, log_mean = np.zeros_like(mean), np.log(np.maximum(mean, 1e-300))
    below = np.exp(-mean)  # P(N = 0): an absent record is never named
    for count in range(1, reach):
        probability = np.exp(count * log_mean - mean - math.lgamma(count + 1))
        passed += probability * threshold.noise.at_least(threshold.integer - count)
        below += probability
    passed += 1 - below
    return passed.clip(0.0, 1.0)
