"""Published counts corrected for having been selected by their own noise, with what the other counts tell.

There are many more rare queries than common ones, so that a noisy count is more often too large than too small, most
of all near the threshold. How fast they thin out can be read from the published counts: a power law N^{−β}, fitted by
its likelihood above the threshold (Hill). The corrected count is the mean of N given N + Y, under that law. Selection
by N + Y itself changes nothing in it. Post-processing: it costs no privacy.

Inverting the mean of published counts (``ReusedNoise.debiased``) needs no law of counts, but next to the threshold,
where that mean hardly depends on N, it is several times further off than the noisy count itself.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian
from searchblend.mechanisms.tally import Ints

Floats = NDArray[np.float64]
USUAL_EXPONENT: Final = 2.0
"""of how many queries have each count, if the r-th most frequent has a count in proportion to 1/r"""
_ENOUGH: Final = 50
"""published counts; fewer do not say how they thin out"""
_STEEPEST: Final = 4.0
_NEGLIGIBLE: Final = 1e-12
_CELLS: Final = 1 << 21


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
