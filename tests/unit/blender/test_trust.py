"""How far both groups' figures may be used together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from searchblend.blender.best.trust import DOUBTED, NO_TILT, TILTS, Gaps, doubt, log_likelihood, prior, trust

SHARES = np.array([0.02, 0.005, 0.001, 0.0])
NOISE, SAMPLING = np.full(4, 4e-8), 4e-5
ALL = np.ones(4, dtype=np.bool_)


def gaps(client: np.ndarray) -> Gaps:
    return Gaps(SHARES, client, NOISE, SAMPLING)


@pytest.mark.parametrize("tilt", [0.0, 1e-3, 0.1, 0.6, 1.2])
def test_z_is_the_integral_of_one_over_the_standard_deviation(tilt: float):
    client = np.array([0.03, 0.001, -0.002, 0.004])
    z, slope = gaps(client).standardized(tilt)

    def density(share: float) -> float:
        at = max(share, 0.0)
        return float((4e-8 + SAMPLING * at + (tilt * at) ** 2) ** -0.5)

    for i in range(4):
        assert z[i] == pytest.approx(quad(density, SHARES[i], client[i], points=[0.0])[0], rel=1e-5, abs=1e-6)
        assert slope[i] == pytest.approx(np.log(density(client[i])))


def test_the_prior_is_a_distribution_that_mostly_expects_no_difference():
    assert prior().sum() == pytest.approx(1)
    assert prior()[0] > NO_TILT
    assert (np.diff(TILTS) > 0).all()


def test_the_likelihood_is_a_density():
    total = quad(lambda z: float(np.exp(log_likelihood(np.array([z]))[0])), -np.inf, np.inf, limit=200)[0]
    assert total == pytest.approx(1, abs=1e-6)
    assert np.isfinite(log_likelihood(np.array([1e150]))).all()


def test_doubt_rises_with_what_clients_put_higher_and_never_comes_of_less():
    assert doubt(np.array([-8.0, -1.0, 0.0])).tolist() == [0.0, 0.0, 0.0]
    assert doubt(np.array([1.0]))[0] < DOUBTED
    assert doubt(np.array([8.0]))[0] > 0.999
    assert (np.diff(doubt(np.linspace(0, 8, 400))) > 0).all()  # what the bound of the influence rests on
    assert (np.diff(log_likelihood(np.linspace(0, 30, 500))) < 0).all()
    assert (np.diff(log_likelihood(np.linspace(-30, 0, 500))) > 0).all()


def test_one_figure_that_clients_put_lower_hardly_tilts_the_others():
    shares = np.tile(SHARES[:3], 5)
    client, all_of_them = shares.copy(), np.ones(15, dtype=np.bool_)
    client[1] -= 0.009
    result = trust(Gaps(shares, client, np.full(15, 4e-8), SAMPLING), all_of_them)
    assert result.divergence < 0.1
    assert result.alarms(all_of_them) == ()


def test_equal_figures_leave_no_tilt():
    result = trust(gaps(SHARES), ALL)
    assert result.weights[0] > NO_TILT
    assert result.alarms(ALL) == ()


def test_figures_that_all_differ_are_a_tilt_and_no_alarm():
    generator = np.random.Generator(np.random.PCG64(3))
    shares = np.exp(generator.uniform(np.log(0.001), np.log(0.02), 40))
    client = shares * np.exp(0.5 * generator.standard_normal(40))
    all_of_them = np.ones(40, dtype=np.bool_)
    result = trust(Gaps(shares, client, np.full(40, 1e-9), 1e-6), all_of_them)
    assert result.divergence == pytest.approx(0.5, abs=0.15)
    assert result.alarms(all_of_them) == ()


def test_one_figure_that_differs_is_an_alarm_and_no_tilt():
    shares = np.tile(SHARES[:3], 5)
    client, all_of_them = shares.copy(), np.ones(15, dtype=np.bool_)
    client[1] += 0.01
    result = trust(Gaps(shares, client, np.full(15, 4e-8), SAMPLING), all_of_them)
    assert result.alarms(all_of_them) == (1,)
    assert result.divergence < 0.05
    doubts = result.weights @ result.doubts
    assert doubts[1] > 0.99
    assert np.delete(doubts, 1).max() < 0.01


def test_no_alarm_where_the_clients_are_lower_or_nothing_can_be_tested():
    client = SHARES.copy()
    client[0] -= 0.015
    assert trust(gaps(client), ALL).alarms(ALL) == ()
    assert trust(gaps(client[::-1]), ~ALL).alarms(~ALL) == ()
