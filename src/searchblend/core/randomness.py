"""Where randomness comes from: the operating system, or a fixed tape in tests and vectors.

Everything random in the package is an exact function of 64-bit words, so one protocol with one method is
enough. There is no state to copy on ``fork`` and nothing to seed. Standard library only: this runs on devices.
"""

from __future__ import annotations

import os
from typing import Final, Protocol, runtime_checkable

from searchblend.core.errors import SearchblendError

HALF: Final = 1 << 32


@runtime_checkable
class Randomness(Protocol):
    """A source of independent uniform bytes."""

    @property
    def cryptographic(self) -> bool:
        """Whether an adversary cannot predict it; a release is private only if this is true."""
        ...

    def take(self, n_bytes: int) -> bytes:
        """The next ``n_bytes`` bytes."""
        ...


class SystemRandomness:
    """The operating system's cryptographic generator. The default everywhere."""

    cryptographic = True

    def take(self, n_bytes: int) -> bytes:
        return os.urandom(n_bytes)


class TapeExhausted(SearchblendError):
    """A test's tape was shorter than what the algorithm draws."""


class Tape:
    """A fixed sequence of bytes, for vectors and tests: the same tape always gives the same output."""

    cryptographic = False

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._content) - self._position

    def take(self, n_bytes: int) -> bytes:
        if n_bytes > self.left:
            raise TapeExhausted(f"the tape has {self.left} bytes left, {n_bytes} were asked for")
        start, self._position = self._position, self._position + n_bytes
        return self._content[start : self._position]


def word(randomness: Randomness) -> int:
    """A uniform integer in [0, 2^64), little-endian from eight bytes."""
    return int.from_bytes(randomness.take(8), "little")


def accept_below(n: int) -> int:
    """How many of the 2^32 values of a half word map evenly onto [0, n): the rest must be drawn again."""
    return HALF - HALF % n


def uniform_from_half(half: int, n: int, randomness: Randomness) -> int:
    """An exactly uniform integer in [0, n) from a 32-bit half word; a rejected half is replaced.

    The replacement is the low half of a fresh word. Modulo after rejection has no bias at all.
    """
    while half >= accept_below(n):
        half = word(randomness) % HALF
    return half % n


def uniform_below(n: int, randomness: Randomness) -> int:
    """An exactly uniform integer in [0, n), 1 ≤ n < 2^32. Draws nothing when there is no choice."""
    return 0 if n == 1 else uniform_from_half(word(randomness) % HALF, n, randomness)
