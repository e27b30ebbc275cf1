"""Noises and thresholds of the curator over many records: one account of (ε, δ) for naming and for measuring.

Three steps with Gaussian noise, each knowing what the ones before have published: queries are named by weight, then
records of these queries by weight, then each user's own shares of the listed cells are summed. μ² is divided among
them by fixed parts; how much of δ is the noise's and how much the thresholds' is chosen by the lowest threshold. All of
it from the parameters alone (proofs/many_records.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from searchblend.blender.groups import Weights
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import MANY_RECORDS, BlenderParams
from searchblend.core.privacy import Budget
from searchblend.mechanisms.gaussian_account import (
    Reach,
    largest_mu,
    least_threshold,
    named_alone,
    reach_of_weights,
    replaced_delta,
)
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian, on_sigma_grid

QUERIES, RECORDS, SHARES = "queries", "records", "shares"
PARTS: Final[Mapping[str, float]] = {QUERIES: 0.66, RECORDS: 0.14, SHARES: 0.2}
"""of μ², by step; a log without URLs names no records, and the others have their part"""
_NOISE_PARTS: Final = (0.5, 0.6, 0.7, 0.8, 0.9)
"""of δ that the noise alone may use: those that are tried"""
_RECORDS_DELTA: Final = 0.1
"""of δ: what naming records may use of it"""
_LARGEST_SIGMA: Final = 1024
"""The noise tables grow with it, and every run makes four."""
_MOST_UNITS: Final = 1000
_LEAST_WEIGHT: Final = 8
"""Coarser weights would lose more than an eighth."""


@dataclass(frozen=True)
class WeightThreshold:
    """Keep iff W + Y ≥ T, W being the users' weights of an item."""

    weights: Weights
    noise: RoundedGaussian
    integer: int

    @property
    def reach(self) -> Reach:
        return reach_of_weights(self.weights.items, self.weights.units, self.noise.scale, self.integer)

    @property
    def named_alone(self) -> float:
        """The probability, at most, that something which one user alone holds is named."""
        return named_alone(self.reach)

    @property
    def sampler_distance(self) -> float:
        """One draw for each item that the old or the new user holds."""
        return 2 * self.weights.items * self.noise.distance


@dataclass(frozen=True)
class ManyRecordsDesign:
    """Everything that a run of the curator is made of; public, made from parameters alone."""

    budget: Budget
    queries: WeightThreshold
    records: WeightThreshold | None
    """None for a log without URLs"""
    units: int
    """L: what a user's shares sum to"""
    noise: RoundedGaussian
    """of each query's total, in units"""
    detail_noise: RoundedGaussian
    """of each named record, of ⟨⋆,⋆⟩ and of the sum of squares: √2 times as large"""

    @property
    def contribution(self) -> str:
        """What bounds one user's part, in words."""
        return (
            f"each user counted by the curator divides one unit of weight, by squares, among up to "
            f"{self.queries.weights.items} queries and as many records, and has shares that sum to 1"
        )

    @property
    def figures(self) -> JsonObject:
        """For people who read the result; weights are in users."""
        queries, records = self.queries, self.records
        return {
            "name": "weights of many records, then own shares, with Gaussian noise",
            "threshold": queries.integer / queries.weights.units,
            "integer_threshold": queries.integer,
            "selection_delta": self.selection_delta,
            "noise_scale": queries.noise.scale,
            "units_per_user": queries.weights.units,
            "queries_per_user": queries.weights.items,
            "record_threshold": records.integer / records.weights.units if records else None,
            "records_per_user": records.weights.items if records else None,
            "share_units": self.units,
            "share_noise_scale": self.noise.scale,
            "mu": self.mu,
        }

    @property
    def shares_reach(self) -> Reach:
        """One user's half of what replacing moves: 2L²/σ² in all, and half of that again where records are measured."""
        totals = min(self.noise.scale**2, self.detail_noise.scale**2 / 2)
        records = self.units**2 / self.detail_noise.scale**2 if self.records else 0.0
        return Reach.one(self.units**2 / totals + records)

    @property
    def mu(self) -> float:
        """What all steps cost together at most, as the shift of one normal variable of variance 1."""
        steps = [self.queries.reach, *([self.records.reach] if self.records else []), self.shares_reach]
        return math.sqrt(2 * math.fsum(float(step.worst.mu_squared[0]) for step in steps))

    @property
    def selection_delta(self) -> float:
        """The probability, at most, that something which one user alone holds is named."""
        records = self.records.named_alone if self.records else 0.0
        return 1 - (1 - self.queries.named_alone) * (1 - records)

    @property
    def sampler_delta(self) -> float:
        """What the samplers' distances add to δ; a user's L units lie in L queries and L records at most."""
        steps = math.fsum(step.sampler_distance for step in (self.queries, self.records) if step)
        shares = 2 * self.units * self.noise.distance + (2 * self.units + 2) * self.detail_noise.distance
        return (1 + math.exp(self.budget.epsilon)) * (steps + shares)

    @property
    def delta(self) -> float:
        """δ of everything that is published, at the budget's ε."""
        later = [*([self.records.reach] if self.records else []), self.shares_reach]
        return replaced_delta(self.budget.epsilon, self.queries.reach, *later) + self.sampler_delta


