"""Confidence bounds that hold at any level: exact binomial tails, and what they say about ε.

No normal approximation anywhere: at levels of 1e-9 its tails are wrong by orders of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from scipy.special import bdtr, bdtrc, betaincinv

Key = TypeVar("Key")
_PREFIXES: Final = 300
"""events that are compared on the first sample, at most"""


def lower_bound(hits: int, trials: int, level: float) -> float:
    """Clopper–Pearson: p is at least this, but for a chance of ``level``."""
    return 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, level))


def upper_bound(hits: int, trials: int, level: float) -> float:
    return 1 - lower_bound(trials - hits, trials, level)


def epsilon_bound(hits: int, misses: int, trials: int, delta: float, level: float) -> float:
    """ln((p − δ)/q) at least, if an event happened ``hits`` times on one side and ``misses`` times on the other."""
    likely = lower_bound(hits, trials, level / 2) - delta
    return math.log(likely / upper_bound(misses, trials, level / 2)) if likely > 0 else -math.inf


def resolution(trials: int, delta: float, level: float) -> float:
    """The largest ε that so many samples can show: an event that always happens here and never there."""
    return epsilon_bound(trials, 0, trials, delta, level)


@dataclass(frozen=True)
class Event:
    """A set of outputs, and on which side it is the likelier one."""

    outputs: frozenset[object]
    swapped: bool


def choose_event(one: Mapping[Key, int], other: Mapping[Key, int], delta: float, level: float) -> Event:
    """The event with the largest bound on these samples: outputs by falling likelihood ratio, as many as pay."""
    best, chosen = -math.inf, Event(frozenset(one), False)
    for swapped, (likely, unlikely) in enumerate(((one, other), (other, one))):
        trials = sum(likely.values())
        order = sorted(likely, key=lambda key: -(likely[key] + 0.5) / (unlikely.get(key, 0) + 0.5))
        hits = misses = 0
        step = max(len(order) // _PREFIXES, 1)
        for position, key in enumerate(order, start=1):
            hits, misses = hits + likely[key], misses + unlikely.get(key, 0)
            if position % step and position > _PREFIXES:
                continue
            bound = epsilon_bound(hits, misses, trials, delta, level)
            if bound > best:
                best, chosen = bound, Event(frozenset(order[:position]), bool(swapped))
    return chosen


def bound_of_event(event: Event, one: Mapping[Key, int], other: Mapping[Key, int], delta: float, level: float) -> float:
    """The bound of an event that was chosen on other samples."""
    likely, unlikely = (other, one) if event.swapped else (one, other)
    hits = sum(n for key, n in likely.items() if key in event.outputs)
    misses = sum(n for key, n in unlikely.items() if key in event.outputs)
    return epsilon_bound(hits, misses, sum(likely.values()), delta, level)


def two_sided(hits: int, trials: int, probability: float) -> float:
    """Exact binomial p-value: twice the smaller tail."""
    if probability <= 0:
        return 1.0 if hits == 0 else 0.0
    if probability >= 1:
        return 1.0 if hits == trials else 0.0
    below = float(bdtr(hits, trials, probability))
    above = 1.0 if hits == 0 else float(bdtrc(hits - 1, trials, probability))
    return min(1.0, 2 * min(below, above))


def fit(counts: Mapping[Key, int], law: Mapping[Key, float]) -> float:
    """P-value that these counts come from this law: each cell by its exact binomial test, times the number of cells.

    What has no probability must not occur. Cells with fewer than 5 expected are taken together.
    """
    trials = sum(counts.values())
    rare = {key for key, p in law.items() if p * trials < 5}
    cells = [(counts.get(key, 0), law[key]) for key in law if key not in rare]
    rest = trials - sum(hits for hits, _ in cells)
    cells.append((rest, max(1 - math.fsum(p for _, p in cells), 0.0)))
    if any(n for key, n in counts.items() if key not in law):
        return 0.0
    if cells[-1][1] < 1e-12 and not rest:
        cells.pop()
    return min(1.0, len(cells) * min(two_sided(hits, trials, p) for hits, p in cells))
