"""BlendProbabilities: one estimate from two groups, each weighed by the other's variance. [BLJ] Fig. 7.

Run by the server. Post-processing: costs no privacy.
"""

from __future__ import annotations

import numpy as np

from searchblend.blender.estimates import Blended, Estimates
from searchblend.mechanisms.simplex import project_onto_simplex


def blend_probabilities(optin: Estimates, client: Estimates, *, project: bool = True) -> Blended:
    """p̂ = w p̂_O + (1−w) p̂_C with w = σ̂²_C/(σ̂²_O + σ̂²_C), then optionally the nearest distribution.

    [BLJ] Fig. 7 and Theorem 3.7, for cells or for queries. Where the opt-in users say nothing (⟨q,⋆⟩) w = 0;
    two zero variances give the plain mean. The variance of the blend is w²σ̂²_O + (1−w)²σ̂²_C.
    """
    silent = np.isnan(optin.probability)
    total = optin.variance + client.variance
    certain = total == 0
    weight = np.where(certain, 0.5, client.variance / np.where(certain, 1.0, total))
    weight = np.where(silent, 0.0, weight)
    optin_probability = np.where(silent, 0.0, optin.probability)
    optin_variance = np.where(silent, 0.0, optin.variance)
    probability = weight * optin_probability + (1 - weight) * client.probability
    variance = weight**2 * optin_variance + (1 - weight) ** 2 * client.variance
    return Blended(
        raw=Estimates(probability, variance),
        probability=project_onto_simplex(probability) if project else probability,
        optin_weight=weight,
    )
