"""The weights that named queries and records as a second observation of their shares. Post-processing.

Own shares are measured without bias and with much noise. Weights have little noise, vary less with who happens to be
among the users, and follow the shares only as far as people who search little and people who search much want the same.
How far that is can be seen: the curve y = r·w^a between both, and the spread η of single items about it, are estimated
from all items of a list, and η is part of the variance. Where users differ so, the weights say little and the measured
shares stand. Derivation: proofs/estimates.md, section 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from searchblend.blender.estimates import Floats
from searchblend.mechanisms.tally import Ints

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


@dataclass(frozen=True)
class Calibrated(Observed):
    """Values with the variances of noise and spread, and what comes from who the users are, in units of c/n."""

    sampling: Floats
    """variance"""
    shared: Floats
    """covariance with the mean of the users' own shares"""

    @classmethod
    def as_measured(cls, measured: Observed, rho: float) -> Calibrated:
        factor = np.full(len(measured.value), rho)
        return cls(measured.value, measured.variance, factor, factor.copy())

    def at(self, places: Ints) -> Calibrated:
        return Calibrated(self.value[places], self.variance[places], self.sampling[places], self.shared[places])


@dataclass(frozen=True)
class UserSums:
    """How sums over users vary with who the users are."""

    rho: float
    """ρ = E[s²]/E[s] of a user's own share s of an item"""
    share_units: int
    """what a user's shares sum to"""
    weight_units: int
    """a weight of 1"""
    divides_all: bool
    """whether weights are divided among all that a user has, as shares are: E[w²] is then about E[s]; else w² ≤ w"""

    def of_weights(self, expected: Floats, base: Floats, slope: float) -> Floats:
        """R²: variance of the shares that weights predict, in units of c/n."""
        ratio = (expected / self.share_units) / (base / self.weight_units)
        predicted: Floats = slope**2 * (ratio**2 if self.divides_all else ratio)
        return np.minimum(predicted, self.rho)

    def together(self, of_weights: Floats, slope: float) -> Floats:
        """Covariance of both, in units of c/n: a moment of the weights, interpolated between those that are known."""
        covariance: Floats = np.cbrt(self.rho * of_weights**2 / slope)
        return np.minimum(covariance, np.sqrt(self.rho * of_weights))

    def of_gap(self, expected: Floats, base: Floats, slope: float) -> Floats:
        """Variance of measured less predicted sums, in units squared."""
        of_weights = self.of_weights(expected, base, slope)
        factor: Floats = self.rho + of_weights - 2 * self.together(of_weights, slope)
        return factor * expected * self.share_units


def calibrate(measured: Observed, weights: Observed, users: UserSums) -> Calibrated:
    """Both observations of some items in one, item by item; as measured where there is nothing to compare.

    The parts of each are those of the least variance against the people whom the users stand for.
    """
    if float(measured.value.sum()) <= 0:
        return Calibrated.as_measured(measured, users.rho)
    base = np.maximum(weights.value, np.sqrt(weights.variance))
    curve = _Curve.through(measured, base, weights.variance, users)
    expected, variance = curve.at(base, weights.variance)
    of_weights = users.of_weights(expected, base, curve.slope)
    together, people = users.together(of_weights, curve.slope), expected * users.share_units
    all_measured, all_predicted = measured.variance + users.rho * people, variance + of_weights * people
    common = together * people
    part = np.clip((all_predicted - common) / (all_measured + all_predicted - 2 * common), 0.0, 1.0)
    return Calibrated(
        part * measured.value + (1 - part) * expected,
        part**2 * measured.variance + (1 - part) ** 2 * variance,
        part**2 * users.rho + 2 * part * (1 - part) * together + (1 - part) ** 2 * of_weights,
        part * users.rho + (1 - part) * together,
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
    def through(cls, measured: Observed, base: Floats, weight_variance: Floats, users: UserSums) -> _Curve:
        """Weighted least squares, iterated: variances are those of the noise and of η at the curve itself."""
        position = np.log(base)
        centre = float(np.average(position, weights=base))
        curve = cls(
            float(np.log(measured.value.sum() / base.sum())) + centre, 1.0, centre, _PRIOR_SPREAD**2, np.zeros((2, 2))
        )
        for _ in range(_PASSES):
            curve = curve._closer(measured, base, weight_variance, users)
        return curve

    def _closer(self, measured: Observed, base: Floats, weight_variance: Floats, users: UserSums) -> _Curve:
        """One Gauss–Newton step in level and slope, a prior N(1, ¹⁄₅²) on the slope, then η² by moments."""
        expected = self._expected(base)
        noise = measured.variance + self._noise(expected, base, weight_variance)
        noise += users.of_gap(expected, base, self.slope)
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
        return moved._with_spread(measured, base, weight_variance, users)

    def _with_spread(self, measured: Observed, base: Floats, weight_variance: Floats, users: UserSums) -> _Curve:
        """η²: how much more the gaps vary than noise and sampling explain, relative to what is expected; by moments."""
        expected = self._expected(base)
        noise = measured.variance + self._noise(expected, base, weight_variance)
        noise += users.of_gap(expected, base, self.slope)
        information = (expected**2 / (noise + self.spread * expected**2)) ** 2
        excess = float((information * ((measured.value - expected) ** 2 - noise) / expected**2).sum())
        prior = _ITEMS_OF_PRIOR * max(self.spread, _PRIOR_SPREAD**2) ** -2
        weight = float(information.sum()) + prior
        spread = (excess + prior * _PRIOR_SPREAD**2) / weight
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
