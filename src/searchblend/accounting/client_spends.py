"""What a client's report by randomized response costs, from the exact law of the mechanism.

A law is one pair of distributions that is at least as easy to tell apart as any two inputs of the mechanism. A channel
has many pairs of inputs, and none of them need be the worst at every α. So the hockey-stick curves of *all* ordered
pairs are bounded together: H(α) = max Σ (P − αP')₊ is convex, so the straight lines between its values on a grid lie
above it, and a convex curve with straight pieces is the curve of a pair that can be written down
(proofs/composition.md). Exact rationals until the last step. Standard library only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from searchblend.accounting.spend import PairLaw, Spend
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Neighbors
from searchblend.mechanisms.randomized_response import keep_probability

Vector = Sequence[Fraction]
Curve = tuple[tuple[int, int], ...]
"""a pair as the outcomes' (P, Q) in units of one common denominator; outcomes that are alike are one"""

_GRID_STEPS: Final = 48


def randomized_response_spend(epsilon: float, n_values: int) -> Spend:
    """k-ary randomized response over ``n_values`` values: one pair stands for all, whichever values they are."""
    if n_values < 2:
        raise InvalidParameter("n_values", "expected at least 2")
    truth = keep_probability(Fraction(epsilon), Fraction(0), n_values)
    lie = (1 - truth) / (n_values - 1)
    rest = (n_values - 2) * lie
    law = dominating_law([((truth, lie, rest), (lie, truth, rest))])
    return Spend(epsilon, 0.0, Neighbors.REPLACE_ONE, f"randomized response over {n_values} values", law)


def dominating_law(pairs: Iterable[tuple[Vector, Vector]]) -> PairLaw:
    """A pair that dominates each of these pairs in both directions."""
    vectors = [(one, other) for pair in pairs for one, other in (pair, pair[::-1])]
    unit = math.lcm(*{value.denominator for pair in vectors for vector in pair for value in vector})
    curves = {_curve(p, q, unit) for p, q in vectors} | {((unit, unit),)}
    grid = _grid(max(Fraction(p, q) for curve in curves for p, q in curve if p and q))
    heights = [max(_excess(curve, alpha) for curve in curves) / unit for alpha in grid]
    upper, lower = _pair_of_curve(grid, heights)
    return PairLaw(tuple(map(float, upper)), tuple(map(float, lower)))


def _curve(upper: Vector, lower: Vector, unit: int) -> Curve:
    """Pairs of inputs that look alike give the same curve, so that a large channel has few."""
    alike = Counter((_units(p, unit), _units(q, unit)) for p, q in zip(upper, lower, strict=True))
    return tuple(sorted((times * p, times * q) for (p, q), times in alike.items()))


def _units(value: Fraction, unit: int) -> int:
    return value.numerator * (unit // value.denominator)


def _excess(curve: Curve, alpha: Fraction) -> Fraction:
    above, below = alpha.numerator, alpha.denominator
    return Fraction(sum(p * below - q * above for p, q in curve if p * below > q * above), below)


def _grid(largest: Fraction) -> list[Fraction]:
    """0, then ratios evenly spaced in the loss from 1/largest to largest, these two and 1 exactly."""
    loss = math.log(largest)
    inner = {Fraction(math.exp(loss * step / _GRID_STEPS)) for step in range(-_GRID_STEPS + 1, _GRID_STEPS)}
    inside = {alpha for alpha in inner if 1 / largest < alpha < largest}
    return sorted({Fraction(0), 1 / largest, Fraction(1), largest} | inside)


def _pair_of_curve(grid: Sequence[Fraction], heights: Sequence[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    """The pair whose hockey-stick curve joins the points (α, H) with straight lines and is flat after the last.

    Q has at ratio α the change of slope there, P has α times that; P(loss = ∞) is the last height, and what is left
    of Q has ratio 0.
    """
    points = list(zip(grid, heights, strict=True))
    slopes = [(high - low) / (right - left) for (left, low), (right, high) in pairwise(points)]
    upper, lower = [Fraction(0)], [1 + slopes[0]]
    for alpha, before, after in zip(grid[1:], slopes, [*slopes[1:], Fraction(0)], strict=True):
        upper.append(alpha * (after - before))
        lower.append(after - before)
    upper.append(heights[-1])
    lower.append(Fraction(0))
    kept = [(p, q) for p, q in zip(upper, lower, strict=True) if p or q]
    return [p for p, _ in kept], [q for _, q in kept]
