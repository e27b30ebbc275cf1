"""CreateHeadList and the opt-in counts enumerated: exact laws of the shipped sampler, all neighbours. No sampling."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from searchblend.blender.paper.create_head_list import noisy_selection
from searchblend.core.privacy import Budget
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.fixed_point import exp_fraction_bounds
from searchblend.mechanisms.threshold import Threshold, noise_for_one_record, printed_threshold
from searchblend_lab.evidence.laws import faults
from searchblend_lab.evidence.laws.selection import check_noisy_counts, check_selection, release_rates
from searchblend_lab.evidence.laws.selection_faults import noise_of_scale

BUDGETS = [
    Budget(4, 1e-5),
    Budget(1, 1e-6),
    Budget(math.log(3), 1e-5),
    Budget(5, 1e-7),
    Budget(10, 1e-5),
    Budget(2, 0.5),
    Budget(4, 0.05),
    Budget(0.7, 0.6),
    Budget(0.6, 0.5),  # from here on ε ≤ ln 2: only the condition e^(ε/2)(1 − π₁) ≥ 1 carries the proof
    Budget(math.log(2), 1e-5),
    Budget(0.3, 0.01),
]
MAX_COUNT = 12
FLOAT_ERROR = Fraction(1, 2**48)
"""What a stated δ may be off by, being a float from a power."""


def growth(budget: Budget) -> Fraction:
    return exp_fraction_bounds(Fraction(budget.epsilon))[0]


def rates_of(budget: Budget, select=noisy_selection, noise: DiscreteLaplace | None = None) -> list[Fraction]:
    threshold = printed_threshold(budget)
    law = (noise or threshold.noise).sampled_probabilities()
    return release_rates(select, threshold, law, max(MAX_COUNT, threshold.integer + 3))


def check_stated(rates: list[Fraction], budget: Budget) -> Fraction:
    """Against the δ that the release states (``mechanism_delta``), which is itself within the budget."""
    threshold = printed_threshold(budget)
    stated = threshold.single_person_rate + threshold.sampler_delta(budget.epsilon)
    assert stated <= budget.delta
    return check_selection(rates, growth(budget), Fraction(stated) * (1 + FLOAT_ERROR))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_selection_is_private(budget: Budget):
    """The hockey-stick is π₁ to the last digit: the record of a single person is all that δ pays for."""
    rates = rates_of(budget)
    assert rates[0] == 0
    assert check_stated(rates, budget) == rates[1]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_stated_rate_is_the_enumerated_one(budget: Budget):
    threshold = printed_threshold(budget)
    rates = rates_of(budget)
    assert rates[1] == pytest.approx(threshold.single_person_rate, abs=threshold.noise.distance, rel=1e-12)
    for count in range(1, len(rates)):
        ideal = threshold.noise.at_least(threshold.integer - count)
        assert rates[count] == pytest.approx(ideal, abs=threshold.noise.distance, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "delta", "integer", "rate"),
    [(4, 1e-5, 7, 5.4e-6), (1, 1e-6, 29, 5.2e-7), (math.log(3), 1e-5, 22, 6.2e-6), (5, 1e-7, 8, 2.3e-8)],
)
def test_known_figures(epsilon: float, delta: float, integer: int, rate: float):
    budget = Budget(epsilon, delta)
    assert printed_threshold(budget).integer == integer
    assert float(rates_of(budget)[1]) == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize("name", faults.SELECTION)
@pytest.mark.parametrize("budget", [Budget(4, 1e-5), Budget(0.6, 0.5)], ids=str)
def test_wrong_selection_is_rejected(name: str, budget: Budget):
    rates = rates_of(budget, faults.SELECTION[name])
    with pytest.raises(AssertionError):
        check_stated(rates, budget)


@pytest.mark.parametrize("name", faults.NOISE_SCALE)
def test_selection_with_too_little_noise_is_rejected(name: str):
    budget = Budget(1, 1e-6)
    noise = noise_of_scale(faults.NOISE_SCALE[name], noise_for_one_record(budget))
    with pytest.raises(AssertionError):
        check_stated(rates_of(budget, noise=noise), budget)


PUBLISHED = [Budget(4, 1e-5), Budget(1, 1e-6), Budget(math.log(3), 1e-5), Budget(5, 1e-7), Budget(8, 1e-5)]


def stated_delta(budget: Budget) -> float:
    """What the release says that the sampler costs; the ideal law would cost nothing."""
    return Threshold(1.0, 2, noise_for_one_record(budget)).sampler_delta(budget.epsilon)


@pytest.mark.parametrize("budget", PUBLISHED, ids=str)
def test_noisy_counts_are_private(budget: Budget):
    check_noisy_counts(noise_for_one_record(budget).sampled_probabilities(), growth(budget), stated_delta(budget))
    assert stated_delta(budget) < 1e-14


@pytest.mark.parametrize("name", faults.NOISE_SCALE)
@pytest.mark.parametrize("budget", PUBLISHED, ids=str)
def test_counts_with_too_little_noise_are_rejected(name: str, budget: Budget):
    noise = noise_of_scale(faults.NOISE_SCALE[name], noise_for_one_record(budget))
    with pytest.raises(AssertionError):
        check_noisy_counts(noise.sampled_probabilities(), growth(budget), stated_delta(budget))


@pytest.mark.parametrize("name", faults.LAW)
def test_counts_with_another_law_are_rejected(name: str):
    budget = Budget(4, 1e-5)
    law = faults.LAW[name](noise_for_one_record(budget).sampled_probabilities())
    with pytest.raises(AssertionError):
        check_noisy_counts(law, growth(budget), stated_delta(budget))
