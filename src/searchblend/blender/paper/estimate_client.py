"""EstimateClientProbabilities: what the clients' reports say once the noise is taken out. [BLJ] Fig. 5.

Run by the server. Post-processing of privatized reports: costs no privacy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.estimates import Estimates, Floats, GroupEstimates
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.params import BlenderParams
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints


def count_reports(cells: NDArray[np.integer], head: HeadList) -> Ints:
    """How often each cell was reported. A report that is not a cell of the list is refused, never coerced."""
    if len(cells) and not 0 <= int(cells.min()) <= int(cells.max()) < head.n_cells:
        raise MessageError(f"report: expected cell numbers from 0 to {head.n_cells - 1}")
    return np.bincount(cells, minlength=head.n_cells)


def estimate_client_probabilities(report_counts: Ints, head: HeadList, params: BlenderParams) -> GroupEstimates:
    """Unbiased estimates for every query and every cell, with their variances.

    [BLJ] Fig. 5 and Theorem 3.6, from the same ``ReportProbabilities`` the devices use. With a = (1−t)/(k−1),
    A = t(1−t_q)/(k_q−1) and B = (1−t)/((k−1)k_q):

        p̂_q = (r̂_q − a)/(t − a)
        p̂_⟨q,u⟩ = (r̂_⟨q,u⟩ − A p̂_q − B(1 − p̂_q)) / (t t_q − A)

    Departures: Theorem 3.6 as printed multiplies the whole bracket by n/(n−1) and so corrects σ̂²_q twice;
    here each term is corrected once. For m_C > 1 the reports of one client are not independent: the estimates
    stay unbiased, the variances do not count that.
    """
    n = int(report_counts.sum())
    if n < 2:
        raise InvalidParameter("clients", "at least 2 reports are needed to estimate a variance")
    probabilities = ReportProbabilities.of(head, params)
    widths = np.array(probabilities.n_urls)
    query_of_cell = np.array(head.query_of_cells())

    t, a = probabilities.keep_query, _lie(probabilities)
    r = report_counts / n
    r_query = np.add.reduceat(r, head.first_cells())
    queries = query_estimates(r_query, n, probabilities)
    p_query, variance_query = queries.probability, queries.variance

    keep_record = t * np.array(probabilities.keep_url)
    lie_url = (t - keep_record) / np.maximum(widths - 1, 1)  # A
    lie_query = a / widths  # B
    slope = keep_record - lie_url
    _refuse_if_uninformative(
        float(slope.min()), "query_budget_fraction", "leaves too little: the reports would say nothing about URLs"
    )

    lie_url, lie_query, slope = lie_url[query_of_cell], lie_query[query_of_cell], slope[query_of_cell]
    p_of_query, r_of_query = p_query[query_of_cell], r_query[query_of_cell]
    p_cell = (r - lie_url * p_of_query - lie_query * (1 - p_of_query)) / slope
    c = lie_query - lie_url
    variance_cell = (
        r * (1 - r) / (n - 1)
        + c**2 * variance_query[query_of_cell]
        + 2 * c * r * (1 - r_of_query) / ((n - 1) * (t - a))
    ) / slope**2
    return GroupEstimates(n=n, records=Estimates(p_cell, variance_cell), queries=queries)


def query_estimates(r_query: Floats, n: int, probabilities: ReportProbabilities) -> Estimates:
    """p̂_q and its variance from the fraction of the n reports that named each query, ⋆ last."""
    t, a = probabilities.keep_query, _lie(probabilities)
    return Estimates((r_query - a) / (t - a), r_query * (1 - r_query) / ((n - 1) * (t - a) ** 2))


def _lie(probabilities: ReportProbabilities) -> float:
    """a = (1−t)/(k−1): how often a given query is named by mistake."""
    a = (1 - probabilities.keep_query) / max(probabilities.n_queries - 1, 1)
    what = "too small: the reports would say nothing about the queries"
    _refuse_if_uninformative(probabilities.keep_query - a, "epsilon", what)
    return a


def _refuse_if_uninformative(slope: float, field: str, problem: str) -> None:
    if slope < 1e-9:
        raise InvalidParameter(field, problem)
