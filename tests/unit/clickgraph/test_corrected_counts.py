"""Counts corrected for selection: the mean of N given what was published, and what is gained by it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from searchblend.clickgraph.release.reused_noise import USUAL_EXPONENT, ReusedNoise, corrected_counts, fitted_exponent
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian
from searchblend.synthetic.seeded import SeededRandomness

NOISES = [(RoundedGaussian(Fraction(8)), 40), (DiscreteLaplace(Fraction(1, 5)), 60)]
noises = pytest.mark.parametrize(("noise", "threshold"), NOISES, ids=["gaussian", "laplace"])


@noises
def test_mean_of_the_count_given_the_noisy_one(noise, threshold):
    """Few published counts: the usual exponent, by a sum over all N."""
    law = noise.sampled_probabilities()
    published = np.array([threshold, threshold + 3, 10 * threshold])
    for value, corrected in zip(published.tolist(), corrected_counts(published, noise, threshold), strict=True):
        weights = {n: float(law.get(value - n, 0)) * n**-USUAL_EXPONENT for n in range(1, value + noise.reach)}
        expected = sum(n * w for n, w in weights.items()) / sum(weights.values())
        assert corrected == pytest.approx(expected, rel=1e-6)


def power_law(exponent: float, least: float, size: int, seed: int) -> np.ndarray:
    uniform = np.random.default_rng(seed).random(size)
    return np.floor(least * (1 - uniform) ** (-1 / (exponent - 1))).astype(np.int64)


def test_the_exponent_is_found():
    for exponent in (1.7, 2.0, 2.6):
        counts = power_law(exponent, 100, 40_000, seed=3)
        assert fitted_exponent(counts, 100) == pytest.approx(exponent, rel=0.03)
    assert fitted_exponent(np.array([50, 60]), 40) == USUAL_EXPONENT
    assert fitted_exponent(np.full(100, 40), 40) == 4.0


def published(noise, threshold: int, exponent: float) -> tuple[np.ndarray, np.ndarray]:
    """True counts from 1 on, and the noisy ones, where these reach the threshold."""
    true = np.minimum(np.random.default_rng(7).zipf(exponent, 1_000_000), 10**9)
    noisy = true + noise.sample(len(true), SeededRandomness(8))
    passed = noisy >= threshold
    return true[passed], noisy[passed]


def check_gain(estimate: np.ndarray, true: np.ndarray, noisy: np.ndarray, near: np.ndarray, sigma: float) -> None:
    """Near the threshold and all over: no bias worth speaking of, and no larger error than the noisy counts have."""
    for part in (near, np.ones(len(true), dtype=bool)):
        error, noise = (estimate - true)[part], (noisy - true)[part]
        assert abs(error.mean()) <= 0.04 * sigma + 5 * error.std() / math.sqrt(part.sum())
        assert np.square(error).mean() <= np.square(noise).mean()


@noises
@pytest.mark.parametrize("exponent", [2.0, 2.5])
def test_bias_is_gone_and_the_error_is_smaller(noise, threshold, exponent):
    true, noisy = published(noise, threshold, exponent)
    sigma = math.sqrt(noise.variance)
    near = noisy < threshold + sigma
    check_gain(corrected_counts(noisy, noise, threshold), true, noisy, near, sigma)
    assert (noisy - true)[near].mean() > 0.25 * sigma


@noises
def test_noisy_counts_themselves_are_rejected(noise, threshold):
    true, noisy = published(noise, threshold, 2.5)
    sigma = math.sqrt(noise.variance)
    with pytest.raises(AssertionError):
        check_gain(noisy, true, noisy, noisy < threshold + sigma, sigma)


def test_inverting_the_mean_given_publication_is_rejected():
    """Next to the threshold that mean hardly depends on N: its inverse is twice as far off as the noisy count."""
    noise, threshold = NOISES[0]
    true, noisy = published(noise, threshold, 2.5)
    near = noisy < threshold + 8
    inverse = ReusedNoise(noise, threshold).debiased(noisy)
    with pytest.raises(AssertionError):
        check_gain(inverse, true, noisy, near, 8.0)
    assert np.square(inverse - true)[near].mean() > 4 * np.square(noisy - true)[near].mean()


@noises
def test_large_counts_are_hardly_moved(noise, threshold):
    far = np.array([100_000, 2_000_000])
    assert np.abs(corrected_counts(far, noise, threshold) - far).max() < 0.01


def test_nothing_published_nothing_corrected():
    assert len(corrected_counts(np.array([], dtype=np.int64), *NOISES[0])) == 0
