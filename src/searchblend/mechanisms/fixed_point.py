"""e^x in integers, bounded from both sides: the same digits in every language.

``math.exp`` differs between platforms and languages in the last place, so a threshold made from it would
not be the same on a phone and on the server. Here every step is an integer operation rounded in a stated
direction. Standard library only; ported line by line to JavaScript (BigInt).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final

FRACTION_BITS: Final = 128
ONE: Final = 1 << FRACTION_BITS


@lru_cache(maxsize=1024)  # few ε are ever asked for, each again and again
def exp_bounds(x: Fraction) -> tuple[int, int]:
    """Integers (low, high) with low ≤ 2^128 · e^x ≤ high, for x ≥ 0; high/low − 1 is below 2^-110 for x ≤ 64.

    The Taylor series, each term made from the one before by one multiplication and one division, rounded
    down for ``low`` and up for ``high``. The sum stops once a term is at most one unit and n ≥ 2x, where
    all later terms together are smaller than the last one (each is at most half the one before).
    """
    if x < 0:
        raise ValueError("exp_bounds wants x ≥ 0")
    low_term = high_term = low = high = ONE
    n = 0
    while high_term > 1 or n < 2 * x:
        n += 1
        divisor = x.denominator * n
        low_term = low_term * x.numerator // divisor
        high_term = -(-high_term * x.numerator // divisor)
        low += low_term
        high += high_term
    return low, high + 1


def exp_fraction_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rational bounds of e^x for any x (negative ones by the reciprocal, bounds swapped)."""
    low, high = exp_bounds(abs(x))
    if x >= 0:
        return Fraction(low, ONE), Fraction(high, ONE)
    return Fraction(ONE, high), Fraction(ONE, low)
