"""A seeded generator behind the ``Randomness`` protocol: repeatable simulations, never a release."""

from __future__ import annotations

import numpy as np


class SeededRandomness:
    """Repeatable and predictable: whatever is drawn from it is not private."""

    cryptographic = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def take(self, n_bytes: int) -> bytes:
        return self._generator.bytes(n_bytes)
