"""Discrete Laplace noise from a table of integers and the operating system's bits.

Y has P(Y = y) = (1−a)/(1+a) · a^|y| with a = e^{−1/b}: the integer twin of Lap(b). Counts are integers, so
their noise is too: released values carry no low-order bits that could tell inputs apart (floating-point
Laplace does).

One 64-bit word is one draw: its lowest bit is the sign, the other 63 are compared with
c_m ≈ 2^63 · P(|Y| ≥ m) = 2^63 · 2a^m/(1+a), m = 1..K; the magnitude is the number of c_m above them. Each c_m
is the nearest integer, K the last m with c_m > 0.

Distance from the ideal law: |c_m/2^63 − P(|Y| ≥ m)| ≤ 2^-64, so each of the K+1 magnitudes is off by at most
2^-63 and what lies beyond K weighs at most 2^-64: total variation ≤ (K+2)·2^-64 (``distance``). A mechanism that
draws j noises that a neighbour could see pays j(1+e^ε)·distance, added to its δ (proofs/discrete_laplace.md).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.errors import InvalidParameter
from searchblend.mechanisms.fixed_point import exp_fraction_bounds
from searchblend.randomness import Randomness

_MAGNITUDE_BITS: Final = 63
_MAX_TABLE: Final = 2_000_000
_CHUNK: Final = 1 << 20


class DiscreteLaplace:
    """The law of the noise, and its sampler. ``rate`` is 1/b, exactly."""

    def __init__(self, rate: Fraction) -> None:
        if rate <= 0 or 45 / rate > _MAX_TABLE:
            raise InvalidParameter(
                "epsilon", f"too small: noise of scale {float(1 / rate) if rate > 0 else math.inf:g} drowns any log"
            )
        self.rate: Final = rate
        self.decay: Final = math.exp(-float(rate))
        """a = e^{−1/b}"""
        self._table: Final = _survival_table(rate)

    @property
    def scale(self) -> float:
        """b"""
        return float(1 / self.rate)

    @property
    def variance(self) -> float:
        """Var(Y) = 2a/(1−a)²; the continuous law's 2b² is only its limit."""
        return 2 * self.decay / math.expm1(-float(self.rate)) ** 2

    @property
    def distance(self) -> float:
        """An upper bound of the total variation between the sampler and the ideal law."""
        return (len(self._table) + 2) * 2.0**-64

    def at_least(self, value: int) -> float:
        """P(Y ≥ value) under the ideal law."""
        a = self.decay
        return a**value / (1 + a) if value > 0 else 1 - a ** (1 - value) / (1 + a)

    def sampled_probabilities(self) -> dict[int, Fraction]:
        """The exact law of the sampler as it is shipped, for enumeration and accounting."""
        steps = [1 << _MAGNITUDE_BITS, *(int(c) for c in self._table), 0]
        halves = [Fraction(steps[m] - steps[m + 1], 1 << (_MAGNITUDE_BITS + 1)) for m in range(len(steps) - 1)]
        law = {0: 2 * halves[0]}
        for m, half in enumerate(halves[1:], start=1):
            law[m] = law[-m] = half
        return law

    def sample(self, size: int, randomness: Randomness) -> NDArray[np.int64]:
        """Independent draws."""
        noise = np.empty(size, dtype=np.int64)
        for start in range(0, size, _CHUNK):
            stop = min(start + _CHUNK, size)
            words = np.frombuffer(randomness.take(8 * (stop - start)), dtype="<u8")
            noise[start:stop] = self._from_words(words)
        return noise

    def _from_words(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        uniform = words >> np.uint64(1)
        sign = 1 - 2 * (words & np.uint64(1)).astype(np.int64)
        ascending = self._table[::-1]
        magnitude = len(ascending) - np.searchsorted(ascending, uniform, side="right")
        return sign * magnitude.astype(np.int64)


@lru_cache(maxsize=32)
def _survival_table(rate: Fraction) -> NDArray[np.uint64]:
    """c_1 > c_2 > … > c_K > 0: round(2^63 · 2a^m/(1+a)), by repeated multiplication with 160 bits.

    The relative error after m steps is below m·2^-120 (the bounds of e^x have 128 bits), far under the rounding to 63.
    """
    bits = 160
    decay = int(exp_fraction_bounds(-rate)[0] * (1 << bits))
    survival = (1 << (bits + _MAGNITUDE_BITS + 1)) * decay // ((1 << bits) + decay)
    table: list[int] = []
    while (step := (survival + (1 << (bits - 1))) >> bits) > 0:
        table.append(step)
        survival = survival * decay >> bits
    result = np.array(table, dtype=np.uint64)
    result.setflags(write=False)
    return result
