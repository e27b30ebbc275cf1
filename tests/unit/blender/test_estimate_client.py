"""From report counts to shares, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from searchblend.blender.paper.estimate_client import count_reports, estimate_client_probabilities
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList

HEAD = HeadList({"a": ["u", "v"], "b": ["u"]})
PARAMS = BlenderParams(Budget(4, 1e-5))


def test_reports_are_counted_by_cell():
    assert count_reports(np.array([0, 5, 5, 2]), HEAD).tolist() == [1, 0, 1, 0, 0, 2]
    assert count_reports(np.array([], dtype=np.int64), HEAD).tolist() == [0] * 6


@pytest.mark.parametrize("cell", [-1, 6, 2**40])
def test_a_report_that_is_no_cell_is_refused(cell: int):
    with pytest.raises(MessageError, match="from 0 to 5"):
        count_reports(np.array([0, cell]), HEAD)


def test_the_formulas_of_the_paper():
    """[BLJ] Fig. 5 and Theorem 3.6, written out for ⟨a, v⟩."""
    counts = np.array([100, 300, 50, 200, 150, 200])
    result = estimate_client_probabilities(counts, HEAD, PARAMS)
    p = ReportProbabilities.of(HEAD, PARAMS)
    n, k, k_q, t, t_q = 1000, 3, 3, p.keep_query, p.keep_url[0]
    a = (1 - t) / (k - 1)
    r, r_q = 0.3, 0.45
    p_q = (r_q - a) / (t - a)
    variance_q = r_q * (1 - r_q) / ((n - 1) * (t - a) ** 2)
    big_a, big_b = t * (1 - t_q) / (k_q - 1), (1 - t) / ((k - 1) * k_q)
    slope, c = t * (t_q - (1 - t_q) / (k_q - 1)), big_b - big_a
    p_record = (r - (big_a * p_q + big_b * (1 - p_q))) / slope
    covariance = 2 * c * r * (1 - r_q) / ((n - 1) * (t - a))
    variance = (r * (1 - r) / (n - 1) + c**2 * variance_q + covariance) / slope**2
    assert result.n == n
    assert result.queries.probability[0] == pytest.approx(p_q)
    assert result.queries.variance[0] == pytest.approx(variance_q)
    assert result.records.probability[1] == pytest.approx(p_record)
    assert result.records.variance[1] == pytest.approx(variance)


def test_a_query_with_one_cell_has_the_same_estimate_twice():
    result = estimate_client_probabilities(np.array([100, 300, 50, 200, 150, 200]), HEAD, PARAMS)
    assert result.records.probability[-1] == pytest.approx(result.queries.probability[-1])
    assert result.records.variance[-1] == pytest.approx(result.queries.variance[-1])


def test_shares_of_the_wildcard_alone():
    result = estimate_client_probabilities(np.array([10]), HeadList({}), PARAMS)
    assert result.queries.probability.tolist() == [1.0]
    assert result.queries.variance.tolist() == [0.0]


@pytest.mark.parametrize("n", [0, 1])
def test_two_reports_are_needed(n: int):
    with pytest.raises(InvalidParameter, match="at least 2 reports"):
        estimate_client_probabilities(np.array([n, 0, 0, 0, 0, 0]), HEAD, PARAMS)


@pytest.mark.parametrize(
    ("epsilon", "fraction", "field"), [(1e-10, 0.85, "epsilon"), (4.0, 1 - 1e-11, "query_budget_fraction")]
)
def test_reports_that_say_nothing_are_refused(epsilon: float, fraction: float, field: str):
    params = BlenderParams(Budget(epsilon, 1e-12), query_budget_fraction=fraction)
    with pytest.raises(InvalidParameter) as refused:
        estimate_client_probabilities(np.array([1, 2, 3, 4, 5, 6]), HEAD, params)
    assert refused.value.field == field
