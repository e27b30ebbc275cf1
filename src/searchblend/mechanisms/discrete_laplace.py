"""Discrete Laplace noise from a table of integers and the operating system's bits.

Y has P(Y = y) = (1−a)/(1+a) · a^|y| with a = e^{−1/b}: the integer twin of Lap(b). Counts are integers, so
their noise is too: released values carry no low-order bits that could tell inputs apart (floating-point
Laplace does).

Drawn from a ``NoiseTable`` of c_m ≈ 2^63 · P(|Y| ≥ m) = 2^63 · 2a^m/(1+a). A mechanism that draws j noises that a
neighbour could see pays j(1+e^ε)·distance, added to its δ (proofs/discrete_laplace.md).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

from searchblend.core.errors import InvalidParameter
from searchblend.mechanisms.fixed_point import exp_fraction_bounds
from searchblend.mechanisms.noise_table import MAGNITUDE_BITS, IntegerNoise, NoiseTable

_MAX_TABLE: Final = 2_000_000


class DiscreteLaplace(IntegerNoise):
    """The law of the noise, and its sampler. ``rate`` is 1/b, exactly."""

    def __init__(self, rate: Fraction) -> None:
        if rate <= 0 or 45 / rate > _MAX_TABLE:
            raise InvalidParameter(
                "epsilon", f"too small: noise of scale {float(1 / rate) if rate > 0 else math.inf:g} drowns any log"
            )
        self.rate: Final = rate
        self.decay: Final = math.exp(-float(rate))
        """a = e^{−1/b}"""
        self._survival = _survival_table(rate)

    @property
    def _table(self) -> NoiseTable:
        return self._survival

    @property
    def scale(self) -> float:
        """b"""
        return float(1 / self.rate)

    @property
    def variance(self) -> float:
        """Var(Y) = 2a/(1−a)²; the continuous law's 2b² is only its limit."""
        return 2 * self.decay / math.expm1(-float(self.rate)) ** 2

    def at_least(self, value: int) -> float:
        """P(Y ≥ value) under the ideal law."""
        a = self.decay
        return a**value / (1 + a) if value > 0 else 1 - a ** (1 - value) / (1 + a)


@lru_cache(maxsize=32)
def _survival_table(rate: Fraction) -> NoiseTable:
    """c_1 > c_2 > … > c_K > 0: round(2^63 · 2a^m/(1+a)), by repeated multiplication with 160 bits.

    The relative error after m steps is below m·2^-120 (the bounds of e^x have 128 bits), far under the rounding to 63.
    """
    bits = 160
    decay = int(exp_fraction_bounds(-rate)[0] * (1 << bits))
    survival = (1 << (bits + MAGNITUDE_BITS + 1)) * decay // ((1 << bits) + decay)
    table: list[int] = []
    while (step := (survival + (1 << (bits - 1))) >> bits) > 0:
        table.append(step)
        survival = survival * decay >> bits
    return NoiseTable(table)
