"""The law of a mechanism: all that composition has to know about it, as frozen data that a ledger can keep.

A law stands for one pair of distributions (P, Q) that *dominates* the mechanism: for every α ≥ 0 and every ordered
pair of neighbours, Σ (P(x|D) − α·P(x|D'))₊ ≤ Σ (P(x) − α·Q(x))₊. It is read here as the distribution of the privacy
loss ln(P/Q) under P: a few atoms and the mass at infinity (proofs/composition.md). Standard library only.

    GenericLaw           nothing is known beyond (ε, δ)
    DiscreteLaplaceLaw   independent integer noise on the values that one person can move
    PairLaw              an explicit pair, such as ``dominating_law`` makes of a local mechanism's channel

A Gaussian law would be a fourth class with its own ``steps``; nothing else would change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from searchblend.core.errors import InvalidParameter

_SUM_TOLERANCE: Final = 1e-12


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
        for name, value in (("sensitivity", self.sensitivity), ("values", self.values)):
            _whole(name, value)
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
            if not all(value >= 0 for value in vector) or abs(math.fsum(vector) - 1) > _SUM_TOLERANCE:
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
