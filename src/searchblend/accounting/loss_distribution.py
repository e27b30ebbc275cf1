"""Totals by privacy loss distributions, composed with Google's dp-accounting. The one place that loads it (slowly).

Never optimistic (proofs/composition.md):
- an atom between two grid points is split onto both so that P and Q keep their mass, which can only raise every δ;
- its loss is raised by 1e-12 first, more than any rounding of the logarithm;
- δ pays for every rounding after that: masses, and the Fourier transforms of the convolution, at their worst.
A δ that cannot pay for it gets no total from here (∞), and the sum stands.

dp-accounting's own neighbouring relation is not used: laws already dominate every ordered pair of neighbours, so each
distribution is given once, as symmetric.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from searchblend.accounting.laws import LossStep
from searchblend.accounting.spend import Spend

_FINEST: Final = 2.0**-14
_MAX_POINTS: Final = 1 << 19
_LOSS_MARGIN: Final = 1e-12
_MASS_ROUNDING: Final = 2.0**-46
_TRANSFORM_ROUNDING: Final = 2 * 8 * 2.0**-53
"""per convolution, level of the transform and square root of a point; the 2 is for P and Q"""


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
