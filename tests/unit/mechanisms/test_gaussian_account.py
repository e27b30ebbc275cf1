"""The Gaussian account against integrals, and against the enumerated laws of what is really published."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.gaussian_design import gaussian_total_delta
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.params import ClickGraphParams, Shares
from searchblend.core.privacy import Budget
from searchblend.mechanisms.gaussian_account import (
    SLACK,
    Reach,
    gaussian_delta,
    largest_mu,
    least_epsilon,
    reach,
    total_delta,
    weight,
)

LN10 = math.log(10)
Law = dict[object, float]


@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 0.3, LN10, 6.0])
@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0])
def test_hockey_stick_of_two_normals(epsilon, mu):
    at = epsilon / mu + mu / 2
    expected, _ = quad(lambda x: norm.pdf(x - mu) - math.exp(epsilon) * norm.pdf(x), at, at + 40, epsabs=1e-14)
    assert float(gaussian_delta(epsilon, mu)) == pytest.approx(expected, rel=1e-6, abs=1e-13)


def normal_cdf(x: Decimal) -> Decimal:
    """Φ by its Taylor series, with enough digits for the cancellation."""
    term, total = x, Decimal(0)
    for n in range(800):
        total += term / (2 * n + 1)
        term *= -x * x / (2 * n + 2)
    pi = Decimal("3.141592653589793238462643383279502884197169399375105820974944592307816406286209")
    return Decimal("0.5") + total / (2 * pi).sqrt()


@pytest.mark.parametrize(
    ("epsilon", "mu"), [(LN10, 0.5365), (LN10, 0.4), (0.05, 0.01), (0.01, 0.003), (1.0, 0.14), (10.0, 2.0), (30.0, 6.5)]
)
def test_its_error_is_far_below_the_slack(epsilon, mu):
    with localcontext(prec=80):
        e, m = Decimal(epsilon), Decimal(mu)
        exact = normal_cdf(m / 2 - e / m) - e.exp() * normal_cdf(-m / 2 - e / m)
        assert abs(Decimal(float(gaussian_delta(epsilon, mu))) / exact - 1) < Decimal(SLACK) / 100


def test_known_calibration():
    """σ = 1.8212 for sensitivity 1 at (ln 10, 5e-6)."""
    assert 1 / largest_mu(LN10, 5e-6) == pytest.approx(1.8212, abs=1e-4)


def test_nothing_moved_costs_nothing():
    assert float(gaussian_delta(0.0, 0.0)) == 0
    assert float(gaussian_delta(-1.0, 0.0)) == pytest.approx(1 - math.exp(-1))
    assert total_delta(0.5, Reach.one(0.0)) == 0


def test_named_alone_is_part_of_delta():
    """A user whose things nobody else has: δ is the chance that one of them is named, whatever ε is."""
    assert total_delta(50.0, Reach.one(0.0, math.log(0.99))) == pytest.approx(0.01)
    assert least_epsilon(0.009, Reach.one(0.0, math.log(0.99))) == math.inf


def test_least_epsilon_is_the_inverse():
    first, later = reach(20, 1, 7.9, 40), Reach.one(0.05)
    assert total_delta(least_epsilon(2e-5, first, later), first, later) == pytest.approx(2e-5, rel=1e-6)
    assert least_epsilon(0.9, first, later) == 0


# the laws of what is published, enumerated


def published(count: int, step: StepDesign) -> Law:
    """What is seen of one count: its noisy value, or nothing."""
    if not count:
        return {None: 1.0}
    law: Law = {None: 0.0}
    reach_of = step.noise.reach
    for y in range(-reach_of, reach_of + 1):
        p = step.noise.at_least(y) - step.noise.at_least(y + 1)
        value = count + y
        key = value if value >= (step.threshold or 0) else None
        law[key] = law.get(key, 0.0) + p
    return law


def joint(laws: list[Law]) -> Law:
    return {
        tuple(key for key, _ in outcome): math.prod(p for _, p in outcome)
        for outcome in product(*(law.items() for law in laws))
    }


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    return math.fsum(max(value - math.exp(epsilon) * q.get(key, 0.0), 0.0) for key, value in p.items())


def both_ways(p: Law, q: Law, epsilon: float) -> float:
    return max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))


def selection(epsilon: float, delta: float, d: int) -> tuple[StepDesign, float]:
    design = ClickGraphDesign.of(ClickGraphParams(Budget(epsilon, delta), max_queries_per_user=d))
    return design.rounds[0], design.mechanism_delta


@pytest.mark.parametrize(("epsilon", "delta"), [(LN10, 1e-3), (1.0, 0.01), (3.0, 1e-5), (0.5, 0.05)])
@pytest.mark.parametrize("d", [1, 2])
def test_threshold_with_reused_noise_is_as_private_as_it_says(epsilon, delta, d):
    """One user more: j of d counts go up by one, the others appear. All j, low and high counts, both directions."""
    step, stated = selection(epsilon, delta, d)
    high = (step.threshold or 0) + step.noise.reach + 1
    worst = 0.0
    for shared in range(d + 1):
        for others in product({1, step.threshold or 1, high}, repeat=shared):
            own = d - shared
            without = joint([published(n, step) for n in others] + [published(0, step)] * own)
            with_user = joint([published(n + 1, step) for n in others] + [published(1, step)] * own)
            worst = max(worst, both_ways(without, with_user, epsilon))
    assert worst <= stated <= delta
    assert worst >= 0.75 * stated


@pytest.mark.parametrize("mutant", ["threshold one lower", "half the noise", "noise of one count for two"])
def test_the_enumeration_rejects_too_little(mutant):
    epsilon, delta = LN10, 1e-3
    step, stated = selection(epsilon, delta, 2)
    factors = {"half the noise": 0.5, "noise of one count for two": 1 / math.sqrt(2)}
    noise = Narrowed(step.noise, factors.get(mutant, 1.0))
    wrong = replace(step, noise=noise, threshold=(step.threshold or 0) - (mutant == "threshold one lower"))
    high = (step.threshold or 0) + step.noise.reach + 1
    own = both_ways(joint([published(1, wrong)] * 2), joint([published(0, wrong)] * 2), epsilon)
    shared = both_ways(joint([published(high, wrong)] * 2), joint([published(high + 1, wrong)] * 2), epsilon)
    assert max(own, shared) > stated


class Narrowed:
    """Noise with a part of its standard deviation."""

    def __init__(self, noise: object, factor: float) -> None:
        self.reach, self._sigma = noise.reach, noise.scale * factor

    def at_least(self, value: int) -> float:
        return float(norm.sf((value - 0.5) / self._sigma))


@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 1e-3), (1.0, 0.02)])
def test_a_click_step_that_follows_is_covered(epsilon, delta):
    """One query and one pair: the pair is only looked at if the query is published. All four neighbours."""
    params = ClickGraphParams(
        Budget(epsilon, delta),
        max_queries_per_user=1,
        max_clicks_per_user=1,
        urls="private",
        shares=Shares(0.3, 0.3, 0.4),
    )
    design = ClickGraphDesign.of(params)
    queries, clicks = design.steps
    high = (queries.threshold or 0) + queries.noise.reach + 1
    worst = 0.0
    for searched, clicked in product((0, queries.threshold or 1, high), (0, clicks.threshold or 1, high)):
        laws = [then(published(searched + more, queries), published(clicked + more, clicks)) for more in (0, 1)]
        worst = max(worst, both_ways(*laws, epsilon))
    assert worst <= design.mechanism_delta <= delta
    assert worst >= 0.3 * delta


def then(first: Law, second: Law) -> Law:
    law: Law = {}
    for one, p in first.items():
        if one is None:
            law[None, None] = law.get((None, None), 0.0) + p
            continue
        for other, q in second.items():
            law[one, other] = law.get((one, other), 0.0) + p * q
    return law


@pytest.mark.parametrize("d", [1, 2, 3])
def test_weighted_selection_is_as_private_as_it_says(d):
    """Names alone are published: a user with s queries adds floor(units/√s) to each, whoever else has them."""
    epsilon, delta = 2.0, 0.02
    params = ClickGraphParams(Budget(epsilon, delta), algorithm="weighted_gaussian", max_queries_per_user=d)
    step = ClickGraphDesign.of(params).rounds[0]
    stated = gaussian_total_delta(epsilon, [step])

    def named(total: int) -> Law:
        rate = step.noise.at_least((step.threshold or 0) - total) if total else 0.0
        return {True: rate, False: 1 - rate}

    grid = [0, 1, step.units // 2, (step.threshold or 0) - step.units, step.threshold or 0]
    worst = 0.0
    for s in range(1, d + 1):
        for others in product(grid, repeat=s):
            without = joint([named(n) for n in others])
            with_user = joint([named(n + weight(step.units, s)) for n in others])
            worst = max(worst, both_ways(without, with_user, epsilon))
    assert 0 < worst <= stated <= delta


def test_weights_have_norm_one_at_most():
    for units in (8, 523, 1000):
        for s in range(1, 200):
            assert s * weight(units, s) ** 2 <= units**2 < s * (weight(units, s) + 1) ** 2


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"query_noise": "fresh"},
        {"urls": "public", "public_source": "made up"},
        {"urls": "private", "reformulations": "typed"},
        {"algorithm": "weighted_gaussian"},
        {"algorithm": "dp_sips", "max_queries_per_user": 10},
        {"algorithm": "adaptive_gaussian"},
    ],
)
@pytest.mark.parametrize(("epsilon", "delta"), [(LN10, 1e-5), (1.0, 1e-6), (6.0, 1e-8)])
def test_designs_use_the_budget_and_no_more(options, epsilon, delta):
    design = ClickGraphDesign.of(ClickGraphParams(Budget(epsilon, delta), **options))
    mu = math.sqrt(math.fsum(step.mu**2 for step in design.steps if step.mu))
    assert float(gaussian_delta(epsilon, mu)) <= delta
    assert 0.8 * delta <= design.delta <= delta
    assert design.mechanism_delta == gaussian_total_delta(epsilon, design.steps)
    assert np.isfinite([step.epsilon for step in design.steps]).all()
    assert max(step.epsilon for step in design.steps) <= epsilon


def test_the_default_design_is_close_to_the_continuous_optimum():
    """d = 20 at (ln 10, 1e-5): σ = 7.87 and T = 39.5 with real numbers."""
    step, _ = selection(LN10, 1e-5, 20)
    assert step.threshold == 40
    assert step.noise.scale == pytest.approx(7.87, rel=0.01)
