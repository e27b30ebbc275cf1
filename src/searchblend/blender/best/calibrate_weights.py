"""The weights that named queries and records as a second observation of their shares. Post-processing.

Own shares are measured without bias and with much noise. Weights have little noise, and follow the shares only as far
as people who search little and people who search much want the same. How far that is can be seen: the curve
y = r·w^a between both, and the spread η of single items about it, are estimated from all items of a list, and η is part
of the variance. Where users differ so, the weights say little and the measured shares stand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from searchblend.blender.estimates import Floats

_PRIOR_SPREAD: Final = 0.2
_ITEMS_OF_PRIOR: Final = 3.0
"""η before anything is seen, and of how many items it has the weight"""
_LEAST_SPREAD: Final = 0.03
_BEND: Final = 0.2
"""how far from 1 the exponent a is expected to be: frequent items are repeated more often by the same people"""
_PASSES: Final = 8


@dataclass(frozen=True)
class Observed:
    """Values with the variances of their noise."""

    value: Floats
    variance: Floats


def calibrate(measured: Observed, weights: Observed) -> Observed:
    """Both observations of some items in one, item by item; as measured where there is nothing to compare."""
    if float(measured.value.sum()) <= 0:
        return measured
    base = np.maximum(weights.value, np.sqrt(weights.variance))
    curve = _Curve.through(measured, base, weights.variance)
    expected, variance = curve.at(base, weights.variance)
    total = measured.variance + variance
    return Observed(
        (measured.value * variance + expected * measured.variance) / total, measured.variance * variance / total
    )


@dataclass(frozen=True)
class _Curve:
    """y = r·w^a, as ln y = level + a·(ln w − centre)."""

    level: float
    slope: float
    centre: float
    spread: float
    """η²"""
    covariance: Floats
    """of level and slope"""

    @classmethod
    def through(cls, measured: Observed, base: Floats, weight_variance: Floats) -> _Curve:
        """Weighted least squares, iterated: variances are those of the noise and of η at the curve itself."""
        position = np.log(base)
        centre = float(np.average(position, weights=base))
        curve = cls(
            float(np.log(measured.value.sum() / base.sum())) + centre, 1.0, centre, _PRIOR_SPREAD**2, np.zeros((2, 2))
        )
        for _ in range(_PASSES):
            curve = curve._closer(measured, base, weight_variance)
        return curve

    def _closer(self, measured: Observed, base: Floats, weight_variance: Floats) -> _Curve:
        """One Gauss–Newton step in level and slope, a prior N(1, ¹⁄₅²) on the slope, then η² by moments."""
        expected = self._expected(base)
        noise = measured.variance + self._noise(expected, base, weight_variance)
        precision = 1 / (noise + self.spread * expected**2)
        gradient = np.stack([expected, expected * (np.log(base) - self.centre)])
        information = (gradient * precision) @ gradient.T + np.diag([0.0, _BEND**-2])
        push = (gradient * precision) @ (measured.value - expected) + np.array([0.0, (1 - self.slope) * _BEND**-2])
        covariance = np.linalg.inv(information).astype(np.float64)
        level, slope = covariance @ push
        moved = _Curve(
            self.level + float(np.clip(level, -1, 1)),
            float(np.clip(self.slope + slope, 0.5, 2.0)),
            self.centre,
            self.spread,
            covariance,
        )
        return moved._with_spread(measured, base, weight_variance)

    def _with_spread(self, measured: Observed, base: Floats, weight_variance: Floats) -> _Curve:
        """η²: how much more the gaps vary than their noise explains, relative to what is expected.

        By moments, and a standard error more: weights that are believed too much do harm, too little only cost.
        """
        expected = self._expected(base)
        noise = measured.variance + self._noise(expected, base, weight_variance)
        information = (expected**2 / (noise + self.spread * expected**2)) ** 2
        excess = float((information * ((measured.value - expected) ** 2 - noise) / expected**2).sum())
        prior = _ITEMS_OF_PRIOR * _PRIOR_SPREAD**-4
        weight = float(information.sum()) + prior
        spread = (excess + prior * _PRIOR_SPREAD**2) / weight + math.sqrt(2 / weight)
        return _Curve(self.level, self.slope, self.centre, max(spread, _LEAST_SPREAD**2), self.covariance)

    def at(self, base: Floats, weight_variance: Floats) -> tuple[Floats, Floats]:
        """What weights say of the shares, and how far that may be off: noise, spread, and the curve's own error."""
        expected = self._expected(base)
        offset = np.stack([np.ones_like(base), np.log(base) - self.centre])
        own = np.einsum("ik,ij,jk->k", offset, self.covariance, offset)
        variance: Floats = self._noise(expected, base, weight_variance) + expected**2 * (self.spread + own)
        return expected, variance

    def _expected(self, base: Floats) -> Floats:
        expected: Floats = np.exp(self.level + self.slope * (np.log(base) - self.centre))
        return expected

    def _noise(self, expected: Floats, base: Floats, weight_variance: Floats) -> Floats:
        noise: Floats = weight_variance * (self.slope * expected / base) ** 2
        return noise
