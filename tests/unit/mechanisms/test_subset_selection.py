"""Sets of items instead of one: thresholds, boundaries, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from searchblend.core.errors import InvalidParameter
from searchblend.core.randomness import HALF, Tape, TapeExhausted, accept_below
from searchblend.mechanisms.subset_selection import (
    SINK,
    WORDS,
    PlainSubsetSelection,
    SubsetSelection,
    uniform_subset,
)


def tape(*words: int) -> Tape:
    return Tape(b"".join(word.to_bytes(8, "little") for word in words))


@pytest.mark.parametrize(("m", "d", "epsilon"), [(50, 2, 4), (16, 5, 1), (132, 1, 6), (1, 1, 2)])
def test_known_probabilities(m: int, d: int, epsilon: int):
    """φE/(1 + φE) and φ/(1 + φE), φ = d/m."""
    mechanism = SubsetSelection.of(Fraction(epsilon), m, d)
    weight = d / m * math.exp(epsilon)
    assert mechanism.include == pytest.approx(weight / (1 + weight), rel=1e-12)
    assert mechanism.sink_of_holder == pytest.approx(d / m / (1 + weight), rel=1e-12)


@pytest.mark.parametrize("m", [1, 2, 7, 50])
def test_single_items_are_randomized_response(m: int):
    """d = 1: k-ary randomized response over the m items and ⋆, the sink being ⋆."""
    sink, own, other = SubsetSelection.of(Fraction(2), m, 1).law(0)
    star_sink, star_set, _ = SubsetSelection.of(Fraction(2), m, 1).law(None)
    keep = math.exp(2) / (math.exp(2) + m)
    assert float(own) == pytest.approx(keep, rel=1e-12)
    assert float(star_sink) == pytest.approx(keep, rel=1e-12)
    for lie in (sink, star_set, *([other] if m > 1 else [])):
        assert float(lie) == pytest.approx((1 - keep) / m, rel=1e-12)


@pytest.mark.parametrize("m", [1, 3, 50])
def test_a_set_of_everything_has_no_other_set(m: int):
    mechanism = SubsetSelection.of(Fraction(1), m, m)
    assert mechanism.sink_below == WORDS
    assert mechanism.law(0)[2] == 0
    assert mechanism.report(0, tape(WORDS - 1)) == SINK
    assert mechanism.report(0, tape(0, *[0] * m)) == tuple(range(m))


def test_words_at_the_thresholds():
    """include_below − 1 names the item, include_below is the sink, sink_below lies."""
    mechanism = SubsetSelection.of(Fraction(1), 5, 2)
    include, sink = mechanism.include_below, mechanism.sink_below
    assert 3 in mechanism.report(3, tape(0, 0))
    assert 3 in mechanism.report(3, tape(include - 1, 0))
    assert mechanism.report(3, tape(include)) == SINK
    assert mechanism.report(3, tape(sink - 1)) == SINK
    assert 3 not in mechanism.report(3, tape(sink, 0, 0))
    assert 3 not in mechanism.report(3, tape(WORDS - 1, 0, 0))
    assert mechanism.report(None, tape(include - 1)) == SINK
    assert len(mechanism.report(None, tape(include, 0, 0))) == 2


def test_reports_are_ascending_and_step_over_the_item():
    mechanism = SubsetSelection.of(Fraction(1), 4, 3)
    assert mechanism.report(1, tape(0, 1, 0)) == (0, 1, 2)
    assert mechanism.report(1, tape(WORDS - 1, 0, 1, 2)) == (0, 2, 3)


def test_floyd_takes_the_last_for_one_that_is_taken():
    assert uniform_subset(5, 3, tape(2, 2, 2)) == (2, 3, 4)
    assert uniform_subset(5, 3, tape(0, 0, 1)) == (0, 1, 3)
    assert uniform_subset(4, 0, tape()) == ()
    assert uniform_subset(1, 1, tape()) == (0,)


def test_halves_that_do_not_divide_evenly_are_drawn_again():
    assert uniform_subset(3, 1, tape(accept_below(3), 2)) == (2,)
    with pytest.raises(TapeExhausted):
        uniform_subset(3, 1, tape(HALF - 1))


@pytest.mark.parametrize(("m", "d"), [(0, 1), (3, 0), (3, 4), (-1, 1)])
@pytest.mark.parametrize("kind", [SubsetSelection, PlainSubsetSelection])
def test_impossible_sizes_are_refused(kind: type, m: int, d: int):
    with pytest.raises(InvalidParameter, match="subset_size"):
        kind.of(Fraction(1), m, d)


def test_an_epsilon_that_64_bits_cannot_tell_from_zero_is_refused():
    with pytest.raises(InvalidParameter, match="epsilon"):
        SubsetSelection.of(Fraction(1, 2**70), 10, 2)


@pytest.mark.parametrize(("m", "d", "epsilon"), [(50, 2, 4), (16, 5, 1), (1, 1, 2)])
def test_plain_sets(m: int, d: int, epsilon: int):
    """dE/(dE + m + 1 − d): ⋆ is an item like any other."""
    mechanism = PlainSubsetSelection.of(Fraction(epsilon), m, d)
    weight = d * math.exp(epsilon)
    assert mechanism.include == pytest.approx(weight / (weight + m + 1 - d), rel=1e-12)
    assert m in mechanism.report(None, tape(0, *[0] * d))
    assert m not in mechanism.report(None, tape(WORDS - 1, *[0] * d))
