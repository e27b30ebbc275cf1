"""Integer thresholds of the 2009 algorithm: known values, and the true δ of the shipped noise by enumeration."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from searchblend.clickgraph.release.click_log import Cap
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.laplace_design import named_alone
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams, Shares
from searchblend.core.privacy import Budget

LN10 = math.log(10)


def design(epsilon: float, delta: float, d: int, **options: object) -> ClickGraphDesign:
    params = ClickGraphParams(Budget(epsilon, delta), algorithm="kkmn2009", max_queries_per_user=d, **options)
    return ClickGraphDesign.of(params)


def test_integer_thresholds():
    for d, threshold in {1: 6, 5: 29, 20: 122}.items():
        step = design(LN10, 1e-5, d, query_noise="reuse", accounting="exact").rounds[0]
        assert step.threshold == threshold
        assert step.noise.scale == pytest.approx(d / LN10)


def test_printed_thresholds_are_kept_and_the_integer_ones_are_just_above():
    for d, printed in {1: 5.70, 5: 31.99, 20: 140.00, 160: 1264.49}.items():
        step = design(LN10, 1e-5, d, query_noise="reuse").rounds[0]
        assert step.printed_threshold == pytest.approx(printed, abs=0.006)
        assert printed < step.threshold <= printed + 2


def test_one_total_is_shared_out():
    """b = d/ε₁, b_q = d/ε₂, b_c = d_c/ε₃ with ε₁ + ε₂ + ε₃ = ε."""
    made = design(
        3.0, 1e-5, 20, urls="public", public_source="made up", max_clicks_per_user=7, shares=Shares(0.7, 0.2, 0.1)
    )
    select, counts, clicks = made.steps
    assert (select.epsilon, counts.epsilon, clicks.epsilon) == pytest.approx((2.1, 0.6, 0.3))
    assert (select.noise.scale, counts.noise.scale, clicks.noise.scale) == pytest.approx((20 / 2.1, 20 / 0.6, 7 / 0.3))
    assert math.fsum(step.epsilon for step in made.steps) == pytest.approx(3.0, rel=1e-12)
    assert counts.threshold is None
    assert clicks.threshold is None


def test_reused_noise_gives_the_counts_share_to_the_selection():
    made = design(3.0, 1e-5, 20, query_noise="reuse", shares=Shares(0.7, 0.2, 0.1))
    assert [step.epsilon for step in made.steps] == pytest.approx([3.0])
    assert made.reuses_noise
    assert made.query_counts is made.rounds[0]


def test_private_pairs_have_a_delta_of_their_own():
    made = design(3.0, 1e-5, 20, urls="private", reformulations="typed")
    assert made.click_counts.delta <= 2.5e-6
    assert made.reformulations.delta <= 2.5e-6
    assert made.delta <= 1e-5
    assert math.fsum(step.delta for step in made.steps) == pytest.approx(made.mechanism_delta)


@cache
def law_of(step: StepDesign, count: int, *, values: bool) -> dict[object, float]:
    """What is seen of one query: its noisy count or its name alone, or nothing."""
    if not count:
        return {None: 1.0}
    law: dict[object, float] = {None: 0.0}
    for y, p in step.noise.sampled_probabilities().items():
        key = None if count + y < step.threshold else count + y if values else True
        law[key] = law.get(key, 0.0) + float(p)
    return law


def hockey_stick(p: dict, q: dict, epsilon: float) -> float:
    return math.fsum(max(value - math.exp(epsilon) * q.get(key, 0.0), 0.0) for key, value in p.items())


def joint(laws: list[dict]) -> dict:
    return {
        tuple(key for key, _ in outcome): math.prod(p for _, p in outcome)
        for outcome in product(*(law.items() for law in laws))
    }


def additions(d: int, *, distinct: bool) -> set[tuple[int, ...]]:
    """What one user adds to each of d queries."""
    most = 1 if distinct else d
    return {added for added in product(range(most + 1), repeat=d) if 0 < sum(added) <= d}


def worst_hockey_stick(step: StepDesign, epsilon: float, *, values: bool) -> float:
    d, worst = step.cap.first, 0.0
    high = step.threshold + step.noise.reach + d
    others_of = {0, 1, step.threshold - 1, high} if values else {0, 1, step.threshold - 1, step.threshold + 3}
    for added in additions(d, distinct=step.cap.distinct):
        for others in product(others_of, repeat=d):
            without = joint([law_of(step, n, values=values) for n in others])
            with_user = joint([law_of(step, n + m, values=values) for n, m in zip(others, added, strict=True)])
            worst = max(worst, hockey_stick(with_user, without, epsilon), hockey_stick(without, with_user, epsilon))
    return worst


@pytest.mark.parametrize("count_unit", ["impressions", "users"])
@pytest.mark.parametrize(("d", "epsilon", "delta"), [(1, LN10, 1e-5), (2, LN10, 1e-3), (3, math.log(2), 1e-3)])
def test_names_are_as_private_as_they_say(d, epsilon, delta, count_unit):
    """All neighbours of up to three queries: the stated δ is the true one, no more and no less."""
    made = design(epsilon, delta, d, query_noise="reuse", accounting="exact", count_unit=count_unit)
    step = made.rounds[0]
    worst = worst_hockey_stick(step, epsilon, values=False)
    assert worst == pytest.approx(step.delta, rel=1e-6)
    assert made.delta <= delta


@pytest.mark.parametrize(("d", "epsilon", "delta"), [(1, LN10, 1e-4), (2, 3.0, 0.01)])
def test_reused_counts_cost_no_more_than_names(d, epsilon, delta):
    step = design(epsilon, delta, d, query_noise="reuse", accounting="exact").rounds[0]
    assert worst_hockey_stick(step, epsilon, values=True) == pytest.approx(step.delta, rel=1e-6)


@pytest.mark.parametrize("mutant", ["threshold one lower", "half the noise"])
def test_the_enumeration_rejects_too_little(mutant):
    epsilon, delta = 3.0, 0.01
    step = design(epsilon, delta, 2, query_noise="reuse", accounting="exact").rounds[0]
    if mutant == "threshold one lower":
        wrong = replace(step, threshold=step.threshold - 1)
    else:
        wrong = replace(step, noise=type(step.noise)(step.noise.rate * 2))
    assert worst_hockey_stick(wrong, epsilon, values=True) > delta


def test_the_printed_bound_is_never_below_the_exact_one():
    for d in (1, 2, 5, 20):
        step = design(LN10, 1e-5, d, query_noise="reuse").rounds[0]
        assert named_alone(step.noise, step.threshold, step.cap, "paper") >= named_alone(
            step.noise, step.threshold, step.cap
        )


def test_users_who_count_once_cannot_be_named_by_repeating():
    step = design(LN10, 1e-5, 5, query_noise="reuse", accounting="exact", count_unit="users").rounds[0]
    assert step.cap == Cap(5, distinct=True)
    assert step.threshold == 29


def test_a_delta_that_the_sampler_alone_needs_is_refused():
    with pytest.raises(InvalidParameter, match="delta: too small"):
        design(30.0, 1e-12, 20)
