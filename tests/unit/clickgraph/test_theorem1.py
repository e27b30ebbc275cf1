"""Theorem 1 in numbers: Table 1, Fig. 1, the thresholds of §7, δ by brute force."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from itertools import product

import pytest

from searchblend.clickgraph.release import laplace_design
from searchblend.clickgraph.release.laplace_design import (
    alpha,
    alpha_threshold,
    delta_of,
    epsilon_of,
    noise_scale,
    printed_threshold,
)
from searchblend.clickgraph.release.step import release_probability
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget

LN10 = math.log(10)
TABLE_1 = {
    1: (5.70, 0.43),
    5: (31.99, 2.17),
    10: (66.99, 4.34),
    20: (140.00, 8.69),
    40: (292.04, 17.37),
    80: (608.16, 34.74),
    160: (1264.49, 69.49),
}
EXACT = {1: 5.70, 5: 28.49, 10: 57.99, 20: 121.00, 40: 253.04, 80: 529.16, 160: 1105.49}


@pytest.mark.parametrize("d", TABLE_1)
def test_table_1(d):
    threshold, scale = TABLE_1[d]
    assert printed_threshold(Budget(LN10, 1e-5), d) == pytest.approx(threshold, abs=0.005)
    assert noise_scale(LN10, d) == pytest.approx(scale, abs=0.005)


def test_thresholds_of_the_experiments():
    """§7.2 has K = 147.4 and b = 9.1 for d = 21; Tables 2 and 3 span these."""
    assert printed_threshold(Budget(LN10, 1e-5), 21) == pytest.approx(147.4, abs=0.05)
    assert noise_scale(LN10, 21) == pytest.approx(9.1, abs=0.05)
    grid = {2: (510.8, 441.0, 371.3), 5: (232.0, 201.9, 171.9), 10: (168.4, 147.4, 126.4)}
    for growth, row in grid.items():
        for delta, threshold in zip((1e-6, 1e-5, 1e-4), row, strict=True):
            assert printed_threshold(Budget(math.log(growth), delta), 21) == pytest.approx(threshold, abs=0.06)


@pytest.mark.parametrize("d", EXACT)
def test_exact_thresholds(d):
    assert printed_threshold(Budget(LN10, 1e-5), d, accounting="exact") == pytest.approx(EXACT[d], abs=0.006)


def test_thresholds_if_users_count_once():
    for d, threshold in {5: 27.99, 20: 121.00}.items():
        found = printed_threshold(Budget(LN10, 1e-5), d, accounting="exact", distinct=True)
        assert found == pytest.approx(threshold, abs=0.006)


def test_the_printed_threshold_of_20_searches_has_a_ninth_of_the_delta_it_claims():
    b = noise_scale(LN10, 20)
    assert delta_of(b, 140.0, 20, accounting="exact") == pytest.approx(1.12e-6, rel=0.01)


def test_figure_1():
    points = {106: 0.01, 110: 0.0158, 120: 0.050, 130: 0.158, 140: 0.5, 150: 0.842, 170: 0.9842, 174: 0.99}
    for count, probability in points.items():
        assert release_probability(count, 140, 8.69) == pytest.approx(probability, abs=0.0006)


@pytest.mark.parametrize(("accounting", "distinct"), [("paper", False), ("exact", False), ("exact", True)])
@pytest.mark.parametrize("d", [1, 3, 20])
def test_the_threshold_spends_its_budget(accounting, d, distinct):
    kind = {"accounting": accounting, "distinct": distinct}
    budget = Budget(1.7, 3e-6)
    threshold = printed_threshold(budget, d, **kind)
    b = noise_scale(budget.epsilon, d)
    assert delta_of(b, threshold, d, **kind) == pytest.approx(budget.delta, rel=1e-9)
    assert epsilon_of(b, threshold, d, distinct=distinct) == pytest.approx(budget.epsilon, rel=1e-9)


def test_epsilon_of_all_steps():
    total = epsilon_of(8.69, 140, 20, count_noise_scale=40, clicks=10, click_noise_scale=5)
    assert total == pytest.approx(20 / 8.69 + 20 / 40 + 10 / 5)


def test_alpha_condition_in_closed_form():
    """Footnote 4: the first term is the larger one iff K ≥ K_α."""
    expected = {1: 0.74, 5: 1.66, 10: 4.86, 20: 14.25, 40: 39.05, 80: 100.7, 160: 248.0}
    for d, threshold in expected.items():
        b = noise_scale(LN10, d)
        assert alpha_threshold(b) == pytest.approx(threshold, rel=0.001, abs=0.005)
        assert alpha(b, alpha_threshold(b) + 1e-6) == pytest.approx(math.exp(1 / b), rel=1e-12)
        assert alpha(b, alpha_threshold(b) - 0.01) > math.exp(1 / b) * (1 + 1e-9)


def test_what_the_proof_does_not_cover_is_refused():
    with pytest.raises(InvalidParameter, match="threshold: expected at least 20"):
        delta_of(8.69, 19.9, 20)
    with pytest.raises(InvalidParameter, match="threshold: expected at least 1"):
        delta_of(8.69, 0.9, 20, accounting="exact", distinct=True)
    with pytest.raises(InvalidParameter, match="max_queries_per_user"):
        printed_threshold(Budget(1, 1e-5), 0)
    with pytest.raises(InvalidParameter, match="delta"):
        printed_threshold(Budget(1, 0.6), 1)


def test_equation_9_is_not_offered():
    """It gives K = 113.98 at d = 20, whose true δ is 2.24 times the promised one."""
    with pytest.raises(InvalidParameter, match="accounting"):
        printed_threshold(Budget(LN10, 1e-5), 20, accounting="eq9")
    unsafe = 20 + noise_scale(LN10, 20) * math.log(1 / (2 * 1e-5))
    assert delta_of(noise_scale(LN10, 20), 113.98, 20, accounting="exact") == pytest.approx(2.24e-5, rel=0.01)
    for accounting in ("paper", "exact"):
        assert printed_threshold(Budget(LN10, 1e-5), 20, accounting=accounting) > min(unsafe, 113.99)
    assert "eq9" not in inspect.getsource(laplace_design)


def partitions(d: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """How d searches fall on queries that others have (first) and that nobody else has (second)."""
    for used in product(range(d + 1), repeat=2 * d):
        if sum(used) <= d:
            yield tuple(m for m in used[:d] if m), tuple(m for m in used[d:] if m)


def hockey_stick(p: list[float], q: list[float], growth: float) -> float:
    """Of two products of independent yes/no outputs."""
    total = 0.0
    for outcome in product((0, 1), repeat=len(p)):
        one = math.prod(x if yes else 1 - x for x, yes in zip(p, outcome, strict=True))
        other = math.prod(x if yes else 1 - x for x, yes in zip(q, outcome, strict=True))
        total += max(one - growth * other, 0.0)
    return total


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [math.log(2), LN10])
def test_exact_delta_is_the_true_one(d, epsilon):
    """All neighbours: one user more, who searches what others do, what nobody else does, or both."""
    delta = 1e-5
    threshold = printed_threshold(Budget(epsilon, delta), d, accounting="exact")
    b = noise_scale(epsilon, d)

    def rate(count: float) -> float:
        return release_probability(count, threshold, b) if count else 0.0

    worst = 0.0
    for shared, own in set(partitions(d)):
        for others in product((1, int(threshold) - 1, int(threshold) + 1), repeat=len(shared)):
            without = [rate(n) for n in others] + [0.0] * len(own)
            with_user = [rate(n + m) for n, m in zip(others, shared, strict=True)] + [rate(m) for m in own]
            worst = max(
                worst,
                hockey_stick(with_user, without, math.exp(epsilon)),
                hockey_stick(without, with_user, math.exp(epsilon)),
            )
    assert worst == pytest.approx(delta, rel=1e-6)
