"""The parameters of a run, validated once. Standard library only: devices read them too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from searchblend.errors import InvalidParameter
from searchblend.privacy import Budget

LARGEST_EPSILON: Final = 64
"""Beyond it nothing is protected, and a device that computes e^ε exactly must not be kept busy by a message."""


@dataclass(frozen=True)
class BlenderParams:
    """All parameters of [BLJ] Fig. 2, with the defaults of Fig. 11.

    The printed method takes ``records_per_optin`` (m_O) = 1 only: Theorems 3.1 and 3.2 prove nothing for more. Method
    ``best`` spreads one user's weight over up to m_O records.
    ``query_budget_fraction`` (f_C) lies in (0, 1), or is 1 for logs without URLs, where every record is
    ⟨query, ⋆⟩ and the whole budget belongs to the query stage.
    """

    budget: Budget
    max_head_queries: int = 50
    """M: how many queries the head list may hold, ⋆ not counted."""
    head_fraction: float = 0.95
    """f_O: the share of the opt-in users (S) that makes the head list; the others (T) estimate it."""
    query_budget_fraction: float = 0.85
    """f_C: the share of a client's budget that protects the query; the rest protects the URL."""
    records_per_optin: int = 1
    """m_O"""
    records_per_client: int = 1
    """m_C: cells per report; each costs 1/m_C of the client's budget."""

    def __post_init__(self) -> None:
        if self.budget.epsilon > LARGEST_EPSILON:
            raise InvalidParameter(
                "epsilon", f"expected at most {LARGEST_EPSILON} for one release, found {self.budget.epsilon:g}"
            )
        _at_least_one("max_head_queries", self.max_head_queries)
        _at_least_one("records_per_client", self.records_per_client)
        _at_least_one("records_per_optin", self.records_per_optin)
        if not 0 < self.head_fraction < 1:
            raise InvalidParameter("head_fraction", "expected a number in (0, 1): both opt-in sub-groups need people")
        if not 0 < self.query_budget_fraction <= 1:
            raise InvalidParameter("query_budget_fraction", "expected a number in (0, 1), or 1 for a log without URLs")

    def for_printed_method(self) -> BlenderParams:
        """These parameters, if the printed proofs cover them."""
        if self.records_per_optin != 1:
            raise InvalidParameter(
                "records_per_optin",
                "expected 1: the proofs of CreateHeadList and EstimateOptinProbabilities hold for m_O = 1 only",
            )
        return self

    def for_log(self, *, has_urls: bool) -> BlenderParams:
        """These parameters for a log with or without URLs: without, the whole budget goes to the query."""
        if not has_urls:
            return replace(self, query_budget_fraction=1.0)
        if self.query_budget_fraction == 1:
            raise InvalidParameter(
                "query_budget_fraction", "expected a number in (0, 1): 1 is only for logs without URLs"
            )
        return self

    @property
    def per_record(self) -> tuple[Fraction, Fraction]:
        """ε' = ε/m_C and δ' = δ/m_C, exactly."""
        m = self.records_per_client
        return Fraction(self.budget.epsilon) / m, Fraction(self.budget.delta) / m

    @property
    def query_share(self) -> tuple[Fraction, Fraction]:
        """ε_Q and δ_Q of one reported cell, exactly."""
        epsilon, delta = self.per_record
        fraction = Fraction(self.query_budget_fraction)
        return fraction * epsilon, fraction * delta

    @property
    def url_share(self) -> tuple[Fraction, Fraction]:
        """ε_U and δ_U of one reported cell, exactly."""
        (epsilon, delta), (query_epsilon, query_delta) = self.per_record, self.query_share
        return epsilon - query_epsilon, delta - query_delta


def _at_least_one(field: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidParameter(field, f"expected a whole number of at least 1, found {value!r}")
