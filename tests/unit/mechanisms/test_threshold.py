"""τ, T and δ at known budgets; which budgets are refused."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.threshold import Threshold, noise_for_one_record, printed_threshold


@pytest.mark.parametrize(
    ("epsilon", "delta", "printed", "integer", "rate"),
    [
        (4, 1e-5, 6.756, 7, 5.41e-6),
        (4, 1e-7, 9.059, 10, 1.34e-8),
        (1, 1e-6, 28.631, 29, 5.18e-7),
        (math.log(3), 1e-5, 21.959, 22, 6.20e-6),
        (5, 1e-7, 7.447, 8, 2.32e-8),
    ],
)
def test_printed_thresholds(epsilon: float, delta: float, printed: float, integer: int, rate: float):
    threshold = printed_threshold(Budget(epsilon, delta))
    assert threshold.printed == pytest.approx(printed, abs=1e-3)
    assert threshold.integer == integer == math.floor(threshold.printed) + 1
    assert threshold.single_person_rate == pytest.approx(rate, rel=2e-3)
    assert threshold.single_person_rate < delta


def test_a_whole_number_is_not_enough_when_tau_is_whole():
    """N + Y > τ with τ = 3 is N + Y ≥ 4."""
    threshold = printed_threshold(Budget(2, math.exp(-2)))
    assert threshold.printed == pytest.approx(3)
    assert threshold.integer == math.floor(threshold.printed) + 1


def test_tau_is_at_least_one():
    threshold = printed_threshold(Budget(4, 0.999999))
    assert threshold.printed >= 1
    assert threshold.integer == 2


def test_noise_has_scale_two_over_epsilon():
    assert noise_for_one_record(Budget(4, 1e-5)).rate == 2
    assert noise_for_one_record(Budget(0.1, 1e-5)).rate == Fraction(0.1) / 2


def test_rate_of_a_single_person():
    """π₁ = a^{T−1}/(1+a); with T = 1 the noise has to be at least 0."""
    noise = DiscreteLaplace(Fraction(1))
    a = math.exp(-1)
    assert Threshold(1.5, 2, noise).single_person_rate == pytest.approx(a / (1 + a))
    assert Threshold(3.5, 4, noise).single_person_rate == pytest.approx(a**3 / (1 + a))
    assert Threshold(0.5, 1, noise).single_person_rate == pytest.approx(1 / (1 + a))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.6, 0.5), (math.log(2), 0.1), (0.5, 1e-5), (0.01, 1e-6)])
def test_small_epsilon_is_accepted_where_the_condition_holds(epsilon: float, delta: float):
    threshold = printed_threshold(Budget(epsilon, delta))
    assert math.exp(epsilon / 2) * (1 - threshold.single_person_rate) >= 1
    assert threshold.small_budget_condition()


@pytest.mark.parametrize(("epsilon", "delta"), [(0.69, 0.9), (0.1, 0.5), (0.1, 0.1), (0.01, 0.02)])
def test_small_epsilon_is_refused_where_it_does_not(epsilon: float, delta: float):
    with pytest.raises(InvalidParameter, match=r"ln 2.*raise ε or lower δ") as refused:
        printed_threshold(Budget(epsilon, delta))
    assert refused.value.field == "epsilon"


@pytest.mark.parametrize(("epsilon", "delta"), [(4, 1e-17), (40, 1e-5)])
def test_delta_below_the_samplers_own_is_refused(epsilon: float, delta: float):
    with pytest.raises(InvalidParameter, match="too small at this ε") as refused:
        printed_threshold(Budget(epsilon, delta))
    assert refused.value.field == "delta"


def test_what_the_sampler_adds():
    """j (1 + e^ε) η with j = 2 counts."""
    threshold = printed_threshold(Budget(4, 1e-5))
    assert threshold.sampler_delta(4) == pytest.approx(2 * (1 + math.exp(4)) * threshold.noise.distance, abs=0)
    assert threshold.sampler_delta(4) == pytest.approx(1.4e-16, rel=0.05, abs=0)
