"""The law of the noise on released counts, as far as readers of a release need it. [KKMN09] §7.2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from searchblend.core.errors import InvalidParameter
from searchblend.mechanisms.threshold import least_integer

Law = Literal["discrete_laplace", "rounded_gaussian"]
LAWS: Final[tuple[Law, ...]] = ("discrete_laplace", "rounded_gaussian")
Floats = NDArray[np.float64]
_NEGLIGIBLE: Final = 1e-15
_FEW: Final = 4
_ROUNDING: Final = 1 / 12
"""What rounding to whole numbers adds to a variance."""


@dataclass(frozen=True)
class NoiseLaw:
    """Integer noise that was added to each count of one table, independently."""

    law: Law
    scale: float
    """b for Laplace noise (b, b_q, b_c of the paper), σ of Gaussian noise before it was rounded"""

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise InvalidParameter("law", f"expected {' or '.join(LAWS)}")
        if not 0 < self.scale < math.inf:
            raise InvalidParameter("scale", "expected a positive number")

    @property
    def standard_deviation(self) -> float:
        """Of one draw."""
        if self.law == "rounded_gaussian":
            return math.sqrt(self.scale**2 + _ROUNDING)
        decay = math.exp(-1 / self.scale)
        return math.sqrt(2 * decay) / (1 - decay)

    def half_width(self, confidence: float = 0.95, terms: int = 1) -> float:
        """The least whole number h so that a count ± h covers the count without noise: about 3.00 b, 1.96 σ at 95 %.

        Of the sum of several counts, ``terms`` in number, it covers the sum.
        """
        if not 0 < confidence < 1:
            raise InvalidParameter("confidence", "expected a number in (0, 1)")
        return float(
            least_integer(lambda half: 2 * self.swap_probability(half + 0.5, terms) <= 1 - confidence, above=-1)
        )

    def false_edge_cut(self, rate: float) -> int:
        """The least cut t that an edge without a single click reaches with probability ``rate`` at most.

        t = b ln(1/(2·rate)) in the continuous law; this is the integer law's own tail.
        """
        if not 0 < rate < 0.5:
            raise InvalidParameter("rate", "expected a number in (0, 0.5)")
        if self.law == "rounded_gaussian":
            return max(1, math.ceil(-self.scale * float(special.ndtri(rate)) + 0.5))
        decay = math.exp(-1 / self.scale)
        return max(1, math.ceil(-self.scale * math.log(rate * (1 + decay)) - 1e-9))

    def swap_probability(self, difference: float, terms: int = 2) -> float:
        """The chance that noise turns the order of two sums round that differ by ``difference`` ≥ 0.

        ``terms`` counts the noises in both sums together: 2 for two single counts, for which the continuous Laplace
        law has e^{−D/b}(2 + D/b)/4. A tie is decided by a coin. By symmetry it is also the reader's doubt: with no
        prior knowledge of the counts, released sums that differ by D are in the wrong order with this probability.
        """
        if difference < 0 or terms < 1:
            raise InvalidParameter("difference", "expected a difference of at least 0 and at least one noise")
        swap = self._gaussian_swap if self.law == "rounded_gaussian" else self._laplace_swap
        return swap(difference, terms)

    def _gaussian_swap(self, difference: float, terms: int) -> float:
        """The sum is close to normal, on whole numbers: tails at k + 1/2 are those of a variance smaller by 1/12.

        Exact for one noise; off by less than 1e-4 for sums of σ ≥ 1.5 (test_noise_law.py). A tie decided by a coin is
        the mean of the tails on both sides of it.
        """
        deviation = math.sqrt(terms * (self.scale**2 + _ROUNDING) - _ROUNDING)
        above = float(special.ndtr(-(math.floor(difference) + 0.5) / deviation))
        if not float(difference).is_integer():
            return above
        return (above + float(special.ndtr(-(difference - 0.5) / deviation))) / 2

    def _laplace_swap(self, difference: float, terms: int) -> float:
        """Discrete Laplace noise is a difference of two geometric variables; k of them, of two negative binomials."""
        keep = -math.expm1(-1 / self.scale)
        end = 64
        while special.nbdtrc(end, terms, keep) > _NEGLIGIBLE:
            end *= 2
        values = np.arange(end + 1, dtype=np.float64)
        from_here = np.concatenate([[1.0], self._geometric_tail(values, terms)])
        """P(N ≥ 0), P(N ≥ 1), …"""
        mass = from_here[:-1] - from_here[1:]
        above = self._geometric_tail(values + math.floor(difference), terms)
        if float(difference).is_integer():
            at_least = self._geometric_tail(values + difference - 1, terms) if difference else from_here[:-1]
            above = (above + at_least) / 2
        return min(0.5, float(np.einsum("i,i->", mass, above)))

    def _geometric_tail(self, values: Floats, terms: int) -> Floats:
        """P(N > n) of the sum of so many geometric variables: fewer than ``terms`` successes in n + ``terms`` trials.

        Summed up, of positive terms, where there are few: ten times as fast as the incomplete beta function.
        """
        keep = -math.expm1(-1 / self.scale)
        if terms > _FEW:
            many: Floats = special.nbdtrc(values, terms, keep)
            return many
        trials, ways = values + terms, np.ones_like(values)
        tail = np.exp(-trials / self.scale)
        for successes in range(1, terms):
            ways *= (trials - successes + 1) / successes * keep
            tail += ways * np.exp((successes - trials) / self.scale)
        return tail
