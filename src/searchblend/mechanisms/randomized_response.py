"""k-ary randomized response with a δ term, as an integer threshold on 64 random bits.

One stage of [BLJ] Fig. 6: keep the truth with probability t, else report a uniform *other* value.
Standard library only: this runs on devices.
"""

from __future__ import annotations

from fractions import Fraction

from searchblend.mechanisms.fixed_point import exp_fraction_bounds


def keep_probability(epsilon: Fraction, delta: Fraction, n_values: int) -> Fraction:
    """A rational lower bound (by less than 2^-110) of t = (e^ε + (δ/2)(k−1)) / (e^ε + k − 1).

    [BLJ] Fig. 6, lines 4-6, with k = ``n_values``. One value cannot be lied about: t = 1.

    Rounding down costs no privacy: t grows with e^ε, and every likelihood ratio of the mechanism,
    t / ((1−t)/(k−1)), falls when t does.
    """
    if n_values == 1:
        return Fraction(1)
    growth, _ = exp_fraction_bounds(epsilon)
    return (growth + delta / 2 * (n_values - 1)) / (growth + n_values - 1)
