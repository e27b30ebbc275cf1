"""Counts that were published because their noise was large: bias, its inversion, and intervals that know it.

[KKMN09] §6 asks for fresh noise since re-used noise "would lead to all released query occurrence counts being skewed".
The skew is known: given that q is published, M + Lap(b) has mean K + b for M ≤ K, and M + (b + M − K)x/(2 − x),
x = e^{−(M−K)/b}, above. Undoing it is post-processing and costs no privacy.

Corrected counts use what the other counts tell. There are many more rare queries than common ones, so that a noisy
count is more often too large than too small, most of all near the threshold. How fast they thin out can be read from
the published counts: a power law N^{−β}, fitted by its likelihood above the threshold (Hill). The corrected count is
the mean of N given N + Y, under that law. Selection by N + Y itself changes nothing in it. Inverting the mean of
published counts (``ReusedNoise.debiased``) needs no law of counts, but next to the threshold, where that mean hardly
depends on N, it is several times further off than the noisy count itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian
from searchblend.mechanisms.tally import Ints

Floats = NDArray[np.float64]
_Holds = Callable[[Ints, Ints], NDArray[np.bool_]]
TAIL: Final = 0.025
_FLAT: Final = 1e-9
USUAL_EXPONENT: Final = 2.0
"""of how many queries have each count, if the r-th most frequent has a count in proportion to 1/r"""
_ENOUGH: Final = 50
"""published counts; fewer do not say how they thin out"""
_STEEPEST: Final = 4.0
_NEGLIGIBLE: Final = 1e-12
_CELLS: Final = 1 << 21


class ReusedNoise:
    """The law of N + Y given N + Y ≥ T, for every N ≥ 1; integers throughout."""

    def __init__(self, noise: DiscreteLaplace | RoundedGaussian, threshold: int) -> None:
        self._threshold = threshold
        self._reach = noise.reach
        tails = [noise.at_least(value) for value in range(-self._reach - 1, self._reach + 2)]
        self._tails: Floats = np.array([1.0, *tails, 0.0])

    def mean(self, counts: Ints) -> Floats:
        """E[N + Y | N + Y ≥ T] = T + E[(Y − k)₊]/P(Y ≥ k), k = T − N."""
        k = self._threshold - counts
        excess: Floats = self._excess[self._position(k + 1)] / self._tail(k)
        far = np.maximum(-self._reach - 3 - k, 0)
        return self._threshold + excess + far

    def debiased(self, published: Ints) -> Floats:
        """The N whose published counts have this mean; at least 1, as every published query occurs."""
        counts = np.arange(1, self._threshold + self._reach + 2)
        means = self.mean(counts)
        rises = np.append(np.diff(means) > _FLAT, True)
        result: Floats = np.where(
            published > means[-1], published, np.interp(published, means[rises], counts[rises].astype(np.float64))
        )
        return result

    def interval(self, published: Ints) -> tuple[Ints, Ints]:
        """The N that would not make the published count too extreme, 2.5 % on either side, given publication."""
        values, where = np.unique(published, return_inverse=True)
        low = self._least(values, lambda z, n: self._tail(z - n) > TAIL * self._tail(self._threshold - n))
        beyond = self._least(values, lambda z, n: self._tail(z + 1 - n) >= (1 - TAIL) * self._tail(self._threshold - n))
        return low[where], np.maximum(beyond - 1, low)[where]

    def _least(self, values: Ints, holds: _Holds) -> Ints:
        """The least N ≥ 1 at which a condition holds that, once true, stays true."""
        low, high = np.zeros_like(values), values + self._reach + 2
        while (open_ := high - low > 1).any():
            middle = (low + high) // 2
            true = holds(values, middle)
            low, high = np.where(open_ & ~true, middle, low), np.where(open_ & true, middle, high)
        return high

    def _tail(self, values: Ints) -> Floats:
        """P(Y ≥ value)"""
        tails: Floats = self._tails[self._position(values)]
        return tails

    def _position(self, values: Ints) -> Ints:
        return np.clip(values + self._reach + 2, 0, len(self._tails) - 1)

    @cached_property
    def _excess(self) -> Floats:
        """At the position of v: Σ_{y ≥ v} P(Y ≥ y), within the table's reach"""
        sums: Floats = np.cumsum(self._tails[::-1])[::-1].copy()
        return sums


def fitted_exponent(published: Ints, threshold: int) -> float:
    """β = 1 + n/Σ ln(z/(T − ½)), the likeliest exponent of the published counts; the usual one if they are few."""
    if len(published) < _ENOUGH or threshold < 1:
        return USUAL_EXPONENT
    total = float(np.log(published / (threshold - 0.5)).sum())
    return min(1 + len(published) / total, _STEEPEST)


def corrected_counts(published: Ints, noise: DiscreteLaplace | RoundedGaussian, threshold: int) -> Floats:
    """E[N | N + Y = z] for N ≥ 1 that thin out as the published counts do."""
    exponent = fitted_exponent(published, threshold)
    values, where = np.unique(published, return_inverse=True)
    drawn, mass = _law(noise)
    means = np.empty(len(values), dtype=np.float64)
    rows = max(_CELLS // len(drawn), 1)
    for start in range(0, len(values), rows):
        counts = values[start : start + rows, None] - drawn
        weights = np.where(counts >= 1, mass * np.maximum(counts, 1.0) ** -exponent, 0.0)
        means[start : start + rows] = (weights * counts).sum(axis=1) / weights.sum(axis=1)
    corrected: Floats = means[where]
    return corrected


def _law(noise: DiscreteLaplace | RoundedGaussian) -> tuple[Ints, Floats]:
    """The values of the noise that matter, and their probabilities."""
    reach = 1
    while noise.at_least(reach) > _NEGLIGIBLE:
        reach *= 2
    drawn = np.arange(-reach, reach + 1, dtype=np.int64)
    tails = np.array([noise.at_least(y) for y in range(reach + 2)])
    mass = (tails[:-1] - tails[1:])[np.abs(drawn)]
    kept = mass > _NEGLIGIBLE / 100
    return drawn[kept], mass[kept]
