"""The laws a synthetic log is drawn from: ranks by power laws, and numbers that belong to numbers.

No table of a vocabulary is held: a rank comes from the inverse of a piecewise power law, and everything fixed about
a query or a URL (its intent, its results) is a hash of its number, the same for every seed and every worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ODD = np.uint64(0xD6E8FEB86659FD93)


def mixed(numbers: Ints, salt: int) -> NDArray[np.uint64]:
    """A 64-bit hash of each number; other salts give unrelated hashes."""
    bits = numbers.astype(np.uint64)
    bits += np.uint64(salt * 0xA24BAED4963EE407 + 1 & (1 << 64) - 1)
    bits *= _GOLDEN
    for _ in range(2):
        bits ^= bits >> np.uint64(32)
        bits *= _ODD
    bits ^= bits >> np.uint64(32)
    return bits


def fixed_uniform(numbers: Ints, salt: int) -> Floats:
    """A number in [0, 1) that belongs to each number."""
    uniform: Floats = (mixed(numbers, salt) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return uniform


def draw_index(shares: Floats, uniforms: Floats) -> Ints:
    """The index whose part of the cumulated shares holds each uniform number."""
    bounds = np.cumsum(shares)
    return np.minimum(np.searchsorted(bounds / bounds[-1], uniforms, side="right"), len(shares) - 1)


@dataclass(frozen=True)
class Segment:
    """Ranks start <= r < stop with p(r) ∝ (r + shift)^-exponent, ``mass`` of the law together."""

    start: int
    stop: int
    exponent: float
    mass: float
    shift: float = 0.0

    def ranks(self, uniforms: Floats) -> Ints:
        """The inverse of the cumulated law: x^-s integrates to a power, or to a logarithm where s = 1."""
        low, high, power = self.start + self.shift, self.stop + self.shift, 1 - self.exponent
        if power == 0:
            shifted = low * (high / low) ** uniforms
        else:
            shifted = (low**power + uniforms * (high**power - low**power)) ** (1 / power)
        ranks = (shifted - self.shift).astype(np.int64)
        return np.clip(ranks, self.start, self.stop - 1, out=ranks)


@dataclass(frozen=True)
class RankLaw:
    """Shares of the first ranks one by one, then segments; rank 0 is the most frequent."""

    head: tuple[float, ...]
    segments: tuple[Segment, ...]

    @cached_property
    def _bounds(self) -> Floats:
        bounds = np.cumsum([*self.head, *(segment.mass for segment in self.segments)])
        return np.concatenate([[0.0], bounds / bounds[-1]])

    def ranks(self, uniforms: Floats) -> Ints:
        """The rank at each place of the cumulated law."""
        if not self.head and len(self.segments) == 1:
            return self.segments[0].ranks(uniforms)
        part = np.searchsorted(self._bounds[1:-1], uniforms, side="right")
        ranks = part.copy()
        for number, segment in enumerate(self.segments, len(self.head)):
            inside = np.flatnonzero(part == number)
            low, high = self._bounds[number], self._bounds[number + 1]
            ranks[inside] = segment.ranks((uniforms[inside] - low) / (high - low))
        return ranks
