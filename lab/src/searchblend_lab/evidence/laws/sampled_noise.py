"""Laws of noise that are sampled: the two samplers, rare draws, choices, and noise fetched by count and rank."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from scipy.stats import norm

from searchblend.clickgraph.release.step import CountThreshold
from searchblend.core.randomness import Randomness, SystemRandomness, uniform_below
from searchblend.core.records import Record
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian, on_sigma_grid
from searchblend.mechanisms.tally import InMemoryTally, Ints, ListedRecords
from searchblend.mechanisms.threshold import noisy_counts
from searchblend_lab.evidence.laws import faults
from searchblend_lab.evidence.laws.click_graph import (
    check_law,
)
from searchblend_lab.evidence.laws.sampler import (
    check_counts,
    check_pairs,
    check_sampler,
    check_symmetry,
)

_DRAWS: Final = 200_000
AT_ONCE: Final = 2_000_000
Draw = Callable[[Fraction, int], np.ndarray]
"""(scale, how many) -> noise"""
Floored = DiscreteLaplace | RoundedGaussian


def laplace_draws(scale: Fraction, n: int = _DRAWS) -> np.ndarray:
    return DiscreteLaplace(1 / scale).sample(n, SystemRandomness())


def gaussian_draws(sigma: Fraction, n: int = _DRAWS) -> np.ndarray:
    return RoundedGaussian(sigma).sample(n, SystemRandomness())


def check_laplace(draw: Draw, scale: Fraction) -> None:
    check_sampler(draw(scale, _DRAWS), DiscreteLaplace(1 / scale))


def check_gaussian(draw: Draw, sigma: Fraction) -> None:
    sample = draw(sigma, 2 * _DRAWS)
    law = gaussian_law(sigma)
    check_law(sample.tolist(), law)
    check_symmetry(sample)
    check_pairs(sample, math.fsum(p * p for p in law.values()))


def gaussian_law(sigma: Fraction) -> dict[int, float]:
    """The law by its formula, not by the code."""
    reach = int(12 * sigma) + 2
    bounds = norm.sf((np.arange(reach + 2) - 0.5) / float(sigma))
    half = {y: p for y in range(1, reach + 1) if (p := float(bounds[y] - bounds[y + 1])) > 0}
    return {0: 1 - 2 * float(bounds[1])} | half | {-y: p for y, p in half.items()}


def _bent(draw: Draw, bend: Callable[[np.ndarray], np.ndarray]) -> Draw:
    return lambda scale, n: bend(draw(scale, n))


def _of_scale(draw: Draw, factor: Fraction, grid: Callable[[float], Fraction] = Fraction) -> Draw:
    return lambda scale, n: draw(grid(float(scale) * float(factor)), n)


def _twice(sample: np.ndarray) -> np.ndarray:
    return np.repeat(sample[: len(sample) // 2], 2)


LAPLACE_FAULTS: Final = {
    **{name: _of_scale(laplace_draws, factor) for name, factor in faults.SAMPLER_SCALE.items()},
    **{name: _bent(laplace_draws, bend) for name, bend in faults.SAMPLE.items()},
    "each noise used twice": _bent(laplace_draws, _twice),
}
GAUSSIAN_FAULTS: Final = {
    **{
        f"noise scale {factor} σ": _of_scale(gaussian_draws, Fraction(factor), on_sigma_grid)
        for factor in ("0.9", "1.1", "0.7071")
    },
    **{name: _bent(gaussian_draws, bend) for name, bend in faults.SAMPLE.items()},
    "each noise used twice": _bent(gaussian_draws, _twice),
}


def check_reaching(off: int, setting: tuple[Floored, int, int]) -> None:
    """Of many draws those that reach a floor: as many as the tail says, at positions spread evenly, with the law given
    that they reach it. ``off`` is added to the floor that is asked for."""
    noise, floor, n = setting
    exact = {y: float(p) for y, p in noise.sampled_probabilities().items() if y >= floor}
    parts = [noise.reaching(floor + off, min(AT_ONCE, n - start), SystemRandomness()) for start in range(0, n, AT_ONCE)]
    values = np.concatenate([values for _, values in parts])
    eighths = np.concatenate([positions * 8 // min(AT_ONCE, n) for positions, _ in parts])
    share = math.fsum(exact.values())
    check_counts(np.array([len(values), n - len(values)]), n * np.array([share, 1 - share]))
    check_law(values.tolist(), exact)
    check_law(eighths.tolist(), dict.fromkeys(range(8), 1 / 8))


def check_choice(choose: Callable[[int, Randomness], int], k: int) -> None:
    """The choice of one of k."""
    source = SystemRandomness()
    counts = Counter(choose(k, source) for _ in range(25_000))
    check_counts(np.array([counts[i] for i in range(k)]), np.full(k, 25_000 / k))


def first_now_and_then(k: int, source: Randomness) -> int:
    return uniform_below(k, source) if uniform_below(5, source) else 0


# --- noise by count and rank: proofs/tallies.md ----------------------------------------------------------------------

_COUNTS: Final = {"a": 2, "b": 2, "c": 2, "d": 3, "e": 6}
_NOISE: Final = RoundedGaussian(Fraction(2))
_THRESHOLD: Final = CountThreshold(4, _NOISE)
_TALLY: Final = InMemoryTally(
    ListedRecords([Record(query) for query in _COUNTS]), np.arange(5), np.array(list(_COUNTS.values()), dtype=np.int64)
)


def check_joint_law(publish: Callable[[], Mapping[Record, int]], runs: int) -> None:
    """Noise drawn by count and fetched by rank has the law of noise drawn record by record."""
    outcomes = Counter(_outcome(publish()) for _ in range(runs))
    law = _joint_law()
    common = [key for key, p in law.items() if runs * p >= 10]
    rare = 1 - math.fsum(law[key] for key in common)
    observed = [outcomes[key] for key in common]
    expected = runs * np.array([*(law[key] for key in common), rare])
    check_counts(np.array([*observed, runs - sum(observed)]), expected)


def _outcome(passed: Mapping[Record, int]) -> tuple[int, ...]:
    """For each record: not published, published at the threshold, or above."""
    values = {str(record.query): value for record, value in passed.items()}
    assert all(value >= _THRESHOLD.integer for value in values.values())
    return tuple(0 if q not in values else 1 if values[q] == _THRESHOLD.integer else 2 for q in _COUNTS)


def _joint_law() -> dict[tuple[int, ...], float]:
    """The product law: every record has noise of its own."""
    law = _NOISE.sampled_probabilities()
    singles = []
    for count in _COUNTS.values():
        at = float(law[_THRESHOLD.integer - count])
        above = float(sum(p for y, p in law.items() if count + y > _THRESHOLD.integer))
        singles.append((1 - at - above, at, above))
    return {
        key: math.prod(single[k] for single, k in zip(singles, key, strict=True))
        for key in product(range(3), repeat=len(_COUNTS))
    }


def publish(noise: Any = _NOISE, tally: InMemoryTally = _TALLY) -> Mapping[Record, int]:
    threshold: Any = SimpleNamespace(integer=_THRESHOLD.integer, noise=noise)
    return noisy_counts(tally, threshold, randomness=SystemRandomness())


class _OneDrawForEachCount:
    """All records with the same count share one noise."""

    def reaching(self, floor: int, size: int, randomness: Randomness) -> tuple[np.ndarray, np.ndarray]:
        noise = np.repeat(_NOISE.sample(1, randomness), size)
        positions = np.flatnonzero(noise >= floor)
        return positions, noise[positions]


class _SomeValuesAgain:
    """The right records pass, but all of one count with the first one's value."""

    def reaching(self, floor: int, size: int, randomness: Randomness) -> tuple[np.ndarray, np.ndarray]:
        positions, values = _NOISE.reaching(floor, size, randomness)
        return positions, np.repeat(values[:1], len(values))


class _FirstOnes(InMemoryTally):
    """Fetches the first records of a count instead of those that passed."""

    def pick(self, count: int, ranks: Ints) -> list[Record]:
        return super().pick(count, np.arange(len(ranks)))


TALLY_FAULTS: Final = {
    "one draw for each count": partial(publish, noise=_OneDrawForEachCount()),
    "values repeated": partial(publish, noise=_SomeValuesAgain()),
    "first ranks fetched": partial(publish, tally=_FirstOnes(_TALLY._universe, _TALLY._numbers, _TALLY._counts)),
}
