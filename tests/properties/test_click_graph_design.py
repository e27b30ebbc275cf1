"""Whatever is asked for, a design stays within its budget, by formulas written down a second time, or is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams, Shares
from searchblend.core.privacy import Budget
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian

budgets = st.builds(Budget, st.floats(0.1, 12), st.floats(-11, -1).map(lambda power: 10**power))
shares = st.builds(Shares, *(st.floats(0.05, 1) for _ in range(4)))


@st.composite
def params(draw: st.DrawFn, algorithms: tuple[str, ...]) -> ClickGraphParams:
    algorithm = draw(st.sampled_from(algorithms))
    urls = draw(st.sampled_from(["none", "public", "private"]))
    options = {}
    if algorithm in ("gaussian", "kkmn2009"):
        options["query_noise"] = draw(st.sampled_from(["fresh", "reuse"]))
    if algorithm == "kkmn2009":
        options["count_unit"] = draw(st.sampled_from(["users", "impressions"]))
    return ClickGraphParams(
        draw(budgets),
        algorithm=algorithm,
        max_queries_per_user=draw(st.integers(1, 60 if algorithm in ("gaussian", "kkmn2009") else 8)),
        max_clicks_per_user=draw(st.integers(1, 60)),
        max_reformulations_per_user=draw(st.integers(1, 60)),
        urls=urls,
        public_source="made up" if urls == "public" else "",
        reformulations=draw(st.sampled_from(["none", "typed"])),
        shares=draw(shares),
        **options,
    )


def made(wanted: ClickGraphParams) -> ClickGraphDesign:
    try:
        return ClickGraphDesign.of(wanted)
    except InvalidParameter as refused:
        assume(refused.field not in {"epsilon", "delta"})
        raise


def normal_delta(epsilon: float, mu: float) -> float:
    if not mu:
        return max(0.0, -math.expm1(epsilon))
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def own_rate(step: StepDesign, weight: int) -> float:
    return float(ndtr((weight + 0.5 - step.threshold) / step.noise.scale)) if step.threshold else 0.0


def gaussian_delta_again(design: ClickGraphDesign) -> float:
    """The formula of proofs/gaussian_threshold.md, written once more, number by number."""
    epsilon = design.epsilon
    first, *later = design.steps
    mu_squared, quiet = 0.0, 0.0
    for step in later:
        sizes = range(1, step.cap.first + 1) if step.units > 1 else [step.cap.first]
        weights = {s: int(step.units / math.sqrt(s) + 1e-9) if step.units > 1 else 1 for s in sizes}
        norm_squared = step.units**2 if step.units > 1 else step.cap.first
        mu_squared += norm_squared / step.noise.scale**2
        quiet += min(s * math.log1p(-own_rate(step, w)) for s, w in weights.items())
    worst = 0.0
    for s in range(1, first.cap.first + 1):
        w = int(first.units / math.sqrt(s) + 1e-9) if first.units > 1 else 1
        for j in range(s + 1):
            mu = math.sqrt(mu_squared + j * (w / first.noise.scale) ** 2)
            g = quiet + (s - j) * math.log1p(-own_rate(first, w))
            worst = max(
                worst,
                -math.expm1(g) + math.exp(g) * normal_delta(epsilon - g, mu),
                normal_delta(epsilon + g, mu),
            )
    return worst


@settings(max_examples=40)
@given(params(("gaussian", "gaussian", "weighted_gaussian", "dp_sips")))
@pytest.mark.thorough
def test_gaussian_designs(wanted):
    design = made(wanted)
    assert design.delta <= wanted.budget.delta
    again = gaussian_delta_again(design)
    assert again <= design.mechanism_delta * (1 + 1e-4) + 1e-15
    assert design.sampler_delta >= (1 + math.exp(design.epsilon)) * sum(
        step.cap.first * step.noise.distance for step in design.steps
    ) * (1 - 1e-12)


@settings(max_examples=60)
@given(params(("kkmn2009",)))
def test_laplace_designs(wanted):
    design = made(wanted)
    assert design.delta <= wanted.budget.delta
    assert math.fsum(step.cap.first / step.noise.scale for step in design.steps) <= design.epsilon * (1 + 1e-12)
    for step in design.steps:
        if step.threshold is None:
            continue
        d, a = step.cap.first, math.exp(-1 / step.noise.scale)
        pi = [a ** (step.threshold - m) / (1 + a) for m in range(1, (1 if step.cap.distinct else d) + 1)]
        assert -math.expm1(d * math.log1p(-pi[0])) <= step.delta * (1 + 1e-9)
        assert pi[-1] <= step.delta * (1 + 1e-9)
        assert 1 / (1 - pi[0]) <= math.exp(1 / step.noise.scale) * (1 + 1e-12)
        assert step.threshold > (1 if step.cap.distinct else d)


@pytest.mark.thorough
@settings(max_examples=20)
@given(params(("gaussian", "kkmn2009")))
def test_a_design_follows_from_its_parameters(wanted):
    assert made(wanted).as_json() == made(wanted).as_json()


@pytest.mark.parametrize("algorithm", ["gaussian", "kkmn2009", "weighted_gaussian", "adaptive_gaussian"])
def test_more_budget_means_lower_thresholds_and_less_noise(algorithm):
    designs = [
        ClickGraphDesign.of(ClickGraphParams(Budget(epsilon, 1e-6), algorithm=algorithm, max_queries_per_user=10))
        for epsilon in (0.5, 1.0, 2.0, 4.0)
    ]
    for less, more in pairwise(designs):
        assert more.rounds[0].threshold / more.rounds[0].units < less.rounds[0].threshold / less.rounds[0].units
        assert more.query_counts.noise.variance < less.query_counts.noise.variance


def test_the_second_formula_rejects_a_threshold_that_is_one_too_low():
    design = ClickGraphDesign.of(ClickGraphParams(Budget(2.0, 1e-5)))
    step = design.steps[0]
    lower = replace(design, steps=(replace(step, threshold=step.threshold - 1),))
    narrower = replace(design, steps=(replace(step, noise=RoundedGaussian(step.noise.sigma - Fraction(1, 8))),))
    for wrong in (lower, narrower):
        assert gaussian_delta_again(wrong) > np.nextafter(design.params.budget.delta, 1)
