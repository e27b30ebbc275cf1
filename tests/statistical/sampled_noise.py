"""For noises made up by tests: which draws reach a floor, by drawing all and comparing."""

from __future__ import annotations

import numpy as np

from searchblend.core.randomness import Randomness


class Sampled:
    """Gives a class with ``sample`` what a threshold asks of it."""

    def reaching(self, floor: int, size: int, randomness: Randomness) -> tuple[np.ndarray, np.ndarray]:
        noise = self.sample(size, randomness)
        positions = np.flatnonzero(noise >= floor)
        return positions, noise[positions]
