"""What all releases about the same people cost together, and whether one more fits under a cap.

Two totals: the sum (basic composition), and privacy loss distributions; the smaller one counts and is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from searchblend.accounting.loss_distribution import epsilon_by_loss_distribution
from searchblend.accounting.spend import Spend, common_relation, decimal, under
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget, Neighbors

BASIC: Final = "basic composition"
LOSS_DISTRIBUTION: Final = "privacy loss distributions"


@dataclass(frozen=True)
class Totals:
    """The cost of several releases to one user id, at one total δ."""

    releases: int
    neighbors: Neighbors
    delta: float
    """the total δ at which ε is stated"""
    summed_epsilon: float
    summed_delta: float
    loss_distribution_epsilon: float
    """∞ where loss distributions say nothing at this δ"""
    rho: float | None = None
    """Σρ (zero-concentrated privacy), if every one of the releases has one"""

    @property
    def basic_epsilon(self) -> float:
        """Σε, which counts only if Σδ stays within the total δ; else ∞."""
        return self.summed_epsilon if self.summed_delta <= self.delta else math.inf

    @property
    def epsilon(self) -> float:
        return min(self.basic_epsilon, self.loss_distribution_epsilon)

    @property
    def method(self) -> str:
        """Whose the smaller total is."""
        return LOSS_DISTRIBUTION if self.loss_distribution_epsilon < self.basic_epsilon else BASIC

    def as_json(self) -> dict[str, Any]:
        return {
            "releases": self.releases,
            "neighbors": self.neighbors.name,
            "delta": self.delta,
            "epsilon": _finite(self.epsilon),
            "method": self.method,
            "basic": {"epsilon": self.summed_epsilon, "delta": self.summed_delta},
            "loss_distribution_epsilon": _finite(self.loss_distribution_epsilon),
            "rho": self.rho,
        }


@dataclass(frozen=True)
class BudgetCap:
    """The most that one user id may be charged: for each window, and over all windows of the population.

    Kept by summing, which holds even if each release is chosen after looking at the ones before. ``planned`` says
    that the sequence of laws was fixed beforehand; only then may the smaller total stand in (proofs/composition.md).
    """

    window: Budget | None = None
    lifetime: Budget | None = None
    planned: bool = False

    def __post_init__(self) -> None:
        if self.window is None and self.lifetime is None:
            raise InvalidParameter("cap", "expected a budget for a window, for a lifetime, or both")


def total_of(spends: Iterable[Spend], delta: float) -> Totals:
    """Both totals of these releases at a total δ in (0, 1)."""
    if not 0 < delta < 1:
        raise InvalidParameter("delta", "expected a number in (0, 1)")
    stated, relation = _under_one_relation(spends)
    summed_epsilon, summed_delta = map(float, _sums(stated))
    composed = epsilon_by_loss_distribution(stated, delta)
    return Totals(len(stated), relation, delta, summed_epsilon, summed_delta, composed, _total_rho(stated))


def _total_rho(spends: Sequence[Spend]) -> float | None:
    known = [spend.rho for spend in spends if spend.rho is not None]
    return math.fsum(known) if len(known) == len(spends) else None


def fits(spends: Sequence[Spend], budget: Budget, *, planned: bool = False) -> bool:
    """Whether all of these together stay within the budget; exactly at it they do."""
    stated, _ = _under_one_relation(spends)
    summed_epsilon, summed_delta = _sums(stated)
    if summed_epsilon <= decimal(budget.epsilon) and summed_delta <= decimal(budget.delta):
        return True
    return planned and epsilon_by_loss_distribution(stated, budget.delta) <= budget.epsilon


def remaining(spends: Sequence[Spend], budget: Budget, *, planned: bool = False) -> tuple[float, float]:
    """(ε, δ) that the cap has left, by the rule that keeps it; under ``planned`` ε is what is left at the cap's δ."""
    stated, _ = _under_one_relation(spends)
    summed_epsilon, summed_delta = _sums(stated)
    epsilon, delta = decimal(budget.epsilon) - summed_epsilon, decimal(budget.delta) - summed_delta
    if planned:
        best = budget.epsilon - epsilon_by_loss_distribution(stated, budget.delta)
        if delta < 0 or best > epsilon:
            return max(best, 0.0), max(float(delta), 0.0)
    return max(float(epsilon), 0.0), max(float(delta), 0.0)


def default_delta(spends: Iterable[Spend]) -> float:
    """A total δ for people who name none: the releases' own, and a millionth for the loss distributions."""
    _, summed_delta = _sums(_under_one_relation(spends)[0])
    return min(float(summed_delta) + 1e-6, 0.5)


def for_group(budget: Budget, ids: int) -> tuple[float, float]:
    """(ε, δ) for one person behind k user ids, or for k people together: (kε, δ(e^{kε} − 1)/(e^ε − 1))."""
    if ids < 1:
        raise InvalidParameter("ids", "expected at least 1")
    epsilon = budget.epsilon
    if ids * epsilon > 700:
        return ids * epsilon, 1.0
    return ids * epsilon, min(1.0, budget.delta * math.expm1(ids * epsilon) / math.expm1(epsilon))


def _under_one_relation(spends: Iterable[Spend]) -> tuple[list[Spend], Neighbors]:
    listed = list(spends)
    relation = common_relation(listed)
    return [under(relation, spend) for spend in listed], relation


def _sums(spends: Sequence[Spend]) -> tuple[Fraction, Fraction]:
    """Σε and Σδ of the printed numbers, exactly."""
    zero = Fraction(0)
    return sum((decimal(s.epsilon) for s in spends), zero), sum((decimal(s.delta) for s in spends), zero)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
