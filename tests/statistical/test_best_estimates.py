"""The clients' estimates of method ``best``: unbiased, with the stated variance; and the blend of exact figures."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from searchblend.blender.best.blend import estimate_best
from searchblend.blender.best.observations import OptinCounts
from searchblend.blender.best.set_law import SetLaw
from searchblend.blender.best.stability_histogram import CountedHeadList, curator_design
from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, TWO_STAGE, ReportDesign
from searchblend.blender.best.subset_report_bulk import ReportCounts
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection
from searchblend_lab.evidence.laws import best_faults
from searchblend_lab.evidence.laws.best_estimates import (
    check_covariance,
    check_simulated_estimates,
    check_unbiased,
    check_variance,
    expected_counts,
)
from searchblend_lab.evidence.laws.channel import channel_of
from searchblend_lab.evidence.laws.sampled_reports import HOLDERS

SHAPES = [(1, 1), (2, 1), (3, 2), (4, 1), (5, 3), (6, 2)]
KINDS = [SubsetSelection, PlainSubsetSelection]

shapes = pytest.mark.parametrize(("m", "d"), SHAPES)
kinds = pytest.mark.parametrize("kind", KINDS)
epsilons = pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2), Fraction(6)], ids=str)


def some_shares(m: int) -> np.ndarray:
    """Unequal, one of them 0, together 0.62."""
    weights = np.arange(m, dtype=float) if m > 1 else np.ones(1)
    return 0.62 * weights / weights.sum()


@epsilons
@kinds
@shapes
def test_expected_counts_give_back_the_truth(m: int, d: int, kind: type, epsilon: Fraction):
    check_unbiased(SetLaw.of, kind.of(epsilon, m, d), some_shares(m))


@epsilons
@kinds
@shapes
def test_variance_is_the_enumerated_one(m: int, d: int, kind: type, epsilon: Fraction):
    check_variance(SetLaw.of, kind.of(epsilon, m, d), some_shares(m))


@epsilons
@kinds
@shapes
def test_covariance_is_the_enumerated_one(m: int, d: int, kind: type, epsilon: Fraction):
    check_covariance(SetLaw.of, kind.of(epsilon, m, d), some_shares(m))


@pytest.mark.parametrize("name", best_faults.SET_COVARIANCE)
def test_wrong_covariance_is_rejected(name: str):
    with pytest.raises(AssertionError):
        check_covariance(best_faults.SET_COVARIANCE[name].of, SubsetSelection.of(Fraction(1), 5, 3), some_shares(5))


@pytest.mark.parametrize(("m", "d", "epsilon"), [(50, 2, 4), (500, 17, 4), (1247, 8, 6)])
def test_large_lists_are_unbiased(m: int, d: int, epsilon: int):
    check_unbiased(SetLaw.of, SubsetSelection.of(Fraction(epsilon), m, d), some_shares(m))


@pytest.mark.parametrize("name", best_faults.SET_ESTIMATE)
def test_wrong_estimate_is_rejected(name: str):
    with pytest.raises(AssertionError):
        check_unbiased(best_faults.SET_ESTIMATE[name].of, SubsetSelection.of(Fraction(1), 5, 3), some_shares(5))


@pytest.mark.parametrize("name", best_faults.SET_NOISE)
def test_wrong_variance_is_rejected(name: str):
    with pytest.raises(AssertionError):
        check_variance(best_faults.SET_NOISE[name].of, SubsetSelection.of(Fraction(1), 5, 3), some_shares(5))


@pytest.mark.parametrize(
    ("kind", "d", "epsilon"), [(SubsetSelection, 4, 1), (SubsetSelection, 1, 4), (PlainSubsetSelection, 3, 2)]
)
def test_simulated_estimates(kind: type, d: int, epsilon: int):
    """2,100 people, 30 items, 2,000 rounds of reports from the bulk simulation."""
    mechanism = kind.of(Fraction(epsilon), len(HOLDERS) - 1, d)
    check_simulated_estimates(SetLaw.of, mechanism, HOLDERS, 2000, seed=3)


# --- the blend -------------------------------------------------------------------------------------------------------

HEAD = HeadList({"a": ["1", "2"], "b": ["1"], "c": ["1", "2", "3"]})
TRUE = np.array([0.1, 0.05, 0.02, 0.08, 0.03, 0.06, 0.01, 0.005, 0.015])


def exact_reports(design: ReportDesign, params: BlenderParams, n: float) -> ReportCounts:
    """Reports as they are on average."""
    if design.mechanism == TWO_STAGE:
        rows = np.array([[float(p) for p in row] for row in channel_of(ReportProbabilities.exact(HEAD, params))])
        return ReportCounts(two_stage=n * (np.append(TRUE, 1 - TRUE.sum()) @ rows))  # type: ignore[arg-type]
    queries, cells = design.about_queries(HEAD, params), design.about_cells(HEAD, params)
    totals = np.add.reduceat(TRUE, HEAD.first_cells()[:-1])
    return ReportCounts(
        queries=queries and expected_counts(queries, totals, n * design.query_share),
        cells=cells and expected_counts(cells, TRUE, n * (1 - design.query_share)),
    )


@pytest.mark.parametrize(
    "design",
    [
        ReportDesign(10, 1, 2, SINK_SETS),
        ReportDesign(20, 2, 1, SINK_SETS),
        ReportDesign(0, 1, 1, SINK_SETS),
        ReportDesign(6, 1, 2, PLAIN_SETS),
        ReportDesign(0, 1, 1, TWO_STAGE),
    ],
    ids=str,
)
def test_exact_figures_blend_to_the_truth(design: ReportDesign):
    """Opt-in counts without noise and reports at their mean: every estimate is the truth, and the groups agree.

    So many opt-in users that the correction for having been listed, one user or so, is not seen.
    """
    params, n_optin, n_clients = BlenderParams(Budget(2, 1e-5)), 200_000_000, 400_000
    counted = CountedHeadList(HEAD, np.rint(TRUE * n_optin).astype(np.int64), n_optin, curator_design(params))
    reports = exact_reports(design, params, n_clients)
    result = estimate_best(HEAD, OptinCounts.of(counted), reports, design, params, n_clients)
    np.testing.assert_allclose(result.records.raw.probability[:-1], TRUE, atol=1e-6)
    np.testing.assert_allclose(result.client.queries.probability[:-1], [0.17, 0.11, 0.09], atol=1e-6)
    np.testing.assert_allclose(result.records.probability.sum(), 1)
    assert result.check.agrees
    assert not result.check.flagged
