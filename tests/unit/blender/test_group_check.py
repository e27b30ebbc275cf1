"""Do the groups search alike? What the reader is told."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from searchblend.blender.best.group_check import LEVEL, GroupCheck, chi_square_tail, p_value_of
from searchblend.blender.result import StatedCheck

ALL = np.ones(4, dtype=np.bool_)


def test_equal_shares_agree():
    assert p_value_of(np.zeros(4), ALL) == 1.0


def test_p_value_is_chi_square():
    assert p_value_of(np.array([1, -2, 0.5, 1]), ALL) == pytest.approx(chi2.sf(1 + 4 + 0.25 + 1, 4))


def test_only_testable_queries_count():
    assert p_value_of(np.array([9.0, 0.5, 9, 9]), np.array([False, True, False, False])) > 0.5
    assert p_value_of(np.array([9.0, 9, 9, 9]), ~ALL) == 1.0


def test_a_stated_check_names_the_flagged():
    check = GroupCheck(4, LEVEL / 2, 0.3, (1,))
    stated = StatedCheck.of(check, ["a", "b", "c", "d"])
    assert stated.flagged_queries == ("b",)
    assert stated.agrees is False
    assert (stated.tested_queries, stated.divergence) == (4, 0.3)


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 50, 499, 500])
@pytest.mark.parametrize("value", [0.0, 1e-9, 0.5, 3.0, 40.0, 500.0, 900.0])
def test_the_tail_of_chi_square_is_that_of_the_library(freedom, value):
    assert chi_square_tail(freedom, value) == pytest.approx(chi2.sf(value, freedom), rel=1e-9, abs=1e-300)
