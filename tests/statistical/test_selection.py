"""CreateHeadList and the opt-in counts enumerated: exact laws of the shipped sampler, all neighbours. No sampling."""

from __future__ import annotations

import math

import pytest

from searchblend.core.privacy import Budget
from searchblend.mechanisms.threshold import noise_for_one_record, printed_threshold
from searchblend_lab.evidence.laws.laws import check_stated, growth, rates_of, stated_delta
from searchblend_lab.evidence.laws.selection import check_noisy_counts

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


PUBLISHED = [Budget(4, 1e-5), Budget(1, 1e-6), Budget(math.log(3), 1e-5), Budget(5, 1e-7), Budget(8, 1e-5)]


@pytest.mark.parametrize("budget", PUBLISHED, ids=str)
def test_noisy_counts_are_private(budget: Budget):
    check_noisy_counts(noise_for_one_record(budget).sampled_probabilities(), growth(budget), stated_delta(budget))
    assert stated_delta(budget) < 1e-14
