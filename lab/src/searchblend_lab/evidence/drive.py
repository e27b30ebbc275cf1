"""The exact law of code that draws 64-bit words: the code itself is run on every word that could matter.

The words of a draw are given by representatives with weights: both ends of each interval between two thresholds, or one
full period of the residues that a uniform choice looks at. No formula of the mechanism enters.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from searchblend.core.randomness import HALF, Randomness

WORDS: Final = 1 << 64
Alphabet = Sequence[tuple[int, Fraction]]
"""words with their weights"""
Law = dict[Hashable, Fraction]


class _OneMore(Exception):  # not an error: the code wants another word
    """The script is too short for this path of the code."""


class Script:
    """A few words, one after the other."""

    cryptographic = False

    def __init__(self, words: Sequence[int]) -> None:
        self._words = iter(words)

    def take(self, n_bytes: int) -> bytes:
        if n_bytes != 8:
            raise AssertionError("expected code that draws one word at a time")
        for word in self._words:
            return word.to_bytes(8, "little")
        raise _OneMore


def intervals(thresholds: Iterable[int]) -> Alphabet:
    """Both ends of each interval of words between two thresholds, with half its weight each."""
    edges = sorted({0, WORDS, *thresholds})
    half = [(Fraction(stop - start, 2 * WORDS), start, stop) for start, stop in pairwise(edges)]
    return [(word, weight) for weight, start, stop in half for word in (start, stop - 1)]


def residues(low: int, high: int = 1) -> Alphabet:
    """One period of the low half's residues and of the high half's."""
    weight = Fraction(1, low * high)
    return [(h * HALF + i, weight) for h in range(high) for i in range(low)]


def period(numbers: Iterable[int]) -> int:
    return math.lcm(*(max(n, 1) for n in numbers))


def driven_law(program: Callable[[Randomness], Hashable], alphabets: Sequence[Alphabet]) -> Law:
    """P(output), exactly; the i-th draw runs over the i-th alphabet, the last one serves all later draws."""
    law: Law = defaultdict(Fraction)
    todo: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while todo:
        words, weight = todo.pop()
        try:
            law[program(Script(words))] += weight
        except _OneMore:
            alphabet = alphabets[min(len(words), len(alphabets) - 1)]
            todo += [((*words, word), weight * share) for word, share in alphabet]
    return dict(law)
