"""What each source says about a query's cells."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from searchblend.blender.best.joint_least_squares import Layout, LinearData
from searchblend.blender.best.observations import (
    CellSets,
    OptinCounts,
    People,
    QuerySets,
    TwoStageReports,
    query_slices,
    selection_bias,
)
from searchblend.blender.best.set_law import SetLaw
from searchblend.blender.best.stability_histogram import CountedHeadList, curator_design
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.blender.pipeline import run_blender
from searchblend.blender.release import HeadFigures
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection
from searchblend.synthetic.seeded import SeededRandomness

HEAD = HeadList({"a": ["1", "2"], "b": ["1"]})
PARAMS = BlenderParams(Budget(2, 1e-5))
SHARES = np.array([0.05, 0.02, 0.01, 0.03, 0.004])


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
    params = replace(PARAMS, records_per_optin=1)
    release = run_blender(optin, optin, params, wide_list=True, randomness=SeededRandomness(1))
    shares = release.optin.records.probability[:2]
    expected = curator_design(PARAMS).threshold.noise.variance / 100**2 + shares * (1 - shares) / 100
    assert release.head.queries == head.queries
    assert release.optin.records.variance[:2] == pytest.approx(expected, rel=1e-6)


LAYOUT = Layout(HEAD)
PADDED = LAYOUT.padded(SHARES)
PEOPLE = People(1000, 9000)


def covariance_of(data: LinearData) -> np.ndarray:
    """Of all observations that there are, as one matrix."""
    asked = np.any(data.response != 0, axis=2)
    common = data.common[asked]
    matrix = common @ data.strength @ common.T
    numbers = np.cumsum(asked).reshape(asked.shape) - 1
    for query, row in enumerate(asked):
        here = numbers[query][row]
        matrix[np.ix_(here, here)] += data.covariance[query][np.ix_(row, row)]
    return matrix


@pytest.mark.parametrize("rho", [None, 0.3])
def test_optin_errors_are_those_of_counts_and_noise(rho: float | None):
    """ρ(diag c − ccᵀ)/n from who is in the group, v from the noise, and what all clips take together."""
    optin = replace(optin_of([60, 30, 12, 40, 5]), rho=rho)
    sampling = (rho or 1.0) / 1000 * (np.diag(SHARES) - np.outer(SHARES, SHARES))
    clips = np.array([0, 0, 1, 0, 1]) / 1000
    expected = sampling + np.diag(optin.noise_variance) + np.outer(clips, clips)
    np.testing.assert_allclose(covariance_of(optin.data(LAYOUT, PADDED, PEOPLE)), expected, rtol=1e-9)


def test_the_noise_of_a_removed_record_stays():
    """Its count is part of ⟨q,⋆⟩ from then on, and so is its noise."""
    kept = OptinCounts.of(CountedHeadList(HEAD, np.array([60, 30, 12, 40, 5]), 1000, curator_design(PARAMS)))
    figures = HeadFigures(HEAD, 1000, counts=np.array([60, 30, 12, 40, 5])).without([(0, 1)], PARAMS)
    assert figures.counts is not None
    counted = CountedHeadList(figures.head, figures.counts, 1000, curator_design(PARAMS))
    merged = OptinCounts.of(counted, figures.merged)
    assert figures.counts.tolist() == [60, 42, 40, 5]
    np.testing.assert_allclose(merged.noise_variance[1], kept.noise_variance[1] + kept.noise_variance[2])
    np.testing.assert_allclose(merged.noise_variance[[0, 2, 3]], kept.noise_variance[[0, 3, 4]])
    again = figures.without([(0, 0)], PARAMS)
    assert again.merged is not None
    assert again.merged.tolist() == [2, 0, 0]


@pytest.mark.parametrize(
    ("rho", "drawn", "between"), [(None, 1, None), (None, 20, None), (0.4, 20, (0.4 - 0.05) / 0.95), (0.01, 20, 0.0)]
)
def test_how_unlike_people_are_follows_from_what_a_few_records_of_each_vary(rho, drawn, between):
    params = BlenderParams(Budget(2, 1e-5), records_per_optin=drawn)
    optin = OptinCounts(SHARES, np.zeros(5), 1000, rho=rho)
    assert People.of(optin, params, 9000).between == (None if between is None else pytest.approx(between))


def test_what_is_known_of_the_people_is_subtracted():
    assert People(1000, 9000, 0.3).known == pytest.approx(0.3 / 10_000)
    assert People(1000, 9000).known == 0
    assert People(1000, 9000, None, 5).known == 0
    few = People(9000, 1000, None, 5)  # one in ten is a client, who sends five: at worst these five are one record
    assert few.known == pytest.approx(1 / 10_000 - 0.8 / 1000)


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


@pytest.mark.parametrize("kind", [SubsetSelection, PlainSubsetSelection])
@pytest.mark.parametrize(("m", "d"), [(1, 1), (5, 1), (5, 3), (4, 2)])
def test_the_extremes_are_those_of_all_reports(kind: type, m: int, d: int):
    mechanism = kind.of(Fraction(2), m, d)
    law, row = SetLaw.of(mechanism), np.array([[0.3, -0.2, 0.7, 0.1, -0.5][:m]])
    hit, miss, sink = law.one_report
    items = m + (kind is PlainSubsetSelection)
    sums = [
        sum((hit if i in chosen else miss) * row[0, i] for i in range(m)) for chosen in combinations(range(items), d)
    ]
    sums += [] if kind is PlainSubsetSelection else [sink * row.sum()]
    low, high = law.extremes(row, row)
    assert (low[0], high[0]) == (pytest.approx(min(sums)), pytest.approx(max(sums)))


def sets(people: People = PEOPLE) -> LinearData:
    law = SetLaw.of(SubsetSelection.of(Fraction(2), 5, 2))
    return CellSets(law, 5000, 2 * SHARES).data(LAYOUT, PADDED, people)


def test_query_sets_say_one_thing_about_a_query():
    law = SetLaw.of(SubsetSelection.of(Fraction(2), 2, 1))
    data = QuerySets(law, 5000, np.array([0.09, 0.03])).data(LAYOUT, PADDED, PEOPLE)
    totals = np.array([0.08, 0.034])
    assert (data.response[:, 0] == LAYOUT.present).all()
    assert data.observed[:, 0].tolist() == [0.09, 0.03]
    variance = np.diag(covariance_of(data))
    np.testing.assert_allclose(variance, (totals * (1 - totals) + law.noise(totals, totals.sum())) / 5000)


def test_cell_sets_say_one_thing_about_each_cell():
    data, law = sets(), SetLaw.of(SubsetSelection.of(Fraction(2), 5, 2))
    np.testing.assert_allclose(LAYOUT.flat(data.observed), 2 * SHARES)
    variance = np.diag(covariance_of(data))
    np.testing.assert_allclose(variance, (SHARES * (1 - SHARES) + law.noise(SHARES, SHARES.sum())) / 5000)


def test_several_reports_of_one_person_repeat_what_they_hold():
    """m reports of each: the records drawn are alike by ρ_b, the noise is not."""
    more = covariance_of(sets(replace(PEOPLE, between=0.5, reports_each=4))) - covariance_of(sets())
    np.testing.assert_allclose(more, 1.5 / 5000 * (np.diag(SHARES) - np.outer(SHARES, SHARES)), atol=1e-15)


def two_stages(people: People) -> LinearData:
    stages = ReportProbabilities.exact(HEAD, PARAMS)
    cells = np.append(SHARES, 1 - SHARES.sum())
    rows = [stages.channel_row(q, u) for q, width in enumerate(stages.n_urls) for u in range(width)]
    reported = cells @ np.array([[float(p) for p in row] for row in rows])
    return TwoStageReports(stages, 5000, reported[:-1]).data(LAYOUT, PADDED, people)


def test_two_stages_are_undone():
    """Fractions at their mean are the response to the shares; their counts are multinomial."""
    data = two_stages(PEOPLE)
    np.testing.assert_allclose(data.observed, (data.response @ PADDED[:, :, None])[:, :, 0], rtol=1e-9, atol=1e-15)
    expected = data.common[:, :, 0][LAYOUT.present]
    np.testing.assert_allclose(
        covariance_of(data), (np.diag(expected) - np.outer(expected, expected)) / 5000, atol=1e-15
    )


def test_several_two_stage_reports_of_one_person():
    more = covariance_of(two_stages(replace(PEOPLE, between=0.5, reports_each=3))) - covariance_of(two_stages(PEOPLE))
    response = np.zeros((5, 5))
    response[:3, :3], response[3:, 3:] = two_stages(PEOPLE).response[0], two_stages(PEOPLE).response[1][:2, :2]
    between = response @ (np.diag(SHARES) - np.outer(SHARES, SHARES)) @ response.T
    np.testing.assert_allclose(more, 2 * 0.5 / 5000 * between, atol=1e-15)
