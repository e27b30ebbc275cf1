"""Which records are common enough to be named: noisy counts against an integer threshold.

A record present in the data is kept iff N + Y ≥ T. One convention everywhere (≥, T an integer); the δ of the
step is the probability that a record of a single person passes, a^{T−1}/(1+a), and nothing else
(proofs/create_head_list.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace


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
