"""One step of a release: whose counts, what noise, which threshold, and what it costs.

And how likely a query of given frequency is published ([KKMN09] Fig. 1), and how many accounts force it out (§8):
differential privacy is no defence against people who want a string to appear. These figures belong in every plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from searchblend.clickgraph.release.adaptive_selection import FirstRound, sampler_distance
from searchblend.clickgraph.release.click_log import Cap
from searchblend.clickgraph.release.noise_law import NoiseLaw
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.gaussian_account import weight
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian
from searchblend.mechanisms.threshold import least_integer

FALSE_EDGE_RATE: Final = 0.01
"""How often a candidate pair without a click passes the suggested cut."""
SURE: Final = 1 - math.exp(-5) / 2
"""The paper's "virtually guaranteed": noise of 5b or more on the wrong side is left out."""


@dataclass(frozen=True)
class StepPlan:
    """A step before its noise is known."""

    name: str
    cap: Cap
    share: Fraction
    """of ε with Laplace noise, of μ² with Gaussian noise"""
    thresholded: bool = True
    """whether the log decides what is counted"""
    weighted: bool = False
    rounds: bool = False
    adaptive: bool = False
    """whether a first round of weights directs where a second one goes"""
    delta: float | None = None
    """what its threshold may use; None: as much as the others leave"""
    windows: bool = False
    """whether it is taken in several windows that share their caps"""


@dataclass(frozen=True)
class CountThreshold:
    """Publish iff N + Y ≥ T."""

    integer: int
    noise: DiscreteLaplace | RoundedGaussian


@dataclass(frozen=True)
class StepDesign:
    """A step as it will be run; public, made from parameters alone."""

    name: str
    cap: Cap
    """what each user contributes"""
    noise: DiscreteLaplace | RoundedGaussian
    epsilon: float
    """of this step alone, at ``delta`` with Laplace noise and at the δ of the release with Gaussian noise"""
    delta: float
    """the probability, at most, that something of one user alone is named"""
    threshold: int | None = None
    """T; without one every count is published, and which counts there are is not taken from the log"""
    units: int = 1
    """what a user's weight 1 is in counts"""
    printed_threshold: float | None = None
    """K of the paper, where it has one"""
    mu: float | None = None
    """Δ/σ with Gaussian noise"""
    first_round: FirstRound | None = None
    """what directs this step, and is added to it"""

    @property
    def count_threshold(self) -> CountThreshold:
        if self.threshold is None:
            raise AssertionError(f"{self.name} has no threshold")
        return CountThreshold(self.threshold, self.noise)

    @property
    def largest_part(self) -> int:
        """The most that one user adds to what the threshold is compared with."""
        if not self.cap.distinct:
            return self.cap.first
        carried = 0 if self.first_round is None else self.first_round.largest_carried
        return self.units + carried

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise for readers of the release."""
        gaussian = isinstance(self.noise, RoundedGaussian)
        return NoiseLaw("rounded_gaussian" if gaussian else "discrete_laplace", self.noise.scale)

    @property
    def edge_cut(self) -> int:
        """The least count at which an edge is taken for real; pairs that passed a threshold need no other."""
        return self.threshold or self.law.false_edge_cut(FALSE_EDGE_RATE)

    @property
    def sampler_distance(self) -> float:
        """What all draws that a neighbour could see are off the ideal law: one for each thing a user contributes."""
        own = self.cap.first * self.noise.distance
        return own if self.first_round is None else own + sampler_distance(self.cap.first, self.first_round)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "first": self.cap.first,
            "unit": "users" if self.cap.distinct else "impressions",
            "noise": {"law": self.law.law, "scale": self.noise.scale, "variance": self.noise.variance},
            "threshold": self.threshold,
            "printed_threshold": self.printed_threshold,
            "units": self.units,
            "mu": self.mu,
            "epsilon": self.epsilon,
            "delta": self.delta,
            **({} if self.first_round is None else {"first_round": self.first_round.as_json()}),
        }


def release_probability(count: float, threshold: float, noise_scale: float) -> float:
    """P(M + Lap(b) > K), the paper's real numbers. Fig. 1"""
    distance = (count - threshold) / noise_scale
    return math.exp(distance) / 2 if distance <= 0 else 1 - math.exp(-distance) / 2


def step_release_probability(step: StepDesign, count: int) -> float:
    """P(N + Y ≥ T) for something that occurs ``count`` ≥ 1 times: users or impressions, in units where they weigh."""
    threshold = step.count_threshold
    if step.first_round is not None and isinstance(step.noise, RoundedGaussian):
        return step.first_round.release_probability(count / step.units, step.units, step.noise, threshold.integer)
    return threshold.noise.at_least(threshold.integer - count)


def step_accounts_to_force(step: StepDesign) -> int:
    """The least number of accounts whose searches alone publish a query with near certainty (``SURE``), [KKMN09] §8.

    Each does all it can for the one query: searches it ``first`` times where repeats count, and searches nothing else
    where weights are shared out.
    """
    each = weight(step.units, 1) if step.cap.distinct else step.cap.first
    return least_integer(lambda accounts: step_release_probability(step, accounts * each) >= SURE, above=0)
