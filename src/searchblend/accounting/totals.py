"""What all releases about the same people cost together, and whether one more fits under a cap.

Two totals: the sum (basic composition), and privacy loss distributions; the smaller one counts and is named.
Loss distributions are composed with Google's dp-accounting, and never optimistic (proofs/composition.md):
- an atom between two grid points is split onto both so that P and Q keep their mass, which can only raise every δ;
- its loss is raised by 1e-12 first, more than any rounding of the logarithm;
- δ pays for every rounding after that: masses, and the Fourier transforms of the convolution, at their worst.
A δ that cannot pay for it gets no total from there (∞), and the sum stands.

dp-accounting's own neighbouring relation is not used: laws already dominate every ordered pair of neighbours, so each
distribution is given once, as symmetric.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from searchblend.accounting.spend import LossStep, Spend, common_relation, decimal, under
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget, Neighbors

BASIC: Final = "basic composition"
LOSS_DISTRIBUTION: Final = "privacy loss distributions"
_FINEST: Final = 2.0**-14
_MAX_POINTS: Final = 1 << 19
_LOSS_MARGIN: Final = 1e-12
_MASS_ROUNDING: Final = 2.0**-46
_TRANSFORM_ROUNDING: Final = 2 * 8 * 2.0**-53
"""per convolution, level of the transform and square root of a point; the 2 is for P and Q"""


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


def epsilon_by_loss_distribution(spends: Iterable[Spend], delta: float) -> float:
    """The least ε, rounded up, such that all of these together are (ε, δ)-private; ∞ if there is none to be had."""
    steps: Counter[LossStep] = Counter()
    for spend in spends:
        for step, times in spend.steps:
            steps[step] += times
    if not steps:
        return 0.0
    interval = grid_interval(steps)
    left = delta - numeric_delta(steps, interval)
    if left <= 0:
        return math.inf
    return float(_composed(steps, interval).get_epsilon_for_delta(left))


def grid_interval(steps: Counter[LossStep]) -> float:
    """Distance of the grid points: 2^-14, doubled until the composition has at most 2^19 of them.

    Coarser grids are made of the finer ones' points, so a longer list of releases never has a smaller total.
    """
    interval = _FINEST
    while _points(steps, interval) > _MAX_POINTS:
        interval *= 2
    return interval


def numeric_delta(steps: Counter[LossStep], interval: float) -> float:
    """What floating point can have hidden of δ."""
    times = steps.total()
    points = _points(steps, interval)
    transforms = (times + len(steps)) * math.sqrt(points) * math.log2(points)
    return times * _MASS_ROUNDING + _TRANSFORM_ROUNDING * transforms


def _points(steps: Counter[LossStep], interval: float) -> float:
    return sum(times * (2 * step.largest / interval + 3) for step, times in steps.items())


def on_grid(step: LossStep, interval: float) -> dict[int, float]:
    """Mass by grid point. An atom ℓ between a and b gives b the share (1 − e^{a−ℓ})/(1 − e^{a−b}), a the rest."""
    masses: dict[int, float] = {}
    for exact, mass in step.atoms:
        loss = exact + _LOSS_MARGIN
        below = math.floor(loss / interval)
        share = math.expm1(below * interval - loss) / math.expm1(-interval)
        above = min(max(share, 0.0), 1.0) * mass
        masses[below] = masses.get(below, 0.0) + (mass - above)
        masses[below + 1] = masses.get(below + 1, 0.0) + above
    return masses


def _composed(steps: Counter[LossStep], interval: float) -> Any:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution  # slow to load, rarely needed

    total: Any = None
    for step, times in sorted(steps.items(), key=lambda item: (item[0].infinite, item[0].atoms)):
        one = PrivacyLossDistribution.create_from_rounded_probability(
            on_grid(step, interval), step.infinite, interval, pessimistic_estimate=True
        )
        repeated = one.self_compose(times, tail_mass_truncation=0.0)
        total = repeated if total is None else total.compose(repeated, tail_mass_truncation=0.0)
    return total
