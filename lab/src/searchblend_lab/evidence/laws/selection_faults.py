"""Head-list selection with one thing wrong; same arguments as ``noisy_selection``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np

from searchblend.blender.groups import UserGroup
from searchblend.blender.paper.create_head_list import noisy_selection
from searchblend.core.randomness import Randomness
from searchblend.core.records import Record
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.threshold import Threshold
from searchblend_lab.evidence.laws.selection import Law, Sampled, Select


def threshold_moved(step: int) -> Select:
    def select(group: UserGroup, threshold: Threshold, *, randomness: Randomness) -> list[Record]:
        moved = replace(threshold, integer=threshold.integer + step)
        return noisy_selection(group, moved, randomness=randomness)

    return select


def no_noise_above_the_threshold(group: UserGroup, threshold: Threshold, *, randomness: Randomness) -> list[Record]:
    tally = group.tally()
    passed = noisy_selection(group, threshold, randomness=randomness)
    for count, how_many in tally.sizes().items():
        if count >= threshold.integer:
            passed += [record for record in tally.pick(count, np.arange(how_many)) if record not in passed]
    return passed


def reused_noise(group: UserGroup, threshold: Threshold, *, randomness: Randomness) -> list[Record]:
    """One draw for all records."""

    class OneDraw(Sampled):
        def sample(self, size: int, source: Randomness) -> np.ndarray:
            return np.full(size, threshold.noise.sample(1, source)[0])

    return noisy_selection(group, replace(threshold, noise=OneDraw()), randomness=randomness)  # type: ignore[arg-type]


def counted_twice(group: UserGroup, threshold: Threshold, *, randomness: Randomness) -> list[Record]:
    """A user's record entered twice: the bound on a person's contribution is skipped."""
    tally = group.tally()
    twice = SimpleNamespace(
        sizes=lambda: {2 * count: n for count, n in tally.sizes().items()},
        pick=lambda count, ranks: tally.pick(count // 2, ranks),
        pick_each=lambda wanted: {n: tally.pick(n // 2, ranks) for n, ranks in wanted.items()},
        at_least=lambda count: {2 * n: records for n, records in tally.at_least(-(-count // 2)).items()},
    )
    return noisy_selection(SimpleNamespace(tally=lambda: twice), threshold, randomness=randomness)


def noise_of_scale(factor: Fraction, noise: DiscreteLaplace) -> DiscreteLaplace:
    """Noise whose scale is ``factor`` times the right one."""
    return DiscreteLaplace(noise.rate / factor)


def cut_off(reach: int) -> Callable[[Law], Law]:
    """The law of a sampler whose table ends early; what lay beyond falls on 0."""

    def cut(law: Law) -> Law:
        inside = {y: p for y, p in law.items() if abs(y) <= reach}
        inside[0] += 1 - sum(inside.values())
        return inside

    return cut


def half_scale(group: UserGroup, threshold: Threshold, *, randomness: Randomness) -> list[Record]:
    halved = replace(threshold, noise=noise_of_scale(Fraction(1, 2), threshold.noise))
    return noisy_selection(group, halved, randomness=randomness)
