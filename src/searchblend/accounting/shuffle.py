"""What those who see only the counts of reports learn of one client: a bound in the shuffle model.

Results are computed from how often each report came, never from who sent it. One client's report then hides among the
others'. Every report has a part that does not depend on what its client holds, the *blanket* (Balle, Bell, Gascón,
Nissim 2019): output y is sent with probability at least b(y) = min over inputs, whoever sends it. With n clients, one
of whom holds x or x', and N ~ Multinomial(n, b),

    δ(ε) ≤ E[(Σ_y N_y (R_x(y) − e^ε R_x'(y)) / b(y))₊] / n.

With the law of one input in the place of b it is an equality: the δ of a concrete pair of neighbours, in which all
other clients hold that input. So one function computes the bound and a value that no bound can go below.

The expectation is computed from above (proofs/shuffle.md): values are moved onto a grid so that their mean stays, which
can only raise the expectation of a convex function; sums of non-negative floats have a relative error that is paid
for; tails that are cut off are added to δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchblend.core.errors import InvalidParameter
from searchblend.mechanisms.fixed_point import exp_fraction_bounds

ADVERSARY: Final = "those who see only what is published: neither the collector, nor the network, nor the device"
ASSUMPTION: Final = "the other clients of the round report as the protocol says, independently of each other"
MOST_CLIENTS: Final = 1 << 36
_STEPS_OF_LARGEST: Final = 64
"""the first grid: so many steps to the largest value of one report"""
_MOST_POINTS: Final = 512
_CUT: Final = 1e-30
"""mass of an upper tail that may be cut off, at every step"""
_ROUNDING: Final = 2.0**-42
"""relative error of a probability, for each client summed: a sum of 513 products and the coarsening, many times over"""
_LOSS_MARGIN: Final = 1e-12
_HALVINGS: Final = 9
Floats = NDArray[np.float64]


class OutputClass(NamedTuple):
    """Outputs with the same ratios, taken together."""

    upper: Fraction
    """P: how likely they are if the client holds x"""
    lower: Fraction
    """Q: if the client holds x'"""
    others: Fraction
    """what every other client sends of them at least, whatever it holds"""


Pair = tuple[OutputClass, ...]
"""two inputs of a local mechanism, and the blanket; masses of P and of Q sum to 1"""


class ShuffledReports(NamedTuple):
    """The pairs of inputs of a client's mechanism, as what is seen of them in a crowd."""

    bounds: tuple[Pair, ...]
    """all pairs, against the blanket"""
    concrete: tuple[Pair, ...]
    """some pairs, against others who all hold one input"""
    cells: int = 1
    """reports of one client (m_C), each counted on its own"""


@dataclass(frozen=True)
class ShuffleCost:
    """(ε, δ) of the published counts under replace-one, beside the local ε."""

    clients: int
    delta: float
    epsilon: float
    """no more than this is lost, rounded up"""
    at_least: float
    """ε that a concrete pair of neighbours already needs at this δ, up to the error of the grid (below 1 %)"""


def shuffle_cost(reports: ShuffledReports, clients: int, delta: float, local_epsilon: float) -> ShuffleCost:
    """The cost to one of ``clients`` of publishing all counts of reports; never more than the local ε."""
    if not 1 <= clients <= MOST_CLIENTS:
        raise InvalidParameter("clients", f"expected 1 to {MOST_CLIENTS}")
    if not 0 < delta < 1:
        raise InvalidParameter("delta", "expected a number in (0, 1)")
    return _cost(reports, clients, delta, local_epsilon)


@lru_cache(maxsize=256)
def _cost(reports: ShuffledReports, clients: int, delta: float, local_epsilon: float) -> ShuffleCost:
    cells = reports.cells
    upper = _least_epsilon(reports.bounds, clients * cells, delta, local_epsilon, cells)
    lower = _least_epsilon(reports.concrete, clients, delta, local_epsilon, 1) if cells == 1 else 0.0
    above, below = _to_digits(upper, ROUND_CEILING), _to_digits(lower, ROUND_FLOOR)
    return ShuffleCost(clients, delta, min(above, local_epsilon), min(above, below, local_epsilon))


def _to_digits(value: float, rounding: str) -> float:
    """Three digits are enough for people; a larger ε is always safe to state."""
    return float(Context(prec=3, rounding=rounding).create_decimal(value))


def _least_epsilon(pairs: Sequence[Pair], reports: int, delta: float, ceiling: float, cells: int) -> float:
    """About the least ε, from above, at which every one of these pairs is within δ; at most the ceiling.

    The pair that looks worst is searched first; another one is searched only if it is not within δ there.
    """
    epsilon = 0.0
    for pair in sorted(pairs, key=_distance, reverse=True):

        def is_within(candidate: float, pair: Pair = pair) -> bool:
            one = shuffled_delta(pair, reports, candidate / cells)
            return one * _group_factor(candidate / cells, cells) <= delta

        if epsilon < ceiling and not is_within(epsilon):
            epsilon = _search(epsilon, _guess(pair, reports, delta) * cells, ceiling, is_within)
    return epsilon


def _guess(pair: Pair, reports: int, delta: float) -> float:
    """About the ε of a Gaussian shift as large as this pair's: where a search may begin."""
    shift = math.sqrt(_distance(pair) / reports)
    return shift * (math.sqrt(2 * math.log(1 / delta)) + shift / 2)