@lru_cache(maxsize=64)
def many_records_design(
    budget: Budget, records_per_optin: int, *, has_urls: bool, largest_sigma: int = _LARGEST_SIGMA
) -> ManyRecordsDesign:
    """The design with the lowest threshold for queries; refuses a budget that has none.

    ``largest_sigma`` is how wide the noise may be in units, and so how fine they are.
    """
    tried = [_at(part, budget, records_per_optin, has_urls, largest_sigma) for part in _NOISE_PARTS]
    fitting = [design for design in tried if design]
    if not fitting:
        raise InvalidParameter(
            "delta", "too small at this ε: it must cover the thresholds and the noise sampler; try records_per_optin 1"
        )
    return min(fitting, key=lambda design: design.queries.integer / design.queries.weights.units)


def default_records(budget: Budget) -> int:
    """How many records of an opt-in user count if the caller does not say: many, or one where δ is too small for that.

    Decided by the budget alone, for a log with URLs, which asks for more.
    """
    try:
        many_records_design(budget, MANY_RECORDS, has_urls=True)
    except InvalidParameter:
        return 1
    return MANY_RECORDS


def design_of(params: BlenderParams) -> ManyRecordsDesign:
    """The curator's design for these parameters; a log without URLs has all of its budget in the query."""
    m_o, has_urls = params.counted_records_per_optin, params.query_budget_fraction < 1
    return many_records_design(params.budget, m_o, has_urls=has_urls)


def _at(noise_part: float, budget: Budget, items: int, has_urls: bool, largest_sigma: int) -> ManyRecordsDesign | None:
    """The design whose noise alone uses this part of δ; None if the thresholds cannot do with the rest."""
    mu = largest_mu(budget.epsilon, noise_part * budget.delta)
    parts = PARTS if has_urls else {name: PARTS[name] / (1 - PARTS[RECORDS]) for name in (QUERIES, SHARES)}
    sigma = {name: math.sqrt(2 / part) / mu for name, part in parts.items()}
    """for weight 1: replacing moves the sums by √2 at most"""
    if has_urls:
        sigma[SHARES] *= math.sqrt(1.5)  # records are measured beside the totals, with half their precision
    records = None
    if has_urls:
        weights, noise = _weights(sigma[RECORDS], items, largest_sigma)
        allowed = _RECORDS_DELTA * budget.delta
        records = WeightThreshold(weights, noise, _least(weights, noise, allowed))
    units = max(1, min(_MOST_UNITS, math.floor(largest_sigma / (sigma[SHARES] * math.sqrt(2)))))
    shares = [RoundedGaussian(on_sigma_grid(units * sigma[SHARES] * factor)) for factor in (1, math.sqrt(2))]
    weights, noise = _weights(sigma[QUERIES], items, largest_sigma)

    def with_threshold(threshold: int) -> ManyRecordsDesign:
        queries = WeightThreshold(weights, noise, threshold)
        return ManyRecordsDesign(budget, queries, records, units, shares[0], shares[1])

    if with_threshold(_never(noise)).delta > budget.delta:
        return None
    return with_threshold(least_threshold(lambda t: with_threshold(t).delta <= budget.delta, weights.units))


def _never(noise: RoundedGaussian) -> int:
    """A threshold that nothing of one user reaches."""
    return _MOST_UNITS + math.ceil(40 * noise.scale)


def _weights(sigma: float, items: int, largest_sigma: int) -> tuple[Weights, RoundedGaussian]:
    """As many units as the noise table allows, and as many items as they can be divided among."""
    units = min(_MOST_UNITS, math.floor(largest_sigma / sigma))
    if units < _LEAST_WEIGHT:
        raise InvalidParameter("epsilon", "too small to weigh several records per user; try records_per_optin 1")
    return Weights(min(items, (units // _LEAST_WEIGHT) ** 2), units), RoundedGaussian(on_sigma_grid(units * sigma))


def _least(weights: Weights, noise: RoundedGaussian, allowed: float) -> int:
    return least_threshold(lambda t: WeightThreshold(weights, noise, t).named_alone <= allowed, weights.units)
