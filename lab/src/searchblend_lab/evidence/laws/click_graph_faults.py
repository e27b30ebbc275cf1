"""Click graph selection with one thing wrong. A check that accepts one of these is not a check."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from searchblend.clickgraph.release.click_log import Cap
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.step import StepDesign
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.gaussian_account import least_threshold
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian, on_sigma_grid
from searchblend.mechanisms.tally import InMemoryTally
from searchblend_lab.zipf_log import ZipfLog

Change = Callable[[StepDesign], StepDesign]


def every_round(change: Change) -> Callable[[ClickGraphDesign], ClickGraphDesign]:
    def changed(design: ClickGraphDesign) -> ClickGraphDesign:
        rounds = set(map(id, design.rounds))
        return replace(design, steps=tuple(change(s) if id(s) in rounds else s for s in design.steps))

    return changed


def threshold_moved(by: int) -> Change:
    return lambda step: replace(step, threshold=(step.threshold or 0) + by * step.units)


def noise_scaled(factor: float) -> Change:
    def change(step: StepDesign) -> StepDesign:
        if isinstance(step.noise, RoundedGaussian):
            return replace(step, noise=RoundedGaussian(on_sigma_grid(step.noise.scale * factor)))
        return replace(step, noise=DiscreteLaplace(step.noise.rate / Fraction(factor)))

    return change


def delta_not_divided(step: StepDesign, delta: float | None = None) -> StepDesign:
    """The threshold is made for one query of a user, not for all of them."""
    allowed, above = delta or step.delta, step.units if step.cap.distinct else 1
    threshold = least_threshold(lambda t: step.noise.at_least(t - step.units) <= allowed, above=above)
    return replace(step, threshold=threshold)


def whole_delta_each_round(design: ClickGraphDesign) -> ClickGraphDesign:
    """The rounds do not share δ: each has the threshold of all of them together."""
    allowed = math.fsum(step.delta for step in design.rounds)

    def change(step: StepDesign) -> StepDesign:
        share = allowed / step.cap.first
        threshold = least_threshold(lambda t: step.noise.at_least(t - step.units) <= share, above=step.units)
        return replace(step, threshold=threshold)

    return every_round(change)(design)


EVERY = {
    "threshold one lower": every_round(threshold_moved(-1)),
    "threshold one higher": every_round(threshold_moved(1)),
    "noise halved": every_round(noise_scaled(0.5)),
    "noise of one count for two": every_round(noise_scaled(1 / math.sqrt(2))),
    "noise a tenth too wide": every_round(noise_scaled(1.1)),
}
"""wrong for every algorithm"""


class NotNormalised(ZipfLog):
    """Every query of a user weighs as much as if it were the only one."""

    def weighted_searches(self, first: int, units: int, without: Sequence[str]) -> InMemoryTally:
        tally = self.searches(Cap(first))
        return InMemoryTally(tally._universe, tally._numbers, tally._counts * units)


class CountedTwice(ZipfLog):
    """A user's searches enter twice."""

    def searches(self, cap: Cap) -> InMemoryTally:
        tally = super().searches(cap)
        return InMemoryTally(tally._universe, tally._numbers, tally._counts * 2)


def as_log(mutant: type[ZipfLog], log: ZipfLog) -> ZipfLog:
    return mutant(log._user, log._query)
