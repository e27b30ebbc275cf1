"""What each source says about a query's cells."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from searchblend.blender.best.observations import (
    CellSets,
    OptinCounts,
    QuerySets,
    SetLaw,
    TwoStageReports,
    query_slices,
    selection_bias,
)
from searchblend.blender.best.stability_histogram import CountedHeadList, curator_design
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.blender.pipeline import run_blender
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection
from searchblend.synthetic.seeded import SeededRandomness

HEAD = HeadList({"a": ["1", "2"], "b": ["1"]})
PARAMS = BlenderParams(Budget(2, 1e-5))
SHARES = np.array([0.05, 0.02, 0.01, 0.03, 0.004])
A, B = query_slices(HEAD)


def test_slices():
    assert query_slices(HEAD) == [slice(0, 3), slice(3, 5)]


def optin_of(counts: list[int], head: HeadList = HEAD, params: BlenderParams = PARAMS, n: int = 1000) -> OptinCounts:
    return OptinCounts.of(CountedHeadList(head, np.array(counts), n, curator_design(params)))


def test_optin_noise_by_cell():
    """Listed records have the threshold's noise, ⟨q,⋆⟩ the residual's."""
    design = curator_design(PARAMS)
    record, rest = design.threshold.noise.variance / 1e6, design.residual_noise.variance / 1e6
    optin = optin_of([60, 30, 12, 40, 5])
    assert optin.noise_variance.tolist() == pytest.approx([record, record, rest, record, rest])
    assert optin.observed[[2, 4]].tolist() == [0.012, 0.005]


def test_listed_counts_are_corrected_for_having_been_listed():
    """About a user less, and more where the noise is large against the count; never ⟨q,⋆⟩."""
    optin = optin_of([60, 30, 12, 40, 5])
    fewer = np.array([60, 30, 40]) - 1000 * optin.observed[[0, 1, 3]]
    assert (fewer > 0).all()
    assert (fewer < 2).all()
    assert fewer[1] > fewer[0]


def test_selection_bias_is_about_one_user_and_what_the_noise_adds():
    assert selection_bias(np.array([50.0]), np.zeros(1))[0] == pytest.approx(1)
    assert selection_bias(np.array([50.0]), np.array([100.0]))[0] == pytest.approx(3)


def test_without_urls_every_query_was_listed_by_its_count():
    head = HeadList({"a": [], "b": []})
    optin = optin_of([60, 40], head)
    assert optin.noise_variance == pytest.approx(curator_design(PARAMS).threshold.noise.variance / 1e6)


def test_a_wide_list_of_a_log_without_urls_has_no_residuals():
    """Its counts have the threshold's noise, as without the wide list."""
    head = HeadList({"a": [], "b": []})
    optin = InMemoryGroup.from_users([[Record("a")]] * 60 + [[Record("b")]] * 40)
    release = run_blender(optin, optin, PARAMS, wide_list=True, randomness=SeededRandomness(1))
    expected = curator_design(PARAMS).threshold.noise.variance / 100**2 + release.optin.records.probability[:2] / 100
    assert release.head.queries == head.queries
    assert release.optin.records.variance[:2] == pytest.approx(expected, rel=1e-6)


def test_optin_information_is_one_over_variance():
    optin = optin_of([60, 30, 12, 40, 5])
    matrix, vector = optin.information(A, SHARES)
    np.testing.assert_allclose(np.diag(matrix), 1 / (SHARES[A] / 1000 + optin.noise_variance[A]))
    np.testing.assert_allclose(vector, np.diag(matrix) * optin.observed[A])
    assert np.count_nonzero(matrix - np.diag(np.diag(matrix))) == 0


def test_a_tilt_is_one_more_direction_of_variance():
    """(D + τ²ππᵀ)⁻¹ by Sherman and Morrison."""
    optin = optin_of([60, 30, 12, 40, 5])
    tilted = OptinCounts(optin.observed, optin.noise_variance, optin.n_users, tilt=0.09)
    covariance = np.diag(optin.variance(A, SHARES)) + 0.09 * np.outer(SHARES[A], SHARES[A])
    matrix, vector = tilted.information(A, SHARES)
    np.testing.assert_allclose(matrix, np.linalg.inv(covariance), rtol=1e-9)
    np.testing.assert_allclose(vector, matrix @ optin.observed[A])


