"""EstimateOptinProbabilities: unbiased records, an unbiased variance, independent noise. [BLJ] Theorem 3.5."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities, optin_variance
from searchblend.core.privacy import Budget
from searchblend.mechanisms.threshold import noise_for_one_record
from searchblend_lab.evidence.laws import faults
from searchblend_lab.evidence.laws.sampled_reports import check_optin_estimates

BUDGETS = [Budget(1, 1e-5), Budget(4, 1e-5)]
budgets = pytest.mark.parametrize("budget", BUDGETS, ids=str)


def unclamped(probability: np.ndarray, n: int, noise_variance: float) -> np.ndarray:
    """σ̂²_O as printed, with the integer noise's variance: may be negative where p̂ < 0 or p̂ > 1."""
    return probability * (1 - probability) / (n - 1) + noise_variance / (n * (n - 1))


def check_exact_variance(budget: Budget, p: float, n: int, noise_variance: float) -> None:
    """E σ̂² = Var p̂ and E p̂ = p over all counts of n users and all values of the sampler. Exact."""
    law = noise_for_one_record(budget).sampled_probabilities()
    noise = np.array(sorted(law))
    weights = np.outer(binom.pmf(np.arange(n + 1), n, p), [float(law[y]) for y in noise])
    estimates = (np.arange(n + 1)[:, None] + noise) / n
    mean = (weights * estimates).sum()
    assert mean == pytest.approx(p, abs=1e-12)
    stated = (weights * unclamped(estimates, n, noise_variance)).sum()
    assert stated == pytest.approx((weights * (estimates - mean) ** 2).sum(), rel=1e-9)


@budgets
@pytest.mark.parametrize("p", [0.5, 0.02, 0.001, 0.0])
@pytest.mark.parametrize("n", [2, 40])
def test_unclamped_variance_is_unbiased(budget: Budget, p: float, n: int):
    check_exact_variance(budget, p, n, noise_for_one_record(budget).variance)


@budgets
@pytest.mark.parametrize("name", faults.NOISE_VARIANCE)
def test_wrong_noise_variance_is_rejected(name: str, budget: Budget):
    wrong = faults.NOISE_VARIANCE[name](noise_for_one_record(budget))
    with pytest.raises(AssertionError):
        check_exact_variance(budget, 0.02, 40, wrong)


@budgets
def test_shipped_variance_is_the_unclamped_one_inside_and_constant_outside(budget: Budget):
    noise, n = noise_for_one_record(budget).variance, 1298
    inside = np.linspace(0, 1, 1001)
    np.testing.assert_allclose(optin_variance(inside, n, noise), unclamped(inside, n, noise), rtol=1e-12)
    outside = np.array([-0.5, -1e-9, 1 + 1e-9, 2.0])
    np.testing.assert_allclose(optin_variance(outside, n, noise), noise / (n * (n - 1)), rtol=1e-12)


@budgets
def test_bias_variance_and_coverage(budget: Budget):
    """Seeded, 6 % being four standard errors of a variance; test_laws.py rejects faults with fewer replicates."""
    check_optin_estimates(estimate_optin_probabilities, budget, replicates=9_000, variance_within=0.06)


@pytest.mark.slow
@budgets
def test_bias_variance_and_coverage_of_many_replicates(budget: Budget):
    check_optin_estimates(estimate_optin_probabilities, budget, replicates=30_000, variance_within=0.03)
