"""What one release costs each person whom it is about. Frozen data: a ledger writes it down and reads it back.

The unit is one user id. A spend always states (ε, δ), which adds up by summing; its law may say more, and then
composes better. A law stands for one pair of distributions (P, Q) that *dominates* the mechanism: for every α ≥ 0 and
every ordered pair of neighbours, Σ (P(x|D) − α·P(x|D'))₊ ≤ Σ (P(x) − α·Q(x))₊. It is read here as the distribution of
the privacy loss ln(P/Q) under P: a few atoms and the mass at infinity (proofs/composition.md).

    GenericLaw           nothing is known beyond (ε, δ)
    DiscreteLaplaceLaw   independent integer noise on the values that one person can move
    PairLaw              an explicit pair, such as ``dominating_law`` makes of a local mechanism's channel

A Gaussian law would be a fourth class with its own ``steps``; nothing else would change. Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget, Neighbors

UNIT: Final = "one user id: all records of one user"
_TOLERANCE: Final = 1e-12


@dataclass(frozen=True)
class LossStep:
    """One step of a composition: privacy losses with their mass under P, and the mass where the loss is infinite."""

    infinite: float
    atoms: tuple[tuple[float, float], ...]
    """(loss, mass), the mass of all atoms and of infinity summing to 1"""

    @property
    def largest(self) -> float:
        """The largest finite |loss|."""
        return max((abs(loss) for loss, _ in self.atoms), default=0.0)

    def excess(self, epsilon: float) -> float:
        """The hockey-stick divergence at e^ε: the δ that goes with this ε."""
        above = [-math.expm1(epsilon - loss) * mass for loss, mass in self.atoms if loss > epsilon]
        return self.infinite + math.fsum(above)


Steps = tuple[tuple[LossStep, int], ...]
"""steps with how often each is taken; together they dominate the mechanism"""


@dataclass(frozen=True)
class GenericLaw:
    """Any (ε, δ)-private mechanism: the worst one is known (Kairouz, Oh, Viswanath 2015)."""

    def steps(self, epsilon: float, delta: float) -> Steps:
        """Loss ∞ with mass δ, ε and −ε with the rest in proportion e^ε : 1."""
        up = (1 - delta) / (1 + math.exp(-epsilon))
        return ((LossStep(delta, ((epsilon, up), (-epsilon, (1 - delta) - up))), 1),)

    def as_json(self) -> dict[str, Any]:
        return {"kind": "generic"}


@dataclass(frozen=True)
class DiscreteLaplaceLaw:
    """Noise with P(y) ∝ e^{−|y|/scale} on each of ``values`` integers that one person moves by up to ``sensitivity``.

    Replacing one record moves two counts by one each: values = 2, sensitivity = 1. The spend's δ is what its sampler's
    distance from the ideal law adds; it enters as a mass at infinity of δ(1 + e^ε)/2.
    """

    scale: float
    sensitivity: int
    values: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InvalidParameter("scale", "expected a finite number above 0")
        _whole("sensitivity", self.sensitivity)
        _whole("values", self.values)
        object.__setattr__(self, "scale", float(self.scale))

    @property
    def epsilon(self) -> float:
        """The pure ε of the ideal noise."""
        return self.values * self.sensitivity / self.scale

    def steps(self, epsilon: float, delta: float) -> Steps:
        noise = (LossStep(0.0, self._atoms()), self.values)
        leak = min(1.0, delta * (1 + math.exp(min(self.epsilon, 700.0))) / 2)
        return (noise, (LossStep(leak, ((0.0, 1 - leak),)), 1)) if delta else (noise,)

    def _atoms(self) -> tuple[tuple[float, float], ...]:
        """P(y) against P(y − s): the loss is s/b up to 0, then falls by 2/b a step, and stays at −s/b from s on."""
        shift, decay = self.sensitivity, math.exp(-1 / self.scale)
        spread = -math.expm1(-1 / self.scale) / (1 + decay)
        inner = tuple(((shift - 2 * y) / self.scale, spread * math.exp(-y / self.scale)) for y in range(1, shift))
        top, bottom = shift / self.scale, -shift / self.scale
        return ((top, 1 / (1 + decay)), *inner, (bottom, math.exp(-shift / self.scale) / (1 + decay)))

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": "discrete-laplace",
            "scale": self.scale,
            "sensitivity": self.sensitivity,
            "values": self.values,
        }


@dataclass(frozen=True)
class PairLaw:
    """An explicit dominating pair of probability vectors, taken ``cells`` times (m_C cells of one report)."""

    upper: tuple[float, ...]
    """P: outcomes that point to the person"""
    lower: tuple[float, ...]
    """Q: the same outcomes for the neighbour"""
    cells: int = 1

    def __post_init__(self) -> None:
        _whole("cells", self.cells)
        if len(self.upper) != len(self.lower) or not self.upper:
            raise InvalidParameter("pair", "expected two vectors of the same length")
        for name in ("upper", "lower"):
            vector = tuple(map(float, getattr(self, name)))
            if not all(value >= 0 for value in vector) or abs(math.fsum(vector) - 1) > _TOLERANCE:
                raise InvalidParameter("pair", f"{name}: expected probabilities that sum to 1")
            object.__setattr__(self, name, vector)

    def steps(self, epsilon: float, delta: float) -> Steps:
        return ((self.step, self.cells),)

    @property
    def step(self) -> LossStep:
        """The loss of one cell."""
        pairs = list(zip(self.upper, self.lower, strict=True))
        infinite = math.fsum(p for p, q in pairs if not q)
        return LossStep(infinite, tuple((math.log(p) - math.log(q), p) for p, q in pairs if p and q))

    def as_json(self) -> dict[str, Any]:
        return {"kind": "pair", "upper": list(self.upper), "lower": list(self.lower), "cells": self.cells}


Law = GenericLaw | DiscreteLaplaceLaw | PairLaw


def law_of_json(document: Mapping[str, Any]) -> Law:
    """The law that ``as_json`` wrote."""
    kind = document.get("kind")
    if kind == "generic":
        return GenericLaw()
    if kind == "discrete-laplace":
        return DiscreteLaplaceLaw(document["scale"], document["sensitivity"], document["values"])
    if kind == "pair":
        return PairLaw(tuple(document["upper"]), tuple(document["lower"]), document["cells"])
    raise InvalidParameter("law", "a kind that this version does not know")


def _whole(field: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidParameter(field, "expected a whole number of at least 1")


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
