"""The weights of naming as a second observation: what is gained, what varies with the users, what intervals hold."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from searchblend.blender.best.calibrate_weights import Calibrated, Observed, UserSums, calibrate
from searchblend.blender.best.joint_least_squares import Equations, Layout
from searchblend.blender.best.many_records import measure_head_list, measured_shares
from searchblend.blender.best.many_records_design import design_of
from searchblend.blender.best.observations import OptinCounts, People
from searchblend.blender.estimates import Floats
from searchblend.core.params import MANY_RECORDS, BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.synthetic.count_group import CountGroup, RecordModel
from searchblend.synthetic.metrics import Truth
from searchblend.synthetic.population import AOL, MEDIAN_SEARCHES
from searchblend.synthetic.seeded import SeededRandomness

ALIKE = UserSums(rho=1e-9, share_units=1, weight_units=1, divides_all=True)
"""Users so alike that nothing depends on who they are."""


def test_weights_that_follow_the_shares_help():
    chance = np.random.Generator(np.random.PCG64(5))
    true = 1000 / np.arange(1, 61)
    weights = Observed(3 * true + 5 * chance.standard_normal(60), np.full(60, 25.0))
    measured = Observed(true + 15 * chance.standard_normal(60), np.full(60, 225.0))
    better = calibrate(measured, weights, ALIKE)
    assert np.abs(better.value - true).sum() < 0.5 * np.abs(measured.value - true).sum()
    assert np.mean((better.value - true) ** 2 / better.variance) < 2


def test_weights_that_mean_something_else_are_not_believed():
    chance = np.random.Generator(np.random.PCG64(6))
    true = 1000 / np.arange(1, 61)
    weights = Observed(true * np.exp(chance.standard_normal(60)), np.full(60, 1.0))
    measured = Observed(true + 5 * chance.standard_normal(60), np.full(60, 25.0))
    better = calibrate(measured, weights, ALIKE)
    assert np.mean((better.value - true) ** 2 / better.variance) < 2
    assert np.abs(better.value - true).sum() < 1.3 * np.abs(measured.value - true).sum()


def test_nothing_measured_is_left_as_it_is():
    measured = Observed(np.array([-3.0, 1.0]), np.array([4.0, 4.0]))
    left = calibrate(measured, Observed(np.array([9.0, 9.0]), np.array([1.0, 1.0])), UserSums(0.4, 1, 1, True))
    assert isinstance(left, Calibrated)
    assert left.value.tolist() == [-3.0, 1.0]
    assert left.sampling.tolist() == left.shared.tolist() == [0.4, 0.4]


@pytest.mark.parametrize("share", [0.01, 0.001])
def test_weights_vary_less_with_the_users_than_shares_do(share: float):
    """R² and κ against the moments of 400,000 users who search little and much."""
    chance = np.random.Generator(np.random.PCG64(7))
    searches = np.maximum(np.exp(2.2 + 1.3 * chance.standard_normal(400_000)), 1).astype(np.int64)
    own = chance.binomial(searches, share)
    different = np.minimum(searches - np.maximum(own - 1, 0), MANY_RECORDS)
    weight, s = np.where(own > 0, different**-0.5, 0.0), own / searches
    c, omega = float(s.mean()), float(weight.mean())
    users = UserSums(float((s**2).mean()) / c, 1, 1, divides_all=True)
    of_weights = users.of_weights(np.array([c]), np.array([omega]), 1.0)
    exact = (c / omega) ** 2 * float((weight**2).mean()) / c
    assert of_weights[0] == pytest.approx(exact, rel=0.25)
    assert users.together(of_weights, 1.0)[0] == pytest.approx(c / omega * float((s * weight).mean()) / c, rel=0.15)
    assert of_weights[0] < 0.5 * users.rho  # as much as for the shares would be far off


def test_weights_that_are_divided_among_some_records_have_a_bound():
    users = UserSums(0.5, 1, 1, divides_all=False)
    assert users.of_weights(np.array([0.02]), np.array([0.2]), 1.0)[0] == pytest.approx(0.1)
    assert users.of_weights(np.array([0.2]), np.array([0.2]), 1.0)[0] == 0.5  # at most as for shares


PARAMS = BlenderParams(Budget(4, 1e-5), max_head_queries=2000, records_per_optin=MANY_RECORDS)


@cache
def model() -> RecordModel:
    return RecordModel.of_profile(AOL)


def law_of(head: HeadList) -> Floats:
    """The shares of the queries in the law that people are drawn from."""
    parts, chance = 10**15, np.random.Generator(np.random.PCG64(1))
    law = CountGroup(model().universe, np.rint(model().shares * parts).astype(np.int64), parts, chance)
    return Truth.of(head, law.cell_counts(head)).queries[:-1]


def optin_gaps(optin: OptinCounts, head: HeadList) -> Floats:
    """Errors of the opt-in users' estimates of the queries, in their standard deviations."""
    layout = Layout(head)
    shares = layout.padded(optin.shares)
    alone = Equations(layout, [optin.data(layout, shares, People(optin.n_users, 1.0))], np.zeros_like(shares)).solve()
    gaps: Floats = (alone.totals - law_of(head)) / np.sqrt(alone.total_variance)
    return gaps


