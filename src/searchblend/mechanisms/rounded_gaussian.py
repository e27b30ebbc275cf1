"""Gaussian noise rounded to whole numbers, from a table of integers and the operating system's bits.

Y = round(G), G normal with mean 0 and standard deviation σ: P(Y ≥ m) = P(G ≥ m − ½). Counts are integers, so
N + round(G) = round(N + G): whatever is published is a function of N + G and nothing else. Every bound known for the
continuous Gaussian mechanism therefore holds as it stands, for any number of counts, any integer weights and any
adaptive composition; rounding adds 1/12 to the variance (proofs/rounded_gaussian.md).

The law P(y) ∝ e^{−y²/2σ²} on the integers would need a bound of its own for every shape of contribution, and more
noise for the same promise; floating-point noise would leak through its low-order bits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Final

from searchblend.core.errors import InvalidParameter
from searchblend.mechanisms.fixed_point import exp_fraction_bounds
from searchblend.mechanisms.noise_table import MAGNITUDE_BITS, IntegerNoise, NoiseTable, distance_of_length

SIGMA_GRID: Final = 1024
"""σ is a whole number of 1/1024: the same in every place that writes it down"""
SMALLEST_SIGMA: Final = Fraction(1, 8)
"""of which nothing is left after rounding but one draw in 16,000"""
LARGEST_SIGMA: Final = 4096
_REACH: Final = 9.3
"""beyond 9.3 σ, on both sides, a normal law has less than 2^-65: the table ends there at the latest"""
_BITS: Final = 192
_LEFT_OUT: Final = 104
"""bits: a series ends with terms below 2^-104 of its sum"""
_ROOT_OF_TWO_PI: Final = Fraction(25066282746310005024157652848110452530069867406099383166299235762, 10**64)
"""√(2π), cut off after 64 digits"""


class RoundedGaussian(IntegerNoise):
    """The law of the noise, and its sampler. ``sigma`` is exact: a whole number of 1/1024."""

    def __init__(self, sigma: Fraction) -> None:
        if not SMALLEST_SIGMA <= sigma <= LARGEST_SIGMA:
            raise InvalidParameter(
                "sigma", f"expected Gaussian noise of {SMALLEST_SIGMA} to {LARGEST_SIGMA}, found {float(sigma):g}"
            )
        if (sigma * SIGMA_GRID).denominator != 1:
            raise InvalidParameter("sigma", f"expected a whole number of 1/{SIGMA_GRID}")
        self.sigma: Final = sigma

    @cached_property
    def _table(self) -> NoiseTable:
        """Made when the first noise is drawn: plans need none."""
        return _survival_table(self.sigma)

    @property
    def scale(self) -> float:
        """σ"""
        return float(self.sigma)

    @cached_property
    def variance(self) -> float:
        """Var(Y) = Σ (2m−1) P(|Y| ≥ m), which is σ² + 1/12 but for the narrowest noise."""
        reach = math.ceil(_REACH * self.scale) + 1
        return 2 * math.fsum((2 * m - 1) * self.at_least(m) for m in range(1, reach + 1))

    @property
    def distance(self) -> float:
        """For the longest table that σ may have, so that plans need none."""
        return distance_bound(self.scale)

    def at_least(self, value: int) -> float:
        """P(Y ≥ value) under the ideal law."""
        return gaussian_at_least(value, self.scale)


def gaussian_at_least(value: float, sigma: float) -> float:
    """P(round(G) ≥ value) = P(G ≥ value − ½)"""
    return math.erfc((value - 0.5) / (sigma * math.sqrt(2))) / 2


def on_sigma_grid(sigma: float) -> Fraction:
    """The least σ of the grid that is not below."""
    return max(SMALLEST_SIGMA, Fraction(math.ceil(Fraction(sigma) * SIGMA_GRID), SIGMA_GRID))


def distance_bound(sigma: float) -> float:
    """(K+2)·2^-64 for the longest table that σ may have."""
    return distance_of_length(math.ceil(_REACH * sigma) + 1)


@lru_cache(maxsize=32)
def _survival_table(sigma: Fraction) -> NoiseTable:
    """c_m = round(2^63 · P(|Y| ≥ m)), P(|Y| ≥ m) = 1 − 2φ(z)S(z), z = (m − ½)/σ, S(z) = Σ z^{2n+1}/(2n+1)!!.

    S and φ come from the entry before: S by its Taylor series, φ by the ratio e^{−m/σ²}. All terms are positive, so
    nothing cancels. Together they are off by less than 2^-80 (proofs/rounded_gaussian.md).
    """
    one = 1 << _BITS
    density = _fixed(exp_fraction_bounds(-1 / (8 * sigma**2))[0] / _ROOT_OF_TWO_PI)
    decay = _fixed(exp_fraction_bounds(-1 / sigma**2)[0])
    ratio = decay
    step, square = _fixed(1 / sigma), _fixed(1 / sigma**2)
    series = _advanced(0, 0, step // 2, square // 4)
    table: list[int] = []
    grid = (sigma * SIGMA_GRID).numerator
    while (2 * len(table) + 1) * SIGMA_GRID // 2 < _REACH * grid:
        inside = 2 * density * series >> _BITS
        entry = max(one - inside, 0) + (1 << (_BITS - MAGNITUDE_BITS - 1)) >> (_BITS - MAGNITUDE_BITS)
        if not entry:
            break
        table.append(entry)
        series = _advanced(series, (2 * len(table) - 1) * square // 2, step, square)
        density = density * ratio >> _BITS
        ratio = ratio * decay >> _BITS
    return NoiseTable(table)


def _fixed(value: Fraction) -> int:
    return (value.numerator << _BITS) // value.denominator


def _advanced(series: int, drift: int, step: int, square: int) -> int:
    """S(z + h) from S(z), all in units of 2^-192: ``drift`` is zh, ``step`` is h, ``square`` is h².

    S' = zS + 1, so the terms t_n = h^n S^(n)(z)/n! are t_0 = S, t_1 = zh·t_0 + h and t_n = (zh·t_{n−1} + h²·t_{n−2})/n.
    What is left out is less than the larger of the last two: the factor is then at most a quarter.
    """
    before, term = series, (drift * series >> _BITS) + step
    negligible = (before + term) >> _LEFT_OUT
    total = before + term
    n, least = 1, (4 * (drift + square)) >> _BITS
    while n <= least or term > negligible or before > negligible:
        n += 1
        before, term = term, (drift * term + square * before >> _BITS) // n
        total += term
    return total
