"""Euclidean projection onto the probability simplex (Wang and Carreira-Perpiñán 2013)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def project_onto_simplex(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest vector with entries ≥ 0 that sum to 1. Post-processing: costs no privacy."""
    descending = np.sort(values)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, len(values) + 1)
    support = np.flatnonzero(descending > excess)[-1]
    projected: NDArray[np.float64] = np.maximum(values - excess[support], 0.0)
    return projected
