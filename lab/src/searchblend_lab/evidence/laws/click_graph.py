"""Is a released click graph as private as it says? Rates of what one person alone has, and laws of published counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.stats import binom, binomtest, norm

from searchblend.clickgraph.release.click_log import Cap, ClickLog
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release_data import select_queries
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.randomness import SystemRandomness
from searchblend.mechanisms.gaussian_account import weight
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian
from searchblend.mechanisms.tally import InMemoryTally
from searchblend_lab.evidence.laws.sampler import FALSE_ALARM, check_counts
from searchblend_lab.zipf_log import NumberedQueries, ZipfLog, number_of

_MIN_EXPECTED = 20
Select = Callable[[ClickLog, ClickGraphDesign], Mapping[str, int]]


def select(log: ClickLog, design: ClickGraphDesign) -> Mapping[str, int]:
    return select_queries(log, design, randomness=SystemRandomness())[0]


def lone_users(n_users: int, queries_each: int, repeats: int = 1) -> ZipfLog:
    """Users who search what no one else does: user i the queries i·k … i·k + k − 1, each this many times."""
    user = np.repeat(np.arange(n_users), queries_each * repeats)
    query = np.repeat(np.arange(n_users * queries_each), repeats)
    return ZipfLog(user, query)


def users_named(chosen: Mapping[str, int], queries_each: int) -> int:
    """How many lone users have at least one query published."""
    return len({number_of(query) // queries_each for query in chosen})


def lone_rate(design: ClickGraphDesign, queries_each: int, repeats: int = 1) -> float:
    """The probability that something of a lone user is named, from the formulas of the proofs."""
    quiet = 0.0
    for step in design.rounds:
        once = weight(step.units, queries_each) if step.units > 1 else 1
        added = once if step.cap.distinct else min(repeats, step.cap.first)
        quiet += queries_each * math.log1p(-tail(step, (step.threshold or 0) - added))
    return -math.expm1(quiet)


def tail(step: StepDesign, value: int) -> float:
    """P(Y ≥ value) by the formula, not by the code."""
    if isinstance(step.noise, RoundedGaussian):
        return float(norm.sf((value - 0.5) / step.noise.scale))
    a = math.exp(-float(step.noise.rate))
    return a**value / (1 + a)


def check_lone_rate(
    chosen_by: Select, log: ClickLog, design: ClickGraphDesign, run_with: ClickGraphDesign, shape: tuple[int, int, int]
) -> None:
    """Exact two-sided binomial test that lone users are named at the stated rate, which is within δ."""
    n_users, queries_each, repeats = shape
    rate = lone_rate(design, queries_each, repeats)
    assert rate <= design.params.budget.delta
    named = users_named(chosen_by(log, run_with), queries_each)
    assert binomtest(named, n_users, rate).pvalue >= FALSE_ALARM


def passes_unseen(n: int, rate: float, wrong: float) -> float:
    """How likely a wrong rate passes the test of the stated one: else a planted fault is not seen now and then."""
    low, high = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], n, rate)
    return float(binom.cdf(high, n, wrong) - binom.cdf(low - 1, n, wrong))


class CountsLog(ZipfLog):
    """A log known by its counts alone: query n was searched by ``counts[n]`` users, once each."""

    def __init__(self, counts: Sequence[int]) -> None:
        self._counts = np.array(counts, dtype=np.int64)

    def searches(self, cap: Cap) -> InMemoryTally:
        return InMemoryTally(NumberedQueries(), np.arange(len(self._counts)), self._counts)

    def searches_of(self, queries: Sequence[str], cap: Cap) -> dict[str, int]:
        return {query: int(self._counts[number_of(query)]) for query in queries}


def check_law(values: Sequence[int], law: Mapping[int, float]) -> None:
    """χ² of whole numbers against a law with one hump; either end is pooled until 20 are expected there."""
    seen = Counter(values)
    assert set(seen) <= set(law), "a value that cannot be"
    support = sorted(law)
    expected = len(values) * np.array([law[v] for v in support]) / math.fsum(law.values())
    observed = np.array([seen[v] for v in support], dtype=float)
    first = min(int(np.searchsorted(np.cumsum(expected), _MIN_EXPECTED)), len(support) - 1)
    last = max(len(support) - 1 - int(np.searchsorted(np.cumsum(expected[::-1]), _MIN_EXPECTED)), first)
    check_counts(_pooled(observed, first, last), _pooled(expected, first, last))


def _pooled(values: np.ndarray, first: int, last: int) -> np.ndarray:
    if first == last:
        return np.array([values[: first + 1].sum(), values[first + 1 :].sum()])
    return np.array([values[: first + 1].sum(), *values[first + 1 : last], values[last:].sum()])


def noise_law(step: StepDesign, count: int, at_least: int | None = None) -> dict[int, float]:
    """The law of count + Y, given that it reaches ``at_least``."""
    reach = int(45 * step.noise.scale) + 2
    law = {count + y: tail(step, y) - tail(step, y + 1) if y > 0 else 0.0 for y in range(-reach, reach + 1)}
    for y in range(1, reach + 1):
        law[count - y] = law[count + y]
    law[count] = 1 - 2 * tail(step, 1)
    law = {value: p for value, p in law.items() if p > 0 and (at_least is None or value >= at_least)}
    total = math.fsum(law.values())
    return {value: p / total for value, p in law.items()}
