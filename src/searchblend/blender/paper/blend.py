"""BlendProbabilities: one estimate from two groups, each weighed by the other's variance. [BLJ] Fig. 7.

And how far one report can move it, which the figure does not say.

Run by the server. Post-processing: costs no privacy.
"""

from __future__ import annotations

import numpy as np

from searchblend.blender.estimates import Blended, Estimates, Floats
from searchblend.blender.paper.estimate_client import query_estimates
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints


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


def project_onto_simplex(values: Floats) -> Floats:
    """The nearest vector with entries ≥ 0 that sum to 1 (Wang and Carreira-Perpiñán 2013)."""
    descending = np.sort(values)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, len(values) + 1)
    support = np.flatnonzero(descending > excess)[-1]
    projected: Floats = np.maximum(values - excess[support], 0.0)
    return projected


def paper_influence(report_counts: Ints, head: HeadList, optin: Estimates, params: BlenderParams) -> Floats:
    """How far one report can move a published share, at most: by query, ⋆ last.

    The blend of a query follows from how often it was reported and from the number of reports, and from nothing else,
    so everything that one report can do to it is tried. The projection onto the simplex moves no vector pair apart, so
    a published share moves by no more than the whole vector does. ``optin`` are the opt-in users' estimates of queries.
    """
    parts, n = params.records_per_client, int(report_counts.sum())
    if n < parts + 2:
        return np.ones(len(head) + 1)

    by_query = np.add.reduceat(report_counts, head.first_cells())
    stages = ReportProbabilities.of(head, params)
    now = _blended(by_query, n, stages, optin)
    loud, quiet = np.zeros((2, len(head) + 1))
    for reports in (n - parts, n, n + parts):
        for more in range(-parts, parts + 1):
            moved = np.abs(_blended(np.clip(by_query + more, 0, reports), reports, stages, optin) - now)
            loud = np.maximum(loud, moved)
            quiet = np.maximum(quiet, moved) if more == 0 else quiet
    # A report that comes and one that goes name at most ``parts`` queries each; the others see the number change.
    named = np.sort(loud**2 - quiet**2)[::-1][: 2 * parts].sum()
    return np.full(len(head) + 1, min(float(np.sqrt((quiet**2).sum() + named)), 1.0))


def _blended(counts: Ints, n: int, stages: ReportProbabilities, optin: Estimates) -> Floats:
    return blend_probabilities(optin, query_estimates(counts / n, n, stages), project=False).raw.probability
