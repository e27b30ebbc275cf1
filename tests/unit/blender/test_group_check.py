"""Do the groups search alike? In numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

from searchblend.blender.best.group_check import LEVEL, GroupCheck, check_groups, chi_square_tail
from searchblend.blender.result import StatedCheck

ALL = np.ones(4, dtype=np.bool_)
ONES = np.ones(4)


def check(z: list[float], total: float = 0.01, testable: np.ndarray = ALL) -> GroupCheck:
    """Gaps of these numbers of standard errors of 0.001."""
    return check_groups(0.001 * np.array(z), 1e-6 * ONES[: len(z)], total * ONES[: len(z)], testable)


def test_equal_shares_agree():
    result = check([0, 0, 0, 0])
    assert result.agrees
    assert (result.p_value, result.tilt, result.divergence, result.flagged) == (1.0, 0.0, 0.0, ())


def test_p_value_is_chi_square():
    assert check([1, -2, 0.5, 1]).p_value == pytest.approx(chi2.sf(1 + 4 + 0.25 + 1, 4))


def test_one_large_gap_is_flagged():
    result = check([0.1, 4, -0.3, 0.2])
    assert not result.agrees
    assert result.flagged == (1,)
    assert result.tested == 4


def test_holm_stops_at_the_first_that_passes():
    """2.6 standard errors: p = .0093 ≤ .05/4; then 2.35: .0188 > .05/3, so 2.3 is not looked at any more."""
    assert check([2.6, 2.35, 2.3, 0]).flagged == (0,)
    assert check([2.6, 2.5, 2.3, 0]).flagged == (0, 1, 2)


def test_flags_keep_their_places_among_the_untested():
    testable = np.array([False, True, False, True])
    result = check([9, 0, 9, -5], testable=testable)
    assert result.flagged == (3,)
    assert result.tested == 2


def test_nothing_to_test_agrees():
    result = check([9, 9, 9, 9], testable=~ALL)
    assert (result.tested, result.p_value, result.tilt) == (0, 1.0, 0.0)
    assert result.agrees


def test_tilt_by_moments():
    """Equal shares and variances: the mean of gap² − V, relative to the squared share."""
    result = check([4, -4, 5, -3], total=0.01)
    assert result.tilt == pytest.approx((np.mean([16, 16, 25, 9]) - 1) * 1e-6 / 0.01**2)
    assert result.divergence == pytest.approx(math.sqrt(result.tilt))


def test_no_tilt_without_significance():
    result = check([1.2, -1.1, 1.3, 1.2])
    assert result.p_value > LEVEL
    assert result.tilt == 0


def test_a_stated_check_names_the_flagged():
    stated = StatedCheck.of(check([0, 6, 0, 0]), ["a", "b", "c", "d"])
    assert stated.flagged_queries == ("b",)
    assert stated.agrees is False
    assert stated.tested_queries == 4


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 50, 499, 500])
@pytest.mark.parametrize("value", [0.0, 1e-9, 0.5, 3.0, 40.0, 500.0, 900.0])
def test_the_tail_of_chi_square_is_that_of_the_library(freedom, value):
    assert chi_square_tail(freedom, value) == pytest.approx(chi2.sf(value, freedom), rel=1e-9, abs=1e-300)
