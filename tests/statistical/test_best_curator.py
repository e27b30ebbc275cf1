"""The curator of method ``best``: exact law of the whole release, one person moved. proofs/stability_histogram.md."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from searchblend.blender.best.stability_histogram import CuratorDesign
from searchblend.core.privacy import Budget
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend_lab.evidence.laws.best_curator import Curator, Law, check_listing, check_moves, one_record_moves
from searchblend_lab.evidence.laws.laws import check_release

BUDGETS = [
    Budget(0.7, 1e-2),
    Budget(0.7, 1e-3),
    Budget(1, 1e-2),
    Budget(1, 1e-4),
    Budget(2, 1e-2),
    Budget(2, 1e-5),
    Budget(3, 1e-3),
    Budget(4, 1e-2),
    Budget(4, 1e-5),
    Budget(5, 1e-4),
    Budget(6, 1e-2),
    Budget(6, 1e-5),
]
LOW_BUDGET = Budget(0.7, 1e-5)


def design_of(budget: Budget, *, wide: bool = False) -> CuratorDesign:
    return CuratorDesign.of(budget, wide=wide)


@pytest.mark.parametrize("wide", [False, True], ids=["", "wide"])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_release_is_private(budget: Budget, wide: bool):
    """The hockey-stick is at most the stated δ, and all of that δ is needed: it is the record of a single person."""
    design = design_of(budget, wide=wide)
    assert design.delta <= budget.delta
    worst = check_release(Curator(design), budget, design.delta)
    exact = 1 - (1 - design.threshold.single_person_rate) * (
        1 - (design.wide_threshold.single_person_rate if design.wide_threshold else 0)
    )
    assert worst == pytest.approx(exact, rel=1e-6)


def test_release_is_private_at_a_high_threshold():
    """ε = 0.7, δ = 1e-5: T = 33."""
    design = design_of(LOW_BUDGET)
    assert design.threshold.integer == 33
    check_release(Curator(design), LOW_BUDGET, design.delta, beside=[0])


@pytest.mark.parametrize("budget", [Budget(2, 1e-3), Budget(4, 1e-5)], ids=str)
def test_release_with_the_shipped_sampler_is_private(budget: Budget):
    """The table sampler's exact law in place of the formula; its ends cost less than ``sampler_delta``."""
    design = design_of(budget, wide=True)
    moves = one_record_moves(design.threshold.integer, [0])
    check_moves(Curator(design), moves, budget.epsilon, design.delta, Law.sampled)


@pytest.mark.parametrize("wide", [False, True], ids=["", "wide"])
@pytest.mark.parametrize("budget", [*BUDGETS, LOW_BUDGET], ids=str)
def test_listing_rule(budget: Budget, wide: bool):
    design = design_of(budget, wide=wide)
    check_listing(Curator(design), design)


@pytest.mark.parametrize("budget", [Budget(0.3, 0.2), Budget(0.5, 0.1), Budget(1, 0.2), Budget(16, 1e-3)], ids=str)
def test_no_condition_on_the_rate_of_single_persons_is_needed(budget: Budget):
    """1/(1 − δ₁) may exceed the growth G that the residual leaves: the proof does without, and so does the release."""
    design = design_of(budget)
    a, last = design.threshold.noise.decay, design.threshold.integer - 1
    tried = 0
    for excess in range(last):
        growth = (1 - a ** (excess + 2) / (1 + a)) / (1 - a ** (excess + 1) / (1 + a))
        left = budget.epsilon - 2 * math.log(growth)
        if left > 0.01 * budget.epsilon and growth * (1 - design.threshold.single_person_rate) < 1:
            noise = DiscreteLaplace(Fraction(left * (1 - 1e-12)) / 2)
            bent = replace(design, clip=last - excess, residual_noise=noise)
            check_release(Curator(bent), budget, design.delta, beside=[0, 1])
            tried += 1
    assert tried


@pytest.mark.parametrize(
    ("epsilon", "threshold", "clip", "left"),
    [(1, 24, 21, 0.877), (2, 13, 11, 1.87), (3, 9, 8, 2.68), (4, 7, 6, 3.78), (5, 6, 5, 4.85), (6, 5, 4, 5.91)],
)
def test_known_figures(epsilon: float, threshold: int, clip: int, left: float):
    """T, T − 1 − j and ε₂ at δ = 1e-5, worked out by hand for the recipe."""
    design = design_of(Budget(epsilon, 1e-5))
    assert (design.threshold.integer, design.clip) == (threshold, clip)
    assert 2 * float(design.residual_noise.rate) == pytest.approx(left, abs=0.006)
