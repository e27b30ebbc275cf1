"""Estimated probabilities with their variances, aligned with a head list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NORMAL_95: Final = 1.959963984540054


@dataclass(frozen=True)
class Estimates:
    """p̂ and σ̂², one entry per cell or per query of a head list; NaN where a group says nothing."""

    probability: Floats
    variance: Floats

    def __repr__(self) -> str:
        return f"Estimates({len(self.probability)} shares)"

    @property
    def interval(self) -> Floats:
        """95 % intervals p̂ ± 1.96 σ̂, one row each. Not clipped to [0, 1]: p̂ is unbiased, its bounds are too."""
        half_width = NORMAL_95 * np.sqrt(self.variance)
        return np.stack([self.probability - half_width, self.probability + half_width], axis=1)


@dataclass(frozen=True)
class GroupEstimates:
    """What one group says: about every cell (records) and about every query, ⋆ last in both (trends)."""

    n: int
    """How many users (or reported cells) the estimates rest on."""
    records: Estimates
    queries: Estimates


@dataclass(frozen=True)
class Blended:
    """Both groups' estimates of the same things, combined."""

    raw: Estimates
    """The blend w p̂_O + (1−w) p̂_C: unbiased when both groups are."""
    probability: Floats
    """``raw.probability``, projected onto the simplex unless that was switched off."""
    optin_weight: Floats
    """w: the share of the opt-in estimate in the blend."""

    def __repr__(self) -> str:
        return f"Blended({len(self.probability)} shares)"
