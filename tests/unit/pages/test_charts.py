"""Axes, shares and bars of the result pages."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchblend.pages.charts import (
    IntervalRow,
    Mark,
    interval_rows,
    log_ticks,
    nice_ticks,
    rank_curve,
    shares_bar,
    spread_ranks,
)
from searchblend.pages.layout import small_number
from searchblend.pages.release_pages import percent


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_ticks_start_at_zero_are_round_and_reach_the_largest_value(largest):
    ticks = nice_ticks(largest)
    assert ticks[0] == 0
    assert ticks[-1] >= largest * (1 - 1e-12)
    assert 2 <= len(ticks) <= 6
    steps = {round((after - before) / largest, 9) for before, after in itertools.pairwise(ticks)}
    assert len(steps) == 1


def test_ticks_of_nothing():
    assert nice_ticks(0) == [0, 1]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0218, "2.18 %"),
        (0, "0.00 %"),
        (0.0005, "0.05 %"),
        (0.00012345, "0.012 %"),
        (0.000001, "0.0001 %"),
        (1, "100.00 %"),
    ],
)
def test_shares_are_written_for_people(value, shown):
    assert percent(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(1e-5, "10⁻⁵"), (2.5e-7, "2.5·10⁻⁷"), (0.01, "0.01"), (0, "0"), (9.99999e-6, "10⁻⁵")]
)
def test_a_small_number_is_a_power_of_ten(value, shown):
    assert small_number(value) == shown


def test_a_bar_lies_where_its_value_is():
    figure = interval_rows(
        "c", [IntervalRow("q", 0.05, 0.02, 0.08, "5 %")], [Mark("dot", "share")], unit=0.01, suffix=" %"
    )
    (dot,) = re.findall(r'<svg height="22".*?class="dot" cx="([\d.]+)%"', figure)
    low, high = re.findall(r'class="interval" x1="([\d.]+)%" x2="([\d.]+)%"', figure)[0]
    assert (float(low), float(dot), float(high)) == (25, 62.5, 100)
    assert ">8 %</text>" in figure


def test_a_bar_below_zero_and_a_mark_outside_stay_inside():
    bar = IntervalRow("q", 0.0, -0.5, 1.0, "0", marks=[("optin", -3.0), ("true", 0.5)])
    figure = interval_rows("c", [bar], [], unit=1, suffix="")
    assert re.findall(r'x="-|x1="-|cx="-', figure) == []


def test_a_curve_of_falling_values_falls():
    figure = rank_curve("c", [(0.1, 0.09, 0.11), (0.01, 0.005, 0.02), (0.001, 0, 0.002)], unit=1, suffix="")
    points = re.search(r'<polyline class="curve" points="([^"]+)"', figure)[1].split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights == sorted(heights)
    assert heights[-1] == 240


@given(st.integers(min_value=1, max_value=1_000_000))
def test_a_curve_has_few_points_and_both_ends(n):
    ranks = spread_ranks(n)
    assert ranks[0] == 1
    assert ranks[-1] == n
    assert len(ranks) <= 400
    assert ranks == sorted(set(ranks))


def test_no_curve_without_two_points():
    assert rank_curve("c", [(0.1, 0, 1)], unit=1, suffix="") == ""
    assert interval_rows("c", [], [], unit=1, suffix="") == ""


def test_captions_are_escaped():
    assert "<b>" not in shares_bar("<b>", 0.5, "<b>", "<b>") + interval_rows(
        "<b>", [IntervalRow("<b>", 1, 1, 1, "<b>")], [Mark("dot", "<b>")], unit=1, suffix=""
    )


@pytest.mark.parametrize(
    ("bottom", "top", "expected"),
    [(1, 8, [1, 2, 5]), (1, 1000, [1, 10, 100, 1000]), (0.01, 0.3, [0.01, 0.02, 0.05, 0.1, 0.2]), (1, 1, [1])],
)
def test_ticks_of_a_logarithmic_axis(bottom, top, expected):
    assert log_ticks(bottom, top) == pytest.approx(expected)
