"""t of [BLJ] Fig. 6 in numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from searchblend.mechanisms.randomized_response import keep_probability


@pytest.mark.parametrize(
    ("epsilon", "delta", "k", "t"),
    [
        (0.85 * 4, 0.85e-5, 51, 0.3747),
        (0.15 * 4, 0.15e-5, 2, 0.6457),
        (0.15 * 4, 0.15e-5, 3, 0.4767),
        (math.log(3), 0, 2, 0.75),
        (1, 0.2, 11, (math.e + 1) / (math.e + 10)),
    ],
)
def test_known_values(epsilon: float, delta: float, k: int, t: float):
    assert float(keep_probability(Fraction(epsilon), Fraction(delta), k)) == pytest.approx(t, abs=5e-5)


def test_one_value_cannot_be_lied_about():
    assert keep_probability(Fraction(1), Fraction(1, 100), 1) == 1


def test_no_budget_is_a_uniform_choice():
    assert float(keep_probability(Fraction(0), Fraction(0), 8)) == pytest.approx(1 / 8)
