"""Counts selected by their own noise: bias, correction and intervals, against the enumerated law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from searchblend.clickgraph.release.noise_law import NoiseLaw
from searchblend.clickgraph.release.reused_noise import ReusedNoise
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian

LAWS = [(DiscreteLaplace(Fraction(1, 3)), 20), (RoundedGaussian(Fraction(4)), 20), (DiscreteLaplace(Fraction(64)), 2)]
laws = pytest.mark.parametrize(("noise", "threshold"), LAWS, ids=["laplace", "gaussian", "hardly any noise"])


def conditional(noise, threshold: int, count: int) -> dict[int, float]:
    """The law of a published count, by enumeration."""
    law = {count + y: float(p) for y, p in noise.sampled_probabilities().items() if count + y >= threshold}
    total = sum(law.values())
    return {value: p / total for value, p in law.items()}


@laws
def test_mean_of_published_counts(noise, threshold):
    counts = [n for n in range(1, 3 * threshold) if n >= threshold - noise.reach // 3]
    means = ReusedNoise(noise, threshold).mean(np.array(counts))
    for count, mean in zip(counts, means, strict=True):
        law = conditional(noise, threshold, count)
        assert mean == pytest.approx(sum(value * p for value, p in law.items()), rel=1e-6)


def test_far_above_the_threshold_nothing_is_corrected():
    for noise, threshold in LAWS:
        far = np.array([10_000, 123_456])
        reused = ReusedNoise(noise, threshold)
        assert reused.mean(far).tolist() == pytest.approx(far.tolist())
        assert reused.debiased(far).tolist() == pytest.approx(far.tolist())


def expected_published(count: float, threshold: float, noise_scale: float) -> float:
    """E[M + Lap(b) | M + Lap(b) > K], the paper's real numbers."""
    above = count - threshold
    if above <= 0:
        return threshold + noise_scale
    x = math.exp(-above / noise_scale)
    return count + (noise_scale + above) * x / (2 - x)


def test_bias_of_reused_noise():
    for count, bias in {120: 28.7, 140: 8.7, 150: 3.5, 170: 0.6}.items():
        assert expected_published(count, 140, 8.686) - count == pytest.approx(bias, abs=0.05)


def test_wide_noise_has_the_papers_bias():
    """The integer law approaches the continuous one, half a step to the side."""
    b, threshold = 40.0, 600
    reused = ReusedNoise(DiscreteLaplace(Fraction(1, 40)), threshold)
    for count in (500, 600, 640, 700):
        expected = expected_published(count, threshold - 0.5, b)
        assert reused.mean(np.array([count]))[0] == pytest.approx(expected, abs=0.1)


@laws
def test_correction_inverts_the_mean(noise, threshold):
    reused = ReusedNoise(noise, threshold)
    counts = np.arange(threshold, threshold + 30)
    means = reused.mean(counts)
    corrected = reused.debiased(np.rint(means).astype(np.int64))
    assert np.abs(corrected - counts).max() <= 2
    assert (np.diff(reused.debiased(np.arange(threshold, threshold + 60))) >= 0).all()


def test_a_count_at_the_threshold_may_be_anything_below():
    """Memoryless noise: all counts below the threshold look alike once published. Never less than one person."""
    noise, threshold = LAWS[0]
    reused = ReusedNoise(noise, threshold)
    assert reused.debiased(np.array([threshold]))[0] == threshold
    assert reused.interval(np.array([threshold]))[0].tolist() == [1]


@laws
def test_intervals_cover_95_percent_given_publication(noise, threshold):
    reused = ReusedNoise(noise, threshold)
    for count in range(1, threshold + 20):
        law = conditional(noise, threshold, count) if noise.at_least(threshold - count) > 1e-12 else {}
        values = np.array(sorted(law), dtype=np.int64)
        if not len(values):
            continue
        low, high = reused.interval(values)
        covered = sum(law[v] for v, lo, hi in zip(values.tolist(), low, high, strict=True) if lo <= count <= hi)
        assert covered >= 0.95 - 1e-9
        assert (low >= 1).all()
        assert (low <= high).all()


def half_width(noise):
    law = "discrete_laplace" if isinstance(noise, DiscreteLaplace) else "rounded_gaussian"
    return NoiseLaw(law, noise.scale).half_width()


def test_naive_intervals_would_not():
    """What fresh noise would have covers half of what it promises near the threshold."""
    noise, threshold = LAWS[1]
    half = half_width(noise)
    law = conditional(noise, threshold, 8)
    assert sum(p for value, p in law.items() if abs(value - 8) <= half) < 0.5


@pytest.mark.parametrize("noise", [noise for noise, _ in LAWS])
def test_half_width_of_fresh_noise(noise):
    half = half_width(noise)
    law = noise.sampled_probabilities()
    inside = float(sum(p for y, p in law.items() if abs(y) <= half))
    assert inside >= 0.95
    assert half == 0 or float(sum(p for y, p in law.items() if abs(y) < half)) < 0.95
