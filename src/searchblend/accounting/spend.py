"""What one release costs each person whom it is about. Frozen data: a ledger writes it down and reads it back.

The unit is one user id. A spend always states (ε, δ), which adds up by summing; its law may say more, and then
composes better. Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from searchblend.accounting.laws import DiscreteLaplaceLaw, GenericLaw, Law, PairLaw, Steps, law_of_json
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget, Neighbors

UNIT: Final = "one user id: all records of one user"
_TOLERANCE: Final = 1e-12


@dataclass(frozen=True)
class Spend:
    """(ε, δ) under one neighbouring relation, with the law of the mechanism where it is known.

    δ may be 0. The law must not promise less than (ε, δ) says: a spend whose law leaks more is refused.
    """

    epsilon: float
    delta: float
    neighbors: Neighbors
    mechanism: str
    """for people: what was run, in a few words; never anything of the data"""
    law: Law = field(default_factory=GenericLaw)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise InvalidParameter("epsilon", "expected a finite number of at least 0")
        if not 0 <= self.delta < 1:
            raise InvalidParameter("delta", "expected a number in [0, 1)")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        if _least_delta(self.law, self.epsilon) > self.delta + _TOLERANCE:
            raise InvalidParameter("law", "leaks more than (ε, δ) says")

    @classmethod
    def generic(cls, budget: Budget, neighbors: Neighbors, mechanism: str) -> Spend:
        """A release of which only (ε, δ) is known."""
        return cls(budget.epsilon, budget.delta, neighbors, mechanism)

    @property
    def rho(self) -> float | None:
        """ρ of zero-concentrated privacy: ε²/2 of a pure release (Bun, Steinke 2016, Proposition 3.3); else unknown."""
        return self.epsilon**2 / 2 if not self.delta else None

    @property
    def steps(self) -> Steps:
        return self.law.steps(self.epsilon, self.delta)

    def as_json(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbors": self.neighbors.name,
            "mechanism": self.mechanism,
            "law": self.law.as_json(),
        }

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> Spend:
        return cls(
            document["epsilon"],
            document["delta"],
            Neighbors[document["neighbors"]],
            document["mechanism"],
            law_of_json(document["law"]),
        )


def _least_delta(law: Law, epsilon: float) -> float:
    """A lower bound of the δ that this law needs at ε, good enough to refuse a mistake."""
    if isinstance(law, PairLaw):
        return law.cells * law.step.excess(epsilon / law.cells + _TOLERANCE)
    if isinstance(law, DiscreteLaplaceLaw):
        return 0.0 if law.epsilon <= epsilon * (1 + _TOLERANCE) else 1.0
    return 0.0


def decimal(value: float) -> Fraction:
    """The number as it is printed: ten times 0.1 is 1 and not a bit more."""
    return Fraction(repr(float(value)))


def common_relation(spends: Iterable[Spend]) -> Neighbors:
    """The relation under which these can be added up: theirs, or replace-one when they differ."""
    relations = {spend.neighbors for spend in spends}
    return relations.pop() if len(relations) == 1 else Neighbors.REPLACE_ONE


def either_of(spends: Sequence[Spend]) -> Spend:
    """One spend that covers whichever of these a person bears, if a person bears one of them at most.

    Any (ε', δ') with ε' ≤ ε and δ' ≤ δ is dominated by the worst law with (ε, δ), so the largest of both numbers cover
    all; a law is kept only where there is nothing to choose (proofs/composition.md, 7).
    """
    relation = common_relation(spends)
    stated = [under(relation, spend) for spend in spends]
    if all(spend == stated[0] for spend in stated):
        return stated[0]
    epsilon, delta = max(spend.epsilon for spend in stated), max(spend.delta for spend in stated)
    mechanisms = dict.fromkeys(spend.mechanism for spend in stated)
    return Spend(epsilon, delta, relation, " or ".join(mechanisms))


def under(relation: Neighbors, spend: Spend) -> Spend:
    """The same release stated under another relation: replacing is removing and adding, (2ε, (1 + e^ε)δ)."""
    if spend.neighbors is relation:
        return spend
    if relation is not Neighbors.REPLACE_ONE:
        raise InvalidParameter("neighbors", "a replace-one promise says nothing about adding or removing a person")
    delta = spend.delta * (1 + math.exp(min(spend.epsilon, 700.0)))
    if delta >= 1:
        raise InvalidParameter("delta", "too large to be stated under replace-one")
    return Spend(2 * spend.epsilon, delta, relation, spend.mechanism)