def _search(low: float, guess: float, ceiling: float, is_within: Callable[[float], bool]) -> float:
    """The least ε above ``low`` that is within, to a seventh of a percent; the ceiling if none below it is."""
    high = min(max(guess, 2 * low), ceiling)
    while high < ceiling and not is_within(high):
        low, high = high, min(2 * high, ceiling)
    while low < high / 2:
        middle = high / 2
        low, high = (low, middle) if is_within(middle) else (middle, high)
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_within(middle) else (middle, high)
    return high


def _group_factor(epsilon: float, changes: int) -> float:
    """By what δ grows for so many changes one after the other, each (ε, δ)."""
    return math.expm1(changes * epsilon) / math.expm1(epsilon) if epsilon > 0 else float(changes)


def _distance(pair: Pair) -> float:
    """Σ (P − Q)²/b: which pair is told apart most easily, nearly."""
    return float(sum((one.upper - one.lower) ** 2 / one.others for one in pair if one.others))


def shuffled_delta(pair: Pair, reports: int, epsilon: float) -> float:
    """An upper bound of the δ at this ε of the counts of so many reports, one of which is of x or of x'."""
    growth = exp_fraction_bounds(Fraction(epsilon))[0]
    atoms = [(one.upper - growth * one.lower, one.others) for one in pair]
    bare = sum((max(excess, Fraction(0)) for excess, others in atoms if not others), Fraction(0))
    covered = [(excess / others, others) for excess, others in atoms if others]
    largest = max((value for value, _ in covered), default=Fraction(0))
    hidden = 0.0
    if largest > 0:
        total, cut = _sum_of(_one_report(covered), reports)
        hidden = total.mean_above_zero() / reports + float(largest) * cut
    return (hidden + float(bare)) * (1 + 2 * reports * _ROUNDING + _LOSS_MARGIN)


@dataclass(frozen=True)
class _Sum:
    """The law of a sum of independent values on a grid: mass i is that of (first + i) · step."""

    step: float
    first: int
    mass: Floats

    def mean_above_zero(self) -> float:
        """E[(·)₊]"""
        values = np.maximum(self.first + np.arange(len(self.mass)), 0)
        return float(values @ self.mass) * self.step

    def coarser(self) -> _Sum:
        """Twice the step; what lies between two points of the new grid goes to both, half and half: the mean stays."""
        before = 1 + self.first % 2  # points in front, so that the first one is odd
        padded = np.concatenate([np.zeros(before), self.mass, np.zeros(2)])
        between, on_grid = padded[0::2], padded[1::2]
        count = min(len(between) - 1, len(on_grid))
        mass = on_grid[:count] + (between[:count] + between[1 : count + 1]) / 2
        return _Sum(2 * self.step, (self.first - before + 1) // 2, mass)

    def trimmed(self) -> tuple[_Sum, float]:
        """Without tails below the cut: the lower one is moved up to the first point kept, the upper one is lost."""
        upper = np.cumsum(self.mass[::-1])[::-1]
        lower = np.cumsum(self.mass)
        end = max(int(np.searchsorted(-upper, -_CUT)), 1)
        begin = min(int(np.searchsorted(lower, _CUT)), end - 1)
        mass = self.mass[begin:end].copy()
        mass[0] += float(self.mass[:begin].sum())
        return _Sum(self.step, self.first + begin, mass), float(self.mass[end:].sum())


def _one_report(covered: Sequence[tuple[Fraction, Fraction]]) -> _Sum:
    """What one of the others adds: each value with its mass, split onto two points of the grid; else 0."""
    step = max(abs(float(value)) for value, _ in covered) / _STEPS_OF_LARGEST
    points: dict[int, float] = {}
    rest = Fraction(1)
    for value, mass in covered:
        rest -= mass
        position = float(value) / step
        position += abs(position) * _LOSS_MARGIN
        below = math.floor(position)
        share = position - below
        points[below] = points.get(below, 0.0) + float(mass) * (1 - share)
        points[below + 1] = points.get(below + 1, 0.0) + float(mass) * share
    points[0] = points.get(0, 0.0) + float(rest)
    first = min(points)
    law = np.zeros(max(points) - first + 1)
    for point, mass_there in points.items():
        law[point - first] = mass_there
    return _Sum(step, first, law)


def _sum_of(one: _Sum, times: int) -> tuple[_Sum, float]:
    """The law of so many of them, and the mass that was cut off from above: repeated doubling."""
    block, lost = one, 0.0
    total: _Sum | None = None
    total_lost = 0.0
    while times:
        if times & 1:
            total, cut = (block, 0.0) if total is None else _added(total, block)
            total_lost += lost + cut
        times >>= 1
        if times:
            block, cut = _added(block, block)
            lost = 2 * lost + cut
    assert total is not None
    return total, total_lost


def _added(one: _Sum, other: _Sum) -> tuple[_Sum, float]:
    while one.step < other.step:
        one = one.coarser()
    while other.step < one.step:
        other = other.coarser()
    both, lost = _Sum(one.step, one.first + other.first, np.convolve(one.mass, other.mass)).trimmed()
    while len(both.mass) > _MOST_POINTS:
        both = both.coarser()
    return both, lost
