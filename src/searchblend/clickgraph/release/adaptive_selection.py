"""Selection in two rounds, of which the first only directs the second and publishes what is certain.

Weights with noise tell after a first round which queries are common enough to be worth a user's weight: those that
nothing speaks for drop out, those that are published at once need no more, and each user spreads a fresh weight of
norm 1 over the rest of their queries, a handful instead of all. What the second round finds is added to the first's.
The noisy weights of the first round are never published, so only the outcome pays for naming; they may be used for
that because the noise is drawn for every query that anyone has, whatever becomes of it. In the spirit of adaptive
weighting (Chen, Cohen-Addad, Epasto, Zadimoghaddam 2025), with another rule and a proof of its own:
proofs/adaptive_selection.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from searchblend.mechanisms.gaussian_account import Floats, Reach, normal_tail, units_for, weight
from searchblend.mechanisms.rounded_gaussian import LARGEST_SIGMA, RoundedGaussian, distance_bound, on_sigma_grid
from searchblend.mechanisms.threshold import least_integer

FIRST_SHARE: Final = Fraction(9, 20)
"""of μ² for the first round"""
RUNNING_FROM: Final = 2.0
"""a query stays in the running from this many standard deviations of the first round's noise on"""
CARRIED: Final = 0.5
"""how much the first round's weights count in the second, times what independent sums of equal weights would"""
CERTAIN_SHARE: Final = 0.1
"""of the threshold's δ, for what the first round publishes"""
PARTS: Final = 1024
_CELLS: Final = 60
_GROWTH: Final = 1.2
"""users are looked at in groups by their number of queries; the bound is that of the group's worst"""
_SLACK: Final = 1e-8


