"""The law of released noise: widths, cuts and swaps, against formulas and against noise that is drawn."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from searchblend.clickgraph.release.noise_law import NoiseLaw
from searchblend.core.errors import InvalidParameter
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.synthetic.seeded import SeededRandomness

DRAWS = 200_000


def draw(noise: NoiseLaw, shape: tuple[int, int], seed: int = 1) -> np.ndarray:
    if noise.law == "discrete_laplace":
        law = DiscreteLaplace(1 / Fraction(noise.scale))
        return law.sample(shape[0] * shape[1], SeededRandomness(seed)).reshape(shape)
    return np.rint(np.random.default_rng(seed).normal(0, noise.scale, shape))


def half_ties(values: np.ndarray, difference: float) -> float:
    return float((values > difference).mean() + (values == difference).mean() / 2)


@pytest.mark.parametrize("law", ["discrete_laplace", "rounded_gaussian"])
@pytest.mark.parametrize(("scale", "terms", "difference"), [(2.0, 2, 0), (2.0, 2, 5), (5.0, 3, 4), (5.0, 8, 20)])
def test_swaps_are_as_frequent_as_stated(law, scale: float, terms: int, difference: int):
    noise = NoiseLaw(law, scale)
    share = half_ties(draw(noise, (DRAWS, terms)).sum(axis=1), difference)
    expected = noise.swap_probability(difference, terms)
    spread = 4.5 * math.sqrt(expected * (1 - expected) / DRAWS)
    assert abs(share - expected) < spread
    if difference:
        assert abs(share - NoiseLaw(law, 1.1 * scale).swap_probability(difference, terms)) > spread
        assert abs(share - noise.swap_probability(difference, terms + 1)) > spread


@pytest.mark.thorough
@given(st.floats(30, 1000), st.floats(0, 6))
def test_two_laplace_counts_swap_by_the_papers_formula(scale: float, ratio: float):
    difference = round(ratio * scale)
    y = difference / scale
    expected = math.exp(-y) * (2 + y) / 4
    assert NoiseLaw("discrete_laplace", scale).swap_probability(difference) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("scale", [1.5, 4.0])
@pytest.mark.parametrize("terms", [1, 2, 5])
def test_sums_of_rounded_gaussians_as_convolved(scale: float, terms: int):
    reach = 200
    steps = special.ndtr((np.arange(-reach, reach + 2) - 0.5) / scale)
    mass = np.diff(steps)
    total = mass
    for _ in range(terms - 1):
        total = np.convolve(total, mass)
    values = np.arange(len(total)) - terms * reach
    noise = NoiseLaw("rounded_gaussian", scale)
    for difference in range(0, int(5 * scale * terms), 2):
        above, tied = total[values > difference].sum(), total[values == difference].sum()
        assert noise.swap_probability(difference, terms) == pytest.approx(above + tied / 2, abs=1e-4)
        exact = 1e-12 if terms == 1 else 1e-4
        assert noise.swap_probability(difference + 0.5, terms) == pytest.approx(above, abs=exact)


def test_equal_counts_are_a_coin():
    for law in ("discrete_laplace", "rounded_gaussian"):
        assert NoiseLaw(law, 3.0).swap_probability(0, 5) == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("noise", [NoiseLaw("discrete_laplace", 4.0), NoiseLaw("rounded_gaussian", 4.0)])
@pytest.mark.parametrize("terms", [1, 2, 6])
def test_half_widths_cover(noise: NoiseLaw, terms: int):
    half = noise.half_width(terms=terms)
    sums = np.abs(draw(noise, (DRAWS, terms)).sum(axis=1))
    assert (sums <= half).mean() > 0.949
    assert (sums < half).mean() < 0.951


def test_half_widths_of_single_counts():
    assert NoiseLaw("discrete_laplace", 100.0).half_width() == pytest.approx(100 * math.log(20), abs=1)
    assert NoiseLaw("rounded_gaussian", 100.0).half_width() == pytest.approx(196, abs=1)
    with pytest.raises(InvalidParameter, match="confidence"):
        NoiseLaw("rounded_gaussian", 100.0).half_width(1.0)


@pytest.mark.parametrize("noise", [NoiseLaw("discrete_laplace", 3.0), NoiseLaw("rounded_gaussian", 7.0)])
@pytest.mark.parametrize("rate", [0.1, 0.01])
def test_the_cut_lets_no_more_false_edges_through(noise: NoiseLaw, rate: float):
    cut, drawn = noise.false_edge_cut(rate), draw(noise, (DRAWS, 1))
    spread = 4.5 * math.sqrt(rate / DRAWS)
    assert (drawn >= cut).mean() <= rate + spread
    assert (drawn >= cut - 1).mean() > rate - spread


def test_standard_deviations():
    for noise in (NoiseLaw("discrete_laplace", 2.0), NoiseLaw("rounded_gaussian", 6.0)):
        assert draw(noise, (DRAWS, 1)).std() == pytest.approx(noise.standard_deviation, rel=0.02)


def test_wrong_laws_are_refused():
    with pytest.raises(InvalidParameter, match="law"):
        NoiseLaw("uniform", 1.0)  # type: ignore[arg-type]
    for scale in (0, math.inf, math.nan):
        with pytest.raises(InvalidParameter, match="scale"):
            NoiseLaw("discrete_laplace", scale)
    with pytest.raises(InvalidParameter, match="rate"):
        NoiseLaw("discrete_laplace", 1.0).false_edge_cut(0.5)
    with pytest.raises(InvalidParameter, match="difference"):
        NoiseLaw("discrete_laplace", 1.0).swap_probability(-1)
