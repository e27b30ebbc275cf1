"""The weights of naming as a second observation: what is gained, what varies with the users, what intervals hold."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from searchblend.blender.best.calibrate_weights import Calibrated, Observed, UserSums, calibrate
from searchblend.blender.best.many_records import MeasuredHeadList, measure_head_list, measured_shares
from searchblend.blender.best.many_records_design import design_of
from searchblend.blender.estimates import Floats
from searchblend.core.params import MANY_RECORDS, BlenderParams
from searchblend.core.privacy import Budget
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
    assert users.together(of_weights)[0] == pytest.approx(c / omega * float((s * weight).mean()) / c, rel=0.15)
    assert of_weights[0] < 0.5 * users.rho  # as much as for the shares would be far off


def test_weights_that_are_divided_among_some_records_have_a_bound():
    users = UserSums(0.5, 1, 1, divides_all=False)
    assert users.of_weights(np.array([0.02]), np.array([0.2]), 1.0)[0] == pytest.approx(0.1)
    assert users.of_weights(np.array([0.2]), np.array([0.2]), 1.0)[0] == 0.5  # at most as for shares


PARAMS = BlenderParams(Budget(4, 1e-5), max_head_queries=2000, records_per_optin=MANY_RECORDS)


@cache
def model() -> RecordModel:
    return RecordModel.of_profile(AOL)


def _gaps(measured: MeasuredHeadList, *, of_everybody: bool) -> Floats:
    """Errors of the queries' shares against the law that people are drawn from, in standard deviations."""
    shares, head, n = measured_shares(measured), measured.head, measured.n_users
    first = head.first_cells()[:-1]
    parts, chance = 10**15, np.random.Generator(np.random.PCG64(1))
    law = CountGroup(model().universe, np.rint(model().shares * parts).astype(np.int64), parts, chance)
    truth = Truth.of(head, law.cell_counts(head)).queries[:-1]
    totals = np.add.reduceat(shares.cells.value, first)
    assert shares.rho is not None
    last = np.array(head.first_cells()[1:]) - 1
    factor = shares.rho if of_everybody else shares.cells.sampling[last]
    gaps: Floats = (totals - truth) / np.sqrt(shares.total_variance[first] + factor * truth / n)
    return gaps


def test_intervals_are_as_wide_as_errors_are():
    """Mean square of about 450 standardized errors: 1 ± .07 if variances are right, .42 with ρ for all of them."""
    lists = [
        measure_head_list(
            model().searchers(25_000, MEDIAN_SEARCHES, np.random.Generator(np.random.PCG64([3, seed]))),
            PARAMS,
            design_of(PARAMS),
            randomness=SeededRandomness(seed),
        )
        for seed in range(2)
    ]
    right, wide = (np.concatenate([_gaps(each, of_everybody=rho) for each in lists]) for rho in (False, True))
    assert 0.65 < np.mean(right**2) < 1.35
    assert np.mean(wide**2) < 0.6
