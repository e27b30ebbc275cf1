"""Which records are common enough to be named: noise on every count of a tally, against an integer threshold.

A record present in the data is kept iff N + Y ≥ T ([BLJ] Fig. 3, [KKMN09] Algorithm 1 step 3). One convention
everywhere (≥, T an integer); the δ of the step is the probability that a record of a single person passes,
a^{T−1}/(1+a), and nothing else (proofs/create_head_list.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Randomness
from searchblend.core.records import Record
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.noise_table import IntegerNoise
from searchblend.mechanisms.tally import Ints, Tally


class NoisyThreshold(Protocol):
    """Keep iff N + Y ≥ T."""

    @property
    def integer(self) -> int:
        """T"""
        ...

    @property
    def noise(self) -> IntegerNoise:
        """Y"""
        ...


def noisy_counts(tally: Tally, threshold: NoisyThreshold, *, randomness: Randomness) -> dict[Record, int]:
    """The records whose noisy count reaches T, with that count: one draw for each distinct record, however rare.

    Records with the same count are exchangeable, so the noises of all that share a count are drawn as one array. Of the
    many rare ones only those that pass are fetched: memory follows the head, not the log (proofs/tallies.md).
    """
    ranks: dict[int, Ints] = {}
    noisy: dict[int, list[int]] = {}
    for count, how_many in sorted(tally.sizes().items()):
        passing, noise = threshold.noise.reaching(threshold.integer - count, how_many, randomness)
        if len(passing):
            ranks[count], noisy[count] = passing, (count + noise).tolist()
    common = tally.at_least(threshold.integer)
    rare = tally.pick_each({count: passing for count, passing in ranks.items() if count < threshold.integer})
    listed: dict[Record, int] = {}
    for count, passing in ranks.items():
        records = rare[count] if count in rare else _at(common[count], passing)
        listed.update(zip(records, noisy[count], strict=True))
    return listed


def _at(records: Sequence[Record], ranks: Ints) -> Sequence[Record]:
    """The records at these ascending positions; far above the threshold that is nearly always all of them."""
    return records if len(ranks) == len(records) else [records[rank] for rank in ranks.tolist()]


@dataclass(frozen=True)
class Threshold:
    """A threshold with the noise it belongs to."""

    printed: float
    """τ, the paper's real threshold: keep iff N + Y > τ."""
    integer: int
    """T = floor(τ) + 1: keep iff N + Y ≥ T."""
    noise: DiscreteLaplace

    @property
    def single_person_rate(self) -> float:
        """π₁ = P(1 + Y ≥ T): how often one person's own record is named. This is the step's δ."""
        return self.noise.at_least(self.integer - 1)

    def sampler_delta(self, epsilon: float) -> float:
        """What the sampler's distance adds to δ: two noisy counts change, each off by ``distance``."""
        return 2 * (1 + math.exp(min(epsilon, 700.0))) * self.noise.distance

    def small_budget_condition(self) -> bool:
        """e^{ε/2}(1 − π₁) ≥ 1, in the form 1 − π₁ ≥ a: what stands in for ε > ln 2 when ε is smaller."""
        return 1 - self.single_person_rate >= self.noise.decay


def noise_for_one_record(budget: Budget) -> DiscreteLaplace:
    """Lap(2/ε): replacing one user's single record moves two counts by one each (m_O = 1)."""
    return DiscreteLaplace(Fraction(budget.epsilon) / 2)


def printed_threshold(budget: Budget) -> Threshold:
    """τ = max(b_S (ln(e^{ε/2} + m_O − 1) − ln δ), 1) with m_O = 1, and its integer T.

    [BLJ] Fig. 3, line 7. Reading note: b_S multiplies both logarithms, so τ = 1 − (2/ε) ln δ.
    """
    real = max(1 - 2 / budget.epsilon * math.log(budget.delta), 1.0)
    threshold = Threshold(real, math.floor(real) + 1, noise_for_one_record(budget))
    spent = threshold.single_person_rate + threshold.sampler_delta(budget.epsilon)
    if spent > budget.delta:
        raise InvalidParameter("delta", f"too small at this ε: selection and sampler together need δ ≥ {spent:.3g}")
    if budget.epsilon <= math.log(2) and not threshold.small_budget_condition():
        raise InvalidParameter(
            "epsilon",
            f"{budget.epsilon:g} is not covered: neither ε > ln 2 (Theorem 3.1) nor e^(ε/2)(1 − π₁) ≥ 1 holds; "
            "raise ε or lower δ",
        )
    return threshold


def least_integer(holds: Callable[[int], bool], *, above: int) -> int:
    """The least whole number above another at which a condition holds that, once true, stays true."""
    step = 1
    while not holds(above + step):
        step *= 2
    low, high = above + step // 2, above + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
