"""The law of a program, found by running it on every word that could matter."""

from __future__ import annotations

from fractions import Fraction

from searchblend.core.randomness import uniform_below, word
from searchblend_lab.evidence.drive import WORDS, driven_law, intervals, period, residues


def test_intervals_have_both_ends_and_all_the_weight():
    found = intervals([WORDS // 4])
    assert sum(weight for _, weight in found) == 1
    assert {0, WORDS // 4 - 1, WORDS // 4, WORDS - 1} == {w for w, _ in found}


def test_a_biased_coin_and_a_choice():
    def program(randomness):
        return "heads" if word(randomness) < WORDS // 4 else uniform_below(3, randomness)

    law = driven_law(program, [intervals([WORDS // 4]), residues(period([3]))])
    assert law == {"heads": Fraction(1, 4), 0: Fraction(1, 4), 1: Fraction(1, 4), 2: Fraction(1, 4)}


def test_one_word_too_many_changes_the_law():
    """<= for < at a threshold: the word at the threshold stands for half of its interval."""
    law = driven_law(lambda randomness: word(randomness) <= WORDS // 4, [intervals([WORDS // 4])])
    assert law[True] > Fraction(1, 4)