@dataclass(frozen=True)
class FirstRound:
    """The round whose noisy weights Z₁ direct the second one; all in whole numbers."""

    noise: RoundedGaussian
    units: int
    lower: int
    """queries below it drop out"""
    upper: int
    """queries from it on are published"""
    carried: int
    """1024ths of Z₁ that are added to the second round's weights"""

    @property
    def mu_squared(self) -> float:
        return (self.units / self.noise.scale) ** 2

    @property
    def largest_carried(self) -> int:
        """The most that one user's weight here adds to the second round's."""
        return -(-self.carried * self.units // PARTS)

    @cached_property
    def cells(self) -> tuple[Floats, Floats]:
        """The range from ``lower`` to ``upper`` in cells: first whole numbers of each, and the one after the last."""
        edges = np.unique(np.linspace(self.lower, self.upper, _CELLS + 1).round())
        return edges[:-1], edges[1:]

    def as_json(self) -> dict[str, Any]:
        figures = {name: getattr(self, name) for name in ("units", "lower", "upper", "carried")}
        return {"noise_scale": self.noise.scale, **figures}

    def release_probability(self, users: float, units: int, noise: RoundedGaussian, threshold: int) -> float:
        """How likely a query is published that so many users search, and nothing else; to plan with."""
        first, after = self.cells
        z, sigma = users * self.units, self.noise.scale
        within = normal_tail((first - 0.5 - z) / sigma) - normal_tail((after - 0.5 - z) / sigma)
        missing = threshold - self.carried / PARTS * (first + after - 1) / 2 - users * units
        named = within * normal_tail((missing - 0.5) / noise.scale)
        return float(named.sum() + normal_tail((self.upper - 0.5 - z) / sigma))


def two_rounds(cap: int, relative: float, delta: float) -> tuple[FirstRound, Fraction, int]:
    """The first round, σ and units of the second.

    Args:
        cap: how many queries of a user take part
        relative: σ for weight 1, if there were one round
        delta: of the thresholds
    """
    (sigma, units), (second_sigma, second_units) = (
        _sized(cap, relative / math.sqrt(share)) for share in (FIRST_SHARE, 1 - FIRST_SHARE)
    )
    noise = RoundedGaussian(sigma)
    allowed = CERTAIN_SHARE * delta
    upper = least_integer(lambda t: _certain_alone(cap, units, noise, t) <= allowed, above=units)
    carried = CARRIED * float(FIRST_SHARE / (1 - FIRST_SHARE)) * second_units / units
    lower = max(math.ceil(RUNNING_FROM * float(sigma)), units + 1)
    return FirstRound(noise, units, lower, upper, round(PARTS * carried)), second_sigma, second_units


def _sized(cap: int, relative: float) -> tuple[Fraction, int]:
    """σ on its grid and units of weight 1, where σ for weight 1 is given."""
    units = units_for(relative, cap)
    return min(on_sigma_grid(relative * units), Fraction(LARGEST_SIGMA)), units


def _certain_alone(cap: int, units: int, noise: RoundedGaussian, threshold: int) -> float:
    """The expected number of a user's own queries that the first round publishes, at most."""
    return max(s * noise.at_least(threshold - weight(units, s)) for s in range(1, cap + 1))


class OwnQueries:
    """How likely a query that one user alone has is published, as a function of the second round's threshold.

    For a user with s queries, k of them their own: the expected number of those that are published, which bounds the
    probability that any is. An own query weighs w(s) in the first round, and at most w(1 + others in the running) in
    the second; whether *other own* queries are in the running does not depend on its own noise.
    """

    def __init__(self, cap: int, first: FirstRound, sigma: float, units: int) -> None:
        self._sigma = sigma
        self._weights = np.array([weight(units, m) for m in range(1, cap + 1)], dtype=np.float64)
        cells_from, cells_to = first.cells
        self._carried = first.carried * (cells_to - 1) / PARTS
        self._groups = [(most, *_of_group(first, cells_from, cells_to, least, most)) for least, most in _groups(cap)]

    def named(self, threshold: int) -> float:
        """At most so often something of one user alone is published."""
        worst = 0.0
        for most, cells, certain, others in self._groups:
            beyond = threshold - self._carried[:, None] - self._weights[None, :most]
            tails = cells @ normal_tail((beyond - 0.5) / self._sigma)
            expected = np.arange(1, most + 1) * (certain + others @ tails)
            worst = max(worst, float(expected.max()))
        return min(worst * (1 + _SLACK), 1.0)


def _groups(cap: int) -> Iterator[tuple[int, int]]:
    """Ranges of the number of a user's queries, from 1 to the cap."""
    least = 1
    while least <= cap:
        most = min(max(least, math.floor(least * _GROWTH)), cap)
        yield least, most
        least = most + 1


def _of_group(
    first: FirstRound, cells_from: Floats, cells_to: Floats, least: int, most: int
) -> tuple[Floats, float, Floats]:
    """Of a user with ``least`` to ``most`` queries, at the worst: an own query's probability in each cell, and of being
    certain; and row k − 1 of others: how many of k − 1 other own queries are in the running, with the least chance."""
    sigma, heaviest, lightest = first.noise.scale, weight(first.units, least), weight(first.units, most)

    def in_cells(held: int) -> Floats:
        tails: Floats = normal_tail((np.append(cells_from, cells_to[-1]) - 0.5 - held) / sigma)
        return tails[:-1] - tails[1:]

    running = float(in_cells(lightest).sum()) * (1 - _SLACK)
    others = np.zeros((most, most))
    others[0, 0] = 1.0
    for k in range(1, most):
        others[k, : k + 1] = others[k - 1, : k + 1] * (1 - running)
        others[k, 1 : k + 1] += others[k - 1, :k] * running
    certain = float(normal_tail((first.upper - 0.5 - heaviest) / sigma))
    return in_cells(heaviest), certain, others


def reach_of_two_rounds(first: FirstRound, units: int, sigma: float, named: float) -> Reach:
    """Both rounds as one step: the norms of both add up, and what is named of a user's own is not independent of how
    their weight was spread."""
    quiet = math.log1p(-named) if named < 1 else -math.inf
    return Reach.one(first.mu_squared + (units / sigma) ** 2, quiet, entwined=True)


def sampler_distance(cap: int, first: FirstRound) -> float:
    """What the first round's draws are off the ideal law."""
    return cap * distance_bound(first.noise.scale)
