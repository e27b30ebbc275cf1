"""Symmetric integer noise drawn from a table of integers: what every law of noise here has in common.

One 64-bit word is one draw: its lowest bit is the sign, the other 63 are compared with c_m ≈ 2^63 · P(|Y| ≥ m),
m = 1..K; the magnitude is the number of c_m above them. Each c_m is the nearest integer, K the last m with c_m > 0, so
the law of the sampler can be written down exactly, and its distance from the ideal one is known.

Distance: |c_m/2^63 − P(|Y| ≥ m)| ≤ 2^-64, so each of the K+1 magnitudes is off by at most 2^-63 and what lies beyond K
weighs at most 2^-64: total variation ≤ (K+2)·2^-64 (proofs/discrete_laplace.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.core.randomness import Randomness

MAGNITUDE_BITS: Final = 63
_CHUNK: Final = 1 << 20
_FIRST_BITS: Final = 16
"""of a word: enough to see that a draw is far from a high floor"""
_FEW: Final = 1 << 13
"""of 2^16: when more draws than these may reach the floor, whole words are drawn at once"""


class NoiseTable:
    """The sampler of one law, made of c_1 ≥ c_2 ≥ … ≥ c_K > 0."""

    def __init__(self, survival: list[int]) -> None:
        self.survival: Final = np.array(survival, dtype=np.uint64)
        self.survival.setflags(write=False)

    @property
    def distance(self) -> float:
        return distance_of_length(len(self.survival))

    def probabilities(self) -> dict[int, Fraction]:
        """The exact law of the sampler."""
        steps = [1 << MAGNITUDE_BITS, *(int(c) for c in self.survival), 0]
        halves = [Fraction(steps[m] - steps[m + 1], 1 << (MAGNITUDE_BITS + 1)) for m in range(len(steps) - 1)]
        law = {0: 2 * halves[0]}
        for m, half in enumerate(halves[1:], start=1):
            law[m] = law[-m] = half
        return law

    def sample(self, size: int, randomness: Randomness) -> NDArray[np.int64]:
        noise = np.empty(size, dtype=np.int64)
        for start in range(0, size, _CHUNK):
            stop = min(start + _CHUNK, size)
            words = np.frombuffer(randomness.take(8 * (stop - start)), dtype="<u8")
            noise[start:stop] = self._from_words(words)
        return noise

    def reaching(self, floor: int, size: int, randomness: Randomness) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As ``sample`` and a comparison, and of the same law, but where few draws reach the floor far faster.

        Y ≥ floor > 0 needs the word's upper 63 bits below c_floor. Its first 16 bits decide that for nearly all draws;
        the other 48 are only drawn for the rest.
        """
        limit = self._survival_of(floor) >> (MAGNITUDE_BITS - _FIRST_BITS)
        if limit >= _FEW:
            noise = self.sample(size, randomness)
            positions = np.flatnonzero(noise >= floor)
            return positions, noise[positions]
        first = np.frombuffer(randomness.take(2 * size), dtype="<u2")
        positions = np.flatnonzero(first <= limit)
        rest = np.zeros((len(positions), 8), dtype=np.uint8)
        rest[:, :6] = np.frombuffer(randomness.take(6 * len(positions)), dtype=np.uint8).reshape(-1, 6)
        words = rest.reshape(-1).view("<u8") | first[positions].astype(np.uint64) << np.uint64(64 - _FIRST_BITS)
        noise = self._from_words(words)
        passed = noise >= floor
        return positions[passed], noise[passed]

    def _survival_of(self, magnitude: int) -> int:
        """c_m; 2^63 for m ≤ 0 and 0 beyond the table"""
        if magnitude <= 0:
            return 1 << MAGNITUDE_BITS
        return int(self.survival[magnitude - 1]) if magnitude <= len(self.survival) else 0

    def _from_words(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        uniform = words >> np.uint64(1)
        sign = 1 - 2 * (words & np.uint64(1)).astype(np.int64)
        ascending = self.survival[::-1]
        magnitude = len(ascending) - np.searchsorted(ascending, uniform, side="right")
        return sign * magnitude.astype(np.int64)


class IntegerNoise(ABC):
    """Noise for counts: independent, symmetric, whole numbers. A law states its tail; its table draws."""

    @property
    @abstractmethod
    def _table(self) -> NoiseTable: ...

    @property
    @abstractmethod
    def variance(self) -> float: ...

    @abstractmethod
    def at_least(self, value: int) -> float:
        """P(Y ≥ value) under the ideal law."""

    @property
    def distance(self) -> float:
        """An upper bound of the total variation between the sampler and the ideal law."""
        return self._table.distance

    @property
    def reach(self) -> int:
        """The largest noise that the sampler can draw."""
        return len(self._table.survival)

    def sampled_probabilities(self) -> dict[int, Fraction]:
        """The exact law of the sampler as it is shipped, for enumeration and accounting."""
        return self._table.probabilities()

    def sample(self, size: int, randomness: Randomness) -> NDArray[np.int64]:
        """Independent draws."""
        return self._table.sample(size, randomness)

    def reaching(self, floor: int, size: int, randomness: Randomness) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of so many independent draws those with Y ≥ floor: their positions, and their values."""
        return self._table.reaching(floor, size, randomness)


def distance_of_length(length: int) -> float:
    """(K+2)·2^-64"""
    return (length + 2) * 2.0**-64
