"""Is head-list selection, and are the noisy counts, as private as they say? Exact laws, and one exact test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import binomtest

from searchblend.blender.groups import InMemoryGroup, UserGroup
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import Record
from searchblend.mechanisms.threshold import Threshold
from searchblend_lab.evidence.laws.sampler import FALSE_ALARM

Select = Callable[..., Sequence[Record]]
"""``noisy_selection`` or a mutant: (group, threshold, *, randomness)."""
Law = dict[int, Fraction]


class Sampled:
    """Gives a class with ``sample`` what a threshold asks of it: which draws reach a floor, by drawing all."""

    def sample(self, size: int, randomness: Randomness) -> np.ndarray:
        raise NotImplementedError

    def reaching(self, floor: int, size: int, randomness: Randomness) -> tuple[np.ndarray, np.ndarray]:
        noise = self.sample(size, randomness)
        positions = np.flatnonzero(noise >= floor)
        return positions, noise[positions]


class FixedNoise(Sampled):
    """Noise that is always the same number: shows what the code does with each value."""

    def __init__(self, value: int) -> None:
        self.value = value

    def sample(self, size: int, randomness: Randomness) -> np.ndarray:
        return np.full(size, self.value, dtype=np.int64)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the selection asked for {name} of the noise")


def stand_in(noise: Sampled) -> Any:
    """For a threshold, which asks a noise for its draws alone."""
    return noise


def people_with(counts: Sequence[int]) -> InMemoryGroup:
    """For each count as many people with a record of their own: ``record i`` is held by ``counts[i]``."""
    return InMemoryGroup.from_users([[Record(f"record {i}")] for i, n in enumerate(counts) for _ in range(n)])


def release_rates(select: Select, threshold: Threshold, law: Law, max_count: int) -> list[Fraction]:
    """P(a record of N people is named) for N = 0..max_count: the code, run with each value of the noise."""
    group = people_with(range(max_count + 1))
    rates = [Fraction(0)] * (max_count + 1)
    for noise, probability in law.items():
        fixed = replace(threshold, noise=stand_in(FixedNoise(noise)))
        for record in select(group, fixed, randomness=SystemRandomness()):
            rates[int(str(record.query).removeprefix("record "))] += probability
    return rates


def check_selection(rates: Sequence[Fraction], growth: Fraction, delta: Fraction) -> Fraction:
    """Membership of two records, all neighbours: one person moves from the first record to the second.

    ``growth`` is a lower bound of e^ε. Returns the largest hockey-stick, which is at most δ.
    """
    last = len(rates) - 1
    worst = Fraction(0)
    for left, joined in product(range(1, last + 1), range(last)):
        before = _both(rates[left], rates[joined])
        after = _both(rates[left - 1], rates[joined + 1])
        worst = max(worst, hockey_stick(before, after, growth), hockey_stick(after, before, growth))
    assert worst <= delta
    return worst


def _both(first: Fraction, second: Fraction) -> list[Fraction]:
    return [p * q for p in (first, 1 - first) for q in (second, 1 - second)]


def hockey_stick(p: Sequence[Fraction], q: Sequence[Fraction], growth: Fraction) -> Fraction:
    return sum((max(x - growth * y, Fraction(0)) for x, y in zip(p, q, strict=True)), Fraction(0))


def check_noisy_counts(law: Law, growth: Fraction, delta: float) -> None:
    """Two published counts, one person moved: N₁ + Y₁ goes down by one, N₂ + Y₂ up by one.

    All pairs of outputs, exactly, in both directions. Outputs that one side cannot produce (the sampler's table
    ends) count in full.
    """
    scale = 2**64
    reach = max(law) + 2
    p = [int(law.get(y, 0) * scale) for y in range(-reach, reach + 1)]
    assert sum(p) == scale
    stay, down, up = (np.array(p[1 + shift : len(p) - 1 + shift], dtype=object) for shift in (0, 1, -1))
    for first, second in ((down, up), (up, down)):
        excess = np.outer(stay, stay) * growth.denominator - growth.numerator * np.outer(first, second)
        worst = Fraction(int(np.maximum(excess, 0).sum()), scale**2 * growth.denominator)
        assert worst <= delta


def check_boundary_rate(named: Callable[[UserGroup], int], group: UserGroup, rate: float) -> None:
    """How many of ``group``'s records, each of one person, are named: exact two-sided binomial test."""
    assert binomtest(named(group), group.n_users, rate).pvalue >= FALSE_ALARM
