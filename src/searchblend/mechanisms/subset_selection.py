"""Subset selection with a sink: an ε-private report over m items and "none of them" (⋆).

A report is the *sink* or a set of d items. With E = e^ε, φ = d/m and B = 1/(1 + φE):

    holder of item i:   the sink with probability φB, a set that contains i with probability φEB, else a set without i;
    holder of ⋆:        the sink with probability φEB, else any set.

All sets of a kind are equally likely. Every output's probability takes only two values, x and E·x, so the loss is
exactly ε for any number of items. ⋆ is not one of the items: the many people who hold nothing listed mostly send
the sink and add little noise to the items. d = 1 is k-ary randomized response over m + 1 values.

Standard library only: this runs on devices. Proof: proofs/subset_selection.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Final

from searchblend.core.errors import InvalidParameter
from searchblend.core.randomness import Randomness, uniform_below, word
from searchblend.mechanisms.fixed_point import exp_fraction_bounds

WORDS: Final = 1 << 64

Subset = tuple[int, ...]
SINK: Final[Subset] = ()
"""A report that names no item. Sets have d ≥ 1 items, so the empty tuple is free to say it."""


@dataclass(frozen=True)
class SubsetSelection:
    """The mechanism as integer thresholds on one 64-bit word U.

    Holder of an item: U < ``include_below`` a set with it; else U < ``sink_below`` the sink; else a set without it.
    Holder of ⋆: U < ``include_below`` the sink, else any set.
    """

    n_items: int
    subset_size: int
    include_below: int
    sink_below: int

    @classmethod
    def of(cls, epsilon: Fraction, n_items: int, subset_size: int) -> SubsetSelection:
        """Thresholds rounded so that no likelihood ratio exceeds e^ε (proofs/subset_selection.md).

        E is taken from below; φEB is rounded down and one unit more, φB up: a set or the sink is then never more
        than E times as likely for one person as for another.
        """
        if n_items < 1 or not 1 <= subset_size <= n_items:
            raise InvalidParameter("subset_size", f"expected 1 to {n_items} items, found {subset_size}")
        growth, _ = exp_fraction_bounds(epsilon)
        include = int(WORDS * subset_size * growth / (n_items + subset_size * growth)) - 1
        sink = -(-include * growth.denominator // growth.numerator)  # ceil(include / E)
        if subset_size == n_items:
            sink = WORDS - include  # every set holds every item: nothing is left for a set without i
        if include <= sink:
            raise InvalidParameter("epsilon", "too small for thresholds of 64 bits")
        return cls(n_items, subset_size, include, include + sink)

    def report(self, item: int | None, randomness: Randomness) -> Subset:
        """The privatized report of the holder of an item, or of ⋆ (``None``), items ascending."""
        m, d = self.n_items, self.subset_size
        decision = word(randomness)
        if item is None:
            return SINK if decision < self.include_below else uniform_subset(m, d, randomness)
        if decision < self.include_below:
            others = uniform_subset(m - 1, d - 1, randomness)
            return tuple(sorted([item, *(other + (other >= item) for other in others)]))
        if decision < self.sink_below:
            return SINK
        return tuple(other + (other >= item) for other in uniform_subset(m - 1, d, randomness))

    @property
    def include(self) -> float:
        """p: the probability that a holder's report names the item (and that a holder of ⋆ sends the sink)"""
        return self.include_below / WORDS

    @property
    def sink_of_holder(self) -> float:
        """s₁: the probability that the holder of an item sends the sink"""
        return (self.sink_below - self.include_below) / WORDS

    def law(self, item: int | None) -> tuple[Fraction, Fraction, Fraction]:
        """Exact probabilities of the sink, of one given set with the item, of one given set without it.

        For a holder of ⋆ the last two are equal.
        """
        m, d = self.n_items, self.subset_size
        include, sink = Fraction(self.include_below, WORDS), Fraction(self.sink_below - self.include_below, WORDS)
        if item is None:
            return include, (1 - include) / comb(m, d), (1 - include) / comb(m, d)
        without = (1 - include - sink) / comb(m - 1, d) if d < m else Fraction(0)
        return sink, include / comb(m - 1, d - 1), without


@dataclass(frozen=True)
class PlainSubsetSelection:
    """Subset selection without a sink: ⋆ is one more item, number m (Ye and Barg 2018; Wang et al. 2016).

    The holder of i sends a set of d of the m + 1 items that contains i with probability dE/(dE + m + 1 − d).
    U < ``include_below`` decides; rounded down, so that no set is more than E times as likely for one person as for
    another.
    """

    n_items: int
    """m: without ⋆"""
    subset_size: int
    include_below: int

    @classmethod
    def of(cls, epsilon: Fraction, n_items: int, subset_size: int) -> PlainSubsetSelection:
        if n_items < 1 or not 1 <= subset_size <= n_items:
            raise InvalidParameter("subset_size", f"expected 1 to {n_items} items, found {subset_size}")
        weight = subset_size * exp_fraction_bounds(epsilon)[0]
        include = int(WORDS * weight / (weight + n_items + 1 - subset_size))
        if include * (n_items + 1) < subset_size * WORDS:
            raise InvalidParameter("epsilon", "too small for thresholds of 64 bits")
        return cls(n_items, subset_size, include)

    def report(self, item: int | None, randomness: Randomness) -> Subset:
        """The privatized report of the holder of an item, or of ⋆ (``None``): d items ascending, ⋆ is number m."""
        held = self.n_items if item is None else item
        kept = word(randomness) < self.include_below
        others = uniform_subset(self.n_items, self.subset_size - kept, randomness)
        return tuple(sorted([*([held] if kept else []), *(other + (other >= held) for other in others)]))

    @property
    def include(self) -> float:
        return self.include_below / WORDS

    def law(self) -> tuple[Fraction, Fraction]:
        """Exact probabilities of one given set with the held item, and of one without it."""
        include = Fraction(self.include_below, WORDS)
        m, d = self.n_items, self.subset_size
        return include / comb(m, d - 1), (1 - include) / comb(m, d)


def uniform_subset(n: int, size: int, randomness: Randomness) -> Subset:
    """An exactly uniform set of ``size`` of the numbers 0..n−1, ascending (Floyd's algorithm)."""
    chosen: set[int] = set()
    for last in range(n - size, n):
        candidate = uniform_below(last + 1, randomness)
        chosen.add(last if candidate in chosen else candidate)
    return tuple(sorted(chosen))
