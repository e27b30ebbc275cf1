"""How far one report can move a share that the printed method publishes: a bound over all reports.

The blend of a query follows from how often it was reported and from the number of reports, and from nothing else, so
everything that one report can do to it is tried. The projection onto the simplex moves no vector pair apart, so a
published share moves by no more than the whole vector does.
"""

from __future__ import annotations

import numpy as np

from searchblend.blender.estimates import Estimates, Floats
from searchblend.blender.paper.blend import blend_probabilities
from searchblend.blender.paper.estimate_client import query_estimates
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints


def paper_influence(report_counts: Ints, head: HeadList, optin: Estimates, params: BlenderParams) -> Floats:
    """By query, ⋆ last; ``optin`` are the opt-in users' estimates of the queries."""
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
