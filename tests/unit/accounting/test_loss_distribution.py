"""Totals by loss distributions: never below the truth, and close to it. Oracles: exact sums, the library's own laws."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchblend.accounting import totals
from searchblend.accounting.client_spends import dominating_law, randomized_response_spend
from searchblend.accounting.spend import DiscreteLaplaceLaw, LossStep, Spend
from searchblend.accounting.totals import (
    BASIC,
    LOSS_DISTRIBUTION,
    epsilon_by_loss_distribution,
    grid_interval,
    numeric_delta,
    on_grid,
    total_of,
)
from searchblend.core.privacy import Neighbors

REPLACE = Neighbors.REPLACE_ONE


@pytest.fixture(scope="module")
def library():
    """Google's, loaded by the workers that ask it."""
    import dp_accounting.pld.common
    import dp_accounting.pld.privacy_loss_distribution

    return dp_accounting


def test_a_year_of_weekly_reports():
    total = total_of([randomized_response_spend(0.1, 100)] * 52, 1e-6)
    assert total.basic_epsilon == 5.2
    assert 0.5 < total.loss_distribution_epsilon <= 0.6
    assert (total.epsilon, total.method) == (total.loss_distribution_epsilon, LOSS_DISTRIBUTION)


def test_a_year_against_the_multinomial_tail():
    """How often each of the three losses comes up in 52 weeks, summed in rationals: 0.1 % of δ is left unused."""
    weeks, spend = 52, randomized_response_spend(0.1, 100)
    upper, lower = ([Fraction(value) for value in vector] for vector in (spend.law.upper, spend.law.lower))
    epsilon = epsilon_by_loss_distribution([spend] * weeks, 1e-6)
    delta, growth = Fraction(0), Fraction(math.exp(epsilon))
    for down in range(weeks + 1):
        for up in range(weeks - down + 1):
            counts = (down, weeks - down - up, up)
            p, q = (math.prod(v**n for v, n in zip(vector, counts, strict=True)) for vector in (upper, lower))
            delta += math.comb(weeks, down) * math.comb(weeks - down, up) * max(p - growth * q, 0)
    assert 0.998e-6 < float(delta) <= 1e-6


def exact_delta(spend: Spend, rounds: int, epsilon: float) -> float:
    """δ of n rounds at ε, in rationals: the sum over all sequences of outcomes, like ones counted together."""
    pairs = list(zip(map(Fraction, spend.law.upper), map(Fraction, spend.law.lower), strict=True))
    growth = Fraction(math.exp(epsilon))
    totals = Counter({(Fraction(1), Fraction(1)): 1})
    for _ in range(rounds):
        grown: Counter[tuple[Fraction, Fraction]] = Counter()
        for (p, q), times in totals.items():
            for p_one, q_one in pairs:
                grown[p * p_one, q * q_one] += times
        totals = grown
    return float(sum(times * max(p - growth * q, 0) for (p, q), times in totals.items()))


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("n_values", [2, 10, 100])
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_against_the_exact_sum(rounds, epsilon, n_values, delta):
    spend = randomized_response_spend(epsilon, n_values)
    total = epsilon_by_loss_distribution([spend] * rounds, delta)
    assert exact_delta(spend, rounds, total) <= delta
    assert exact_delta(spend, rounds, max(total - 1e-3, 0)) >= delta or total <= 1e-3


@pytest.mark.thorough
@pytest.mark.parametrize(("rounds", "epsilon"), [(52, 0.1), (10, 0.5), (365, 0.05), (12, 4.0)])
def test_against_the_librarys_randomized_response(library, rounds, epsilon):
    """The library's parameter is the chance of a uniform answer, under replace-one.

    Its grid is as fine as the losses are small: rounding moves the total by a hundredth of what may be off.
    """
    n_values = 100
    interval = 1e-5 * max(1.0, epsilon / 0.5)
    uniform = n_values / (math.exp(epsilon) + n_values - 1)
    theirs = library.pld.privacy_loss_distribution.from_randomized_response(
        uniform,
        n_values,
        value_discretization_interval=interval,
        neighboring_relation=library.NeighboringRelation.REPLACE_ONE,
    ).self_compose(rounds)
    ours = epsilon_by_loss_distribution([randomized_response_spend(epsilon, n_values)] * rounds, 1e-6)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=2e-3)