@pytest.mark.thorough
def test_intervals_are_as_wide_as_errors_are():
    """Mean squares of standardized errors: of about 680, 1 ± .06 if variances are right, .42 with ρ for all of them; of
    the most frequent, 1 ± .22."""
    right, wide, head = [], [], []
    for seed in range(3):
        users = model().searchers(25_000, MEDIAN_SEARCHES, np.random.Generator(np.random.PCG64([3, seed])))
        measured = measure_head_list(users, PARAMS, design_of(PARAMS), randomness=SeededRandomness(seed))
        optin = OptinCounts.of_shares(measured_shares(measured), measured.n_users)
        right.append(optin_gaps(optin, measured.head))
        wide.append(optin_gaps(replace(optin, sampling_factor=None, total_sampling_factor=None), measured.head))
        head.append(right[-1][np.argsort(-law_of(measured.head))[:14]])
    assert 0.65 < np.mean(np.concatenate(right) ** 2) < 1.35
    assert 0.35 < np.mean(np.concatenate(head) ** 2) < 2.2
    assert np.mean(np.concatenate(wide) ** 2) < 0.6


def test_the_totals_sampling_is_their_own():
    """Σ over a query's cells is f_q c/n whatever the cells' own factors are, but for what all queries share."""
    head = HeadList([("a", ["u", "v"]), ("b", [])])
    layout, shares = Layout(head), np.array([0.05, 0.02, 0.01, 0.03])
    optin = OptinCounts(
        shares,
        np.zeros(4),
        1000,
        rho=0.4,
        sampling_factor=np.array([0.3, 0.3, 0.2, 0.1]),
        total_sampling_factor=np.array([0.15, 0.15, 0.15, 0.1]),
    )
    data = optin.data(layout, layout.padded(shares), People(1000, 9000))
    within = np.where(layout.present[:, :, None] & layout.present[:, None, :], data.covariance, 0.0)
    np.testing.assert_allclose(within.sum(axis=(1, 2)), np.array([0.15 * 0.08, 0.1 * 0.03]) / 1000)


@pytest.mark.thorough
def test_people_who_are_counted_by_weights_alone_are_less_of_the_truth():
    """Var(ĉ − p̄) of a mean that follows p̄ with g = .1 only, ρ being .4: drawn again and again."""
    chance, n, others = np.random.Generator(np.random.PCG64(8)), 400, 600
    own = chance.standard_normal((20_000, n + others)) * math.sqrt(0.4)
    predicted = 0.25 * own[:, :n] + chance.standard_normal((20_000, n)) * 0.1
    error = predicted.mean(axis=1) - own.mean(axis=1)
    variance = (0.25**2 * 0.4 + 0.01) / n
    stated = variance - (0.4 - 2 * (0.4 - 0.1)) / (n + others)
    tiny = 1e-6  # a rare query: 1 − c is 1
    by_code = People(n, others, 0.4).against(np.array([variance * tiny]), np.array([tiny]), np.array([0.3]))
    assert by_code[0] / tiny == pytest.approx(stated, rel=1e-5)
    assert float(error.var()) == pytest.approx(stated, rel=0.06)