@pytest.mark.parametrize(("m", "d", "epsilon"), [(50, 2, 4.0), (16, 5, 1.0), (1, 1, 2.0)])
def test_set_law(m: int, d: int, epsilon: float):
    """p, q, q_w and the sinks of the recipe."""
    law = SetLaw.of(SubsetSelection.of(Fraction(epsilon), m, d))
    growth, ratio = math.exp(epsilon), d / m
    rest = 1 / (1 + ratio * growth)
    assert law.own == law.sink_of_star == pytest.approx(ratio * growth * rest)
    assert law.star == pytest.approx(ratio * rest)
    assert law.sink_of_holder == pytest.approx(ratio * rest)
    other = rest * ratio * (growth * (d - 1) + m - d) / (m - 1) if m > 1 else 0
    assert law.other == pytest.approx(other)


def test_noise_of_rare_items_does_not_depend_on_the_list():
    """(1 + φE)/(φ(1−φ)(E−1)²) for a rare item among holders of ⋆, whatever m: 0.0249 at ε = 4, φ = φ*."""
    growth = math.exp(4)
    best = (math.sqrt(1 + growth) - 1) / growth
    for m in (500, 5000):
        d = round(best * m)
        ratio = d / m
        noise = SetLaw.of(SubsetSelection.of(Fraction(4), m, d)).noise(np.array([0.0]), 0.0)[0]
        limit = (1 + ratio * growth) / (ratio * (1 - ratio) * (growth - 1) ** 2)
        assert noise == pytest.approx(limit, rel=0.02)
        assert noise == pytest.approx(0.0249, rel=0.02)


def test_plain_sets_have_no_sink():
    law = SetLaw.of(PlainSubsetSelection.of(Fraction(2), 9, 3))
    assert law.sink_of_holder == law.sink_of_star == 0
    assert law.other == law.star


def test_influence_is_the_most_that_one_report_moves():
    law = SetLaw.of(SubsetSelection.of(Fraction(2), 9, 3))
    kappa = (law.other - law.star) / (law.sink_of_star - law.sink_of_holder)
    assert law.influence == pytest.approx((max(1.0, kappa) - min(0.0, kappa)) / (law.own - law.other))


def test_query_sets_say_one_thing_about_a_query():
    law = SetLaw.of(SubsetSelection.of(Fraction(2), 2, 1))
    source = QuerySets(law, 5000, np.array([0.09, 0.03]), np.array(HEAD.query_of_cells()))
    matrix, vector = source.information(A, SHARES)
    noise = law.noise(np.array([0.08]), SHARES.sum())[0]
    np.testing.assert_allclose(matrix, np.full((3, 3), 5000 / (0.08 + noise)))
    np.testing.assert_allclose(vector, matrix[0, 0] * 0.09)
    assert source.information(B, SHARES)[1][0] / source.information(B, SHARES)[0][0, 0] == pytest.approx(0.03)


def test_cell_sets_say_one_thing_about_each_cell():
    law = SetLaw.of(SubsetSelection.of(Fraction(2), 5, 2))
    source = CellSets(law, 5000, 2 * SHARES)
    matrix, vector = source.information(B, SHARES)
    np.testing.assert_allclose(np.diag(matrix), 5000 / (SHARES[B] + law.noise(SHARES[B], SHARES.sum())))
    np.testing.assert_allclose(vector, np.diag(matrix) * 2 * SHARES[B])


def test_two_stages_are_undone():
    """Fractions at their mean: J c = b for every query, so least squares gives back c."""
    stages = ReportProbabilities.exact(HEAD, PARAMS)
    cells = np.append(SHARES, 1 - SHARES.sum())
    rows = [stages.channel_row(q, u) for q, width in enumerate(stages.n_urls) for u in range(width)]
    reported = cells @ np.array([[float(p) for p in row] for row in rows])
    source = TwoStageReports(stages, 5000, reported, np.array(HEAD.query_of_cells()))
    for query in (A, B):
        matrix, vector = source.information(query, SHARES)
        np.testing.assert_allclose(np.linalg.solve(matrix, vector), SHARES[query], rtol=1e-9)