@pytest.mark.parametrize("shift", [1, 2, 5])
def test_against_the_librarys_discrete_laplace(library, shift):
    theirs = library.pld.privacy_loss_distribution.from_discrete_laplace_mechanism(
        0.1, shift, value_discretization_interval=1e-5
    ).self_compose(20)
    spend = Spend(shift / 10, 0.0, REPLACE, "noise", DiscreteLaplaceLaw(10.0, shift))
    ours = epsilon_by_loss_distribution([spend] * 20, 1e-6)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=2e-3)


def test_against_the_librarys_generic_mechanism(library):
    parameters = library.pld.common.DifferentialPrivacyParameters(0.1, 1e-8)
    theirs = library.pld.privacy_loss_distribution.from_privacy_parameters(parameters, 1e-5).self_compose(52)
    ours = epsilon_by_loss_distribution([Spend(0.1, 1e-8, REPLACE, "any")] * 52, 1.6e-6)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(1.6e-6), rel=2e-3)


def test_two_noisy_counts_are_two_steps_and_the_sampler_is_paid():
    law = DiscreteLaplaceLaw(0.5, 1, values=2)
    (noise, times), (leak, once) = law.steps(4.0, 1e-9)
    assert (times, once) == (2, 1)
    assert noise.largest == 2.0
    assert leak.infinite == pytest.approx(1e-9 * (1 + math.exp(4)) / 2)


CHANNELS = st.lists(st.lists(st.integers(1, 20), min_size=3, max_size=3), min_size=2, max_size=3)


@settings(max_examples=60, deadline=None)
@given(CHANNELS, st.integers(1, 3), st.sampled_from([1e-1, 1e-3, 1e-6]))
def test_never_below_the_truth(rows, rounds, delta):
    channel = [tuple(Fraction(weight, sum(row)) for weight in row) for row in rows]
    law = dominating_law([(channel[0], other) for other in channel[1:]])
    spend = Spend(law.step.largest + 1e-9, 0.0, REPLACE, "channel", law)
    total = epsilon_by_loss_distribution([spend] * rounds, delta)
    assert exact_delta(spend, rounds, total) <= delta


def test_rounding_down_would_be_noticed(monkeypatch):
    def optimistic(step, interval):
        masses: Counter[int] = Counter()
        for loss, mass in step.atoms:
            masses[math.floor(loss / interval)] += mass
        return dict(masses)

    spend = randomized_response_spend(0.5, 10)
    monkeypatch.setattr(totals, "on_grid", optimistic)
    assert exact_delta(spend, 5, epsilon_by_loss_distribution([spend] * 5, 1e-6)) > 1e-6


@given(st.floats(-20, 20), st.sampled_from([2.0**-14, 2.0**-9, 2.0**-4]))
def test_an_atom_keeps_its_mass_under_both_laws(loss, interval):
    masses = on_grid(LossStep(0.0, ((loss, 1.0),)), interval)
    assert sum(masses.values()) == pytest.approx(1, abs=1e-15)
    mass_of_q = sum(mass * math.exp(-point * interval) for point, mass in masses.items())
    assert mass_of_q == pytest.approx(math.exp(-loss), rel=1e-9)


def test_a_delta_below_the_rounding_gets_no_total():
    spends = [randomized_response_spend(0.1, 100)] * 52
    assert epsilon_by_loss_distribution(spends, 1e-12) == math.inf
    assert (total_of(spends, 1e-12).epsilon, total_of(spends, 1e-12).method) == (5.2, BASIC)


def test_no_releases_cost_nothing():
    assert epsilon_by_loss_distribution([], 1e-6) == 0


def test_long_histories_get_coarser_grids_made_of_the_finer_points():
    steps = Counter({randomized_response_spend(4.0, 100).law.step: 1000})
    coarse = grid_interval(steps)
    assert coarse > 2.0**-14
    assert math.log2(coarse).is_integer()
    assert numeric_delta(steps, coarse) < 1e-7


def test_a_step_that_may_expose_somebody_outright():
    """δ alone: infinite loss with mass δ each time, so the total δ must cover 1 − (1 − δ)^n."""
    spends = [Spend(0.0, 1e-3, REPLACE, "any")] * 3
    assert epsilon_by_loss_distribution(spends, 2.9e-3) == math.inf
    assert epsilon_by_loss_distribution(spends, 3.0e-3) < 1e-3
