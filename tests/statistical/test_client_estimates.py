"""EstimateClientProbabilities: unbiased, honest variances, intervals that cover. [BLJ] Theorem 3.6."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.paper.estimate_client import count_reports, estimate_client_probabilities
from searchblend.blender.paper.local_report import local_report
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.records import Record
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.evidence.laws import faults
from searchblend_lab.evidence.laws.channel import ChannelCase
from searchblend_lab.evidence.laws.estimates import (
    check_exactly_unbiased,
    of_queries,
    simulate_clients,
)
from searchblend_lab.evidence.laws.sampled_reports import check_client_estimates, falling

EXACT = [
    pytest.param(ChannelCase((1, 1)), [0.3, 0.1, 0.05, 0.15, 0.4], id="k_q=2"),
    pytest.param(ChannelCase((2, 1), epsilon=1.0, delta=0.01, query_budget_fraction=0.5), None, id="unequal"),
    pytest.param(ChannelCase((0, 0, 0), query_budget_fraction=1.0), [0.5, 0.2, 0.0, 0.3], id="query-only"),
    pytest.param(ChannelCase((2, 0), epsilon=2.0, query_budget_fraction=0.3), None, id="one-without-urls"),
]
exact = pytest.mark.parametrize(("case", "shares"), EXACT)


def truth_of(case: ChannelCase, shares: list[float] | None) -> np.ndarray:
    """The given shares, or falling ones."""
    return np.array(shares) if shares else falling(case.head)


@exact
@pytest.mark.parametrize("n", [2, 4])
def test_unbiased_over_all_outcomes(case: ChannelCase, shares, n: int):
    """Exact: no simulation, no false alarm."""
    check_exactly_unbiased(estimate_client_probabilities, case.head, case.params, truth_of(case, shares), n)


@pytest.mark.parametrize("name", faults.CLIENT_ESTIMATE)
def test_wrong_estimator_is_rejected_by_enumeration(name: str):
    case, shares = EXACT[0].values
    with pytest.raises(AssertionError):
        check_exactly_unbiased(faults.CLIENT_ESTIMATE[name], case.head, case.params, truth_of(case, shares), 4)


MONTE_CARLO = [
    ChannelCase((1, 2, 3)),
    ChannelCase((2, 2), epsilon=1.0, query_budget_fraction=0.6),
    ChannelCase((0,) * 6, query_budget_fraction=1.0, epsilon=2.0),
]
CLIENTS = 20_000


@pytest.mark.parametrize("case", [MONTE_CARLO[0], MONTE_CARLO[2]], ids=str)
def test_bias_variance_and_coverage(case: ChannelCase):
    """Seeded, 6 % being four standard errors of a variance. The second case is in test_laws.py, with its faults."""
    check_client_estimates(estimate_client_probabilities, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", MONTE_CARLO, ids=str)
def test_bias_variance_and_coverage_of_many_replicates(case: ChannelCase):
    """40,000 seeded replicates of 20,000 clients: 3 % is four standard errors of a variance."""
    check_client_estimates(estimate_client_probabilities, case, 40_000, variance_within=0.03)


def test_bulk_reports_give_unbiased_estimates():
    """The same through ``BulkReporter``: 300 seeded runs of 20,000 clients."""
    case, source = MONTE_CARLO[0], SeededRandomness(5)
    truth = falling(case.head)
    held = np.rint(CLIENTS * truth).astype(np.int64)
    reporter = BulkReporter(ReportProbabilities.of(case.head, case.params))
    counts = np.array([reporter.report_counts(held, source) for _ in range(300)])
    records, queries = simulate_clients(estimate_client_probabilities, case.head, case.params, counts)
    records.check_bias(held / held.sum())
    queries.check_bias(of_queries(case.head, held / held.sum()))


def test_devices_give_unbiased_estimates():
    """The same through the scalar ``local_report``, m_C = 2, operating system's generator: z test, 1e-6 in all.

    Every device has two records, so that drawing one of them is part of what is tested.
    """
    case = ChannelCase((1, 1), records_per_client=2)
    pair = [Record("query 0", "url 0"), Record("unknown", "url 0")]
    reports = [local_report(pair, case.head, case.params) for _ in range(6_000)]
    truth = np.zeros(case.head.n_cells)
    truth[[0, -1]] = 0.5
    counts = count_reports(np.array(reports).ravel(), case.head)
    estimated = estimate_client_probabilities(counts, case.head, case.params).records
    z = (estimated.probability - truth) / np.sqrt(estimated.variance)
    assert np.abs(z).max() <= norm.isf(1e-6 / 2 / len(z))


def test_several_records_per_client_stay_unbiased():
    """m_C = 3 through a group: the mean over 400 seeded runs; the variances are known to be invalid."""
    case = ChannelCase((1, 2), records_per_client=3, epsilon=6.0)
    first, second = Record("query 0", "url 0"), Record("query 1", "url 1")
    clients = InMemoryGroup.from_users(
        [[first, first, second]] * 500 + [[second]] * 500, randomness=SeededRandomness(1)
    )
    truth = np.zeros(case.head.n_cells)
    source = SeededRandomness(2)
    reporter = BulkReporter(ReportProbabilities.of(case.head, case.params))
    counts = []
    for _ in range(400):
        held = clients.cell_counts(case.head, 3, randomness=source) - clients.cell_counts(case.head)
        counts.append(reporter.report_counts(held, source))
    truth[case.head.cell_of(first)], truth[case.head.cell_of(second)] = 1 / 3, 2 / 3
    records, _ = simulate_clients(estimate_client_probabilities, case.head, case.params, np.array(counts))
    records.check_bias(truth)
