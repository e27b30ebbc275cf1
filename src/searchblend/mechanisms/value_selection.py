"""Which values many users share: noise and threshold of a selection, made from the budget alone.

Every value that occurs draws noise, and is named with its noisy number of users if that reaches T. What one user can
move decides how much noise that is: one value or up to d of them, and whether a neighbour lacks the user or has another
in their place. Discrete Laplace noise grows with d (proofs/stability_histogram.md), Gaussian noise with √d
(proofs/gaussian_threshold.md, proofs/many_records.md); the one that names values of fewer users is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from searchblend.core.errors import InvalidParameter
from searchblend.core.params import MOST_VALUES_PER_USER, check_epsilon
from searchblend.core.privacy import Budget, Neighbors
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.gaussian_account import (
    largest_mu,
    named_alone,
    reach_of_users,
    replaced_delta,
    total_delta,
)
from searchblend.mechanisms.rounded_gaussian import LARGEST_SIGMA, RoundedGaussian, distance_bound, on_sigma_grid
from searchblend.mechanisms.threshold import least_integer

_TRIED: Final = tuple(1 + step / 64 for step in range(24))
"""how much more than the least noise is tried: it leaves more of δ to the threshold"""
_SLACK: Final = 1e-9
"""more than the floating-point error of a δ"""
_FAR: Final = 1 << 40
"""a threshold that no single user reaches: what is left of δ is the noise's"""
_Noise = DiscreteLaplace | RoundedGaussian


@dataclass(frozen=True)
class SelectionDesign:
    """Noise and threshold of one selection; public."""

    budget: Budget
    neighbors: Neighbors
    values_per_user: int
    integer: int
    """T: named iff N + Y ≥ T"""
    noise: _Noise
    """Y"""
    mechanism_delta: float
    """δ at the budget's ε with ideal noise"""
    selection_delta: float
    """the largest probability that something of one user alone is named"""

    @classmethod
    def of(
        cls, budget: Budget, neighbors: Neighbors = Neighbors.REPLACE_ONE, *, values_per_user: int = 1
    ) -> SelectionDesign:
        """The least threshold that the budget allows, of either noise."""
        check_epsilon(budget)
        if type(values_per_user) is not int or not 1 <= values_per_user <= MOST_VALUES_PER_USER:
            raise InvalidParameter(
                "values_per_user",
                f"expected a whole number from 1 to {MOST_VALUES_PER_USER}, found {values_per_user!r}",
            )
        designs = [_with_laplace(budget, neighbors, values_per_user)]
        if values_per_user > 1:
            designs += _with_gaussian(budget, neighbors, values_per_user)
        return min(designs, key=lambda design: design.integer)

    @property
    def sampler_delta(self) -> float:
        """What the sampler's distance adds to δ."""
        return _sampler_delta(self.noise, self.budget, _moved(self.neighbors) * self.values_per_user)

    @property
    def delta(self) -> float:
        """What is really used of the budget's δ."""
        return self.mechanism_delta + self.sampler_delta

    @property
    def method(self) -> str:
        """As a statement calls it."""
        return "Gaussian sparse histogram" if isinstance(self.noise, RoundedGaussian) else "stability histogram"

    @property
    def contribution(self) -> str:
        """What bounds one user's part, in words."""
        if self.values_per_user == 1:
            return "one random value of each user is counted"
        return f"up to {self.values_per_user} different values of each user are counted, drawn at random"


def _moved(neighbors: Neighbors) -> int:
    """How many users differ between neighbours: one who is replaced counts as one gone and one come."""
    return 2 if neighbors is Neighbors.REPLACE_ONE else 1


def _sampler_delta(noise: _Noise, budget: Budget, draws: int) -> float:
    """Of so many noises that differ between neighbours (proofs/discrete_laplace.md)."""
    distance = distance_bound(noise.scale) if isinstance(noise, RoundedGaussian) else noise.distance
    return (1 + math.exp(budget.epsilon)) * draws * distance


def _with_laplace(budget: Budget, neighbors: Neighbors, cap: int) -> SelectionDesign:
    """ε is shared out among the counts that move; δ is what names something of a user that no one else has."""
    moved = _moved(neighbors) * cap
    noise = DiscreteLaplace(Fraction(budget.epsilon) / moved)
    left = _left(budget, _sampler_delta(noise, budget, moved)) * (1 - _SLACK)

    def named(threshold: int) -> float:
        return -math.expm1(cap * math.log1p(-noise.at_least(threshold - 1)))

    threshold = least_integer(lambda t: named(t) <= left, above=1)
    return SelectionDesign(budget, neighbors, cap, threshold, noise, named(threshold), named(threshold))


def _with_gaussian(budget: Budget, neighbors: Neighbors, cap: int) -> Iterator[SelectionDesign]:
    """A range of noises, each with its least threshold."""
    least = math.sqrt(_moved(neighbors) * cap) / largest_mu(budget.epsilon, budget.delta)
    for factor in _TRIED:
        if least * factor < LARGEST_SIGMA:
            yield from _of_sigma(budget, neighbors, cap, RoundedGaussian(on_sigma_grid(least * factor)))


def _of_sigma(budget: Budget, neighbors: Neighbors, cap: int, noise: RoundedGaussian) -> Iterator[SelectionDesign]:
    """With the least threshold, if there is one."""
    account: Callable[..., float] = replaced_delta if neighbors is Neighbors.REPLACE_ONE else total_delta
    left = _left(budget, _sampler_delta(noise, budget, _moved(neighbors) * cap))

    def spent(threshold: int) -> float:
        return account(budget.epsilon, reach_of_users(cap, noise.scale, threshold))

    if spent(_FAR) <= left:
        threshold = least_integer(lambda t: spent(t) <= left, above=1)
        alone = named_alone(reach_of_users(cap, noise.scale, threshold))
        yield SelectionDesign(budget, neighbors, cap, threshold, noise, spent(threshold), alone)


def _left(budget: Budget, sampler_delta: float) -> float:
    """Of δ, when the sampler has its part."""
    if budget.delta <= sampler_delta:
        raise InvalidParameter("delta", "too small at this ε: it must cover the noise sampler's own distance")
    return budget.delta - sampler_delta
