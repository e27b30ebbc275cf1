"""Weights by variance, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from searchblend.blender.estimates import Estimates
from searchblend.blender.paper.blend import blend_probabilities


def blend(optin: list[tuple[float, float]], client: list[tuple[float, float]], **options: bool):
    return blend_probabilities(
        *(Estimates(*map(np.array, zip(*pairs, strict=True))) for pairs in (optin, client)), **options
    )


def test_the_more_certain_group_weighs_more():
    """w = σ²_C/(σ²_O + σ²_C) is the opt-in share."""
    blended = blend([(0.2, 1.0)], [(0.6, 3.0)], project=False)
    assert blended.optin_weight.tolist() == [0.75]
    assert blended.probability[0] == pytest.approx(0.3)
    assert blended.raw.variance[0] == pytest.approx(0.75)


def test_equal_variances_give_the_mean():
    blended = blend([(0.2, 2.0)], [(0.6, 2.0)])
    assert blended.optin_weight.tolist() == [0.5]
    assert blended.raw.probability[0] == pytest.approx(0.4)
    assert blended.raw.variance[0] == pytest.approx(1.0)


def test_two_certain_groups_give_the_mean():
    blended = blend([(0.2, 0.0)], [(0.6, 0.0)])
    assert blended.optin_weight.tolist() == [0.5]
    assert blended.raw.probability[0] == pytest.approx(0.4)
    assert blended.raw.variance[0] == 0


@pytest.mark.parametrize(("optin", "client", "weight"), [(0.0, 1.0, 1.0), (1.0, 0.0, 0.0)])
def test_a_certain_group_takes_it_all(optin: float, client: float, weight: float):
    assert blend([(0.2, optin)], [(0.6, client)]).optin_weight.tolist() == [weight]


def test_where_optin_users_are_silent_clients_speak():
    nan = float("nan")
    blended = blend([(nan, nan), (0.5, 1.0)], [(0.3, 2.0), (0.7, 1.0)])
    assert blended.optin_weight.tolist() == [0.0, 0.5]
    assert blended.raw.probability.tolist() == pytest.approx([0.3, 0.6])
    assert blended.raw.variance.tolist() == pytest.approx([2.0, 0.5])


def test_projection_is_optional_and_keeps_the_raw_values():
    blended = blend([(0.5, 1.0), (0.9, 1.0)], [(0.5, 1.0), (0.9, 1.0)])
    assert blended.probability.tolist() == pytest.approx([0.3, 0.7])
    assert blended.raw.probability.tolist() == pytest.approx([0.5, 0.9])


def test_intervals_are_not_clipped():
    low, high = Estimates(np.array([0.01]), np.array([0.0004])).interval[0]
    assert low == pytest.approx(0.01 - 1.96 * 0.02, abs=1e-5)
    assert high == pytest.approx(0.01 + 1.96 * 0.02, abs=1e-5)
