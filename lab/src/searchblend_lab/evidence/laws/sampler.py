"""Does a sampler draw discrete Laplace noise of a given scale? Tests of 1e-6 each, and an exact distance."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.stats import binomtest, chi2

from searchblend.mechanisms.discrete_laplace import DiscreteLaplace

FALSE_ALARM = 1e-6
"""of each test"""
_MIN_EXPECTED = 20


def ideal_law(noise: DiscreteLaplace, reach: int) -> np.ndarray:
    """P(Y = y) for y = −reach..reach from the formula, in floating point."""
    a = np.exp(-float(noise.rate))
    law: np.ndarray = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1))
    return law


def check_fit(sample: np.ndarray, noise: DiscreteLaplace) -> None:
    """χ² over all values that are expected at least 20 times, the two tails pooled."""
    reach = int(np.log(len(sample)) / float(noise.rate)) + 2
    expected = len(sample) * ideal_law(noise, reach)
    inner = max(int((expected >= _MIN_EXPECTED).sum()) // 2, 1)
    clipped = np.clip(sample, -inner, inner)
    observed = np.bincount(clipped + inner, minlength=2 * inner + 1)
    tail = noise.at_least(inner)
    expected = len(sample) * np.array([tail, *ideal_law(noise, inner - 1), tail])
    check_counts(observed, expected)


def check_counts(observed: np.ndarray, expected: np.ndarray, lost: int = 1) -> None:
    """Pearson's χ²; what is never expected must never be seen. ``lost`` sums of counts are fixed beforehand."""
    possible = expected > 0
    assert not observed[~possible].any()
    statistic = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
    assert chi2.sf(statistic, possible.sum() - lost) >= FALSE_ALARM


def check_pairs(sample: np.ndarray, agreeing: float) -> None:
    """Draws in a row, in pairs that do not overlap, agree as often as independent ones: exact binomial test."""
    first, second = sample[: len(sample) // 2 * 2 : 2], sample[1::2]
    assert binomtest(int((first == second).sum()), len(first), agreeing).pvalue >= FALSE_ALARM


def check_symmetry(sample: np.ndarray) -> None:
    """As many positive as negative draws: exact binomial test."""
    positive, negative = int((sample > 0).sum()), int((sample < 0).sum())
    assert binomtest(positive, positive + negative, 0.5).pvalue >= FALSE_ALARM


def check_tail(sample: np.ndarray, noise: DiscreteLaplace) -> None:
    """P(Y ≥ m) where it is near 1 in 1,000, as the threshold of a head list needs it: exact binomial test."""
    m = next(m for m in range(1, 10_000) if noise.at_least(m) < 1e-3)
    assert binomtest(int((sample >= m).sum()), len(sample), noise.at_least(m)).pvalue >= FALSE_ALARM


def check_sampler(sample: np.ndarray, noise: DiscreteLaplace) -> None:
    check_fit(sample, noise)
    check_symmetry(sample)
    check_tail(sample, noise)
    a = np.exp(-float(noise.rate))
    check_pairs(sample, float(((1 - a) / (1 + a)) ** 2 * (1 + a**2) / (1 - a**2)))


def total_variation(law: Mapping[int, Fraction], rate: Fraction) -> Decimal:
    """The distance between a law and the ideal one with e^{−rate}, with 80 digits; what lies beyond counts too."""
    with localcontext(prec=80):
        a = (-Decimal(rate.numerator) / Decimal(rate.denominator)).exp()
        head = (1 - a) / (1 + a)
        inside = sum(abs(Decimal(p.numerator) / Decimal(p.denominator) - head * a ** abs(y)) for y, p in law.items())
        beyond = 2 * a ** (max(law) + 1) / (1 + a)
        return (inside + beyond) / 2
