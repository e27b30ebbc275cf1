"""The sampler of rounded Gaussian noise against its law, and draws that only have to reach a floor. 1e-6 each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from searchblend.core.randomness import SystemRandomness
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian, on_sigma_grid
from searchblend_lab.evidence.laws import faults
from searchblend_lab.evidence.laws.click_graph import check_law
from searchblend_lab.evidence.laws.sampler import check_symmetry

N = 200_000
SIGMAS = [Fraction(1, 2), Fraction(1), Fraction(1801, 1024), Fraction(63, 8), Fraction(100)]
sigmas = pytest.mark.parametrize("sigma", SIGMAS, ids=lambda sigma: f"σ={float(sigma):g}")


def law(sigma: Fraction, floor: int | None = None) -> dict[int, float]:
    reach = int(12 * sigma) + 2
    values = range(-reach if floor is None else floor, reach + 1)
    masses = {y: norm.sf((abs(y) - 0.5) / float(sigma)) - norm.sf((abs(y) + 0.5) / float(sigma)) for y in values}
    return {y: p for y, p in masses.items() if p > 0}


def draws(sigma: Fraction, n: int = N) -> np.ndarray:
    return RoundedGaussian(sigma).sample(n, SystemRandomness())


def check(sample: np.ndarray, sigma: Fraction) -> None:
    check_law(sample.tolist(), law(sigma))
    check_symmetry(sample)


@sigmas
def test_fit_and_symmetry(sigma):
    check(draws(sigma), sigma)


@sigmas
@pytest.mark.parametrize("factor", [0.9, 1.1, 0.7071])
def test_a_wrong_scale_is_rejected(sigma, factor):
    with pytest.raises(AssertionError):
        check(draws(on_sigma_grid(float(sigma) * factor)), sigma)


@sigmas
@pytest.mark.parametrize("name", faults.SAMPLE)
def test_a_wrong_sample_is_rejected(sigma, name):
    with pytest.raises(AssertionError):
        check(faults.SAMPLE[name](draws(sigma, 2 * N)), sigma)


def test_noise_rounded_down_is_rejected():
    sample = np.floor(np.random.default_rng(1).normal(0, 2, N)).astype(np.int64)
    with pytest.raises(AssertionError):
        check(sample, Fraction(2))


# of many draws those that reach a floor


def check_reaching(values: np.ndarray, positions: np.ndarray, tail: float, given: dict[int, float], n: int) -> None:
    """As many as the tail says, at positions spread evenly, with the law given that they reach it."""
    passed, missed = len(values), n - len(values)
    check_law([1] * passed + [0] * missed, {1: tail, 0: 1 - tail})
    check_law(values.tolist(), given)
    check_law((positions * 8 // n).tolist(), dict.fromkeys(range(8), 1 / 8))


FLOORS = [-3, 0, 1, 3, 5, 6]


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("noise", [RoundedGaussian(Fraction(5, 2)), DiscreteLaplace(Fraction(2, 3))], ids=["g", "l"])
def test_draws_that_reach_a_floor(noise, floor):
    n = 2_000_000
    positions, values = noise.reaching(floor, n, SystemRandomness())
    exact = {y: float(p) for y, p in noise.sampled_probabilities().items() if y >= floor}
    check_reaching(values, positions, sum(exact.values()), exact, n)


@pytest.mark.parametrize("floor", [3, 6])
def test_a_floor_one_off_is_rejected(floor):
    noise, n = RoundedGaussian(Fraction(5, 2)), 2_000_000
    exact = {y: float(p) for y, p in noise.sampled_probabilities().items() if y >= floor}
    for wrong in (floor - 1, floor + 1):
        positions, values = noise.reaching(wrong, n, SystemRandomness())
        with pytest.raises(AssertionError):
            check_reaching(values, positions, sum(exact.values()), exact, n)


def test_a_floor_beyond_the_table_is_never_reached():
    noise = RoundedGaussian(Fraction(1))
    positions, values = noise.reaching(noise.reach + 1, 100_000, SystemRandomness())
    assert len(positions) == len(values) == 0
    assert len(noise.reaching(-noise.reach, 1000, SystemRandomness())[0]) == 1000
