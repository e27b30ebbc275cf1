"""One step of a release: whose counts, what noise, which threshold, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from searchblend.clickgraph.release.click_log import Cap
from searchblend.clickgraph.release.noise_law import NoiseLaw
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian


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
    delta: float | None = None
    """what its threshold may use; None: as much as the others leave"""


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

    @property
    def count_threshold(self) -> CountThreshold:
        if self.threshold is None:
            raise AssertionError(f"{self.name} has no threshold")
        return CountThreshold(self.threshold, self.noise)

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise for readers of the release."""
        gaussian = isinstance(self.noise, RoundedGaussian)
        return NoiseLaw("rounded_gaussian" if gaussian else "discrete_laplace", self.noise.scale)

    @property
    def sampler_distance(self) -> float:
        """What all draws that a neighbour could see are off the ideal law: one for each thing a user contributes."""
        return self.cap.first * self.noise.distance

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
        }
