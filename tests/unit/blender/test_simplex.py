"""Projections worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from searchblend.blender.paper.blend import project_onto_simplex


@pytest.mark.parametrize(
    ("values", "projected"),
    [
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
        ([0.5, 0.7], [0.4, 0.6]),
        ([0.6, 0.6, -0.2], [0.5, 0.5, 0.0]),
        ([2.0, 0.0], [1.0, 0.0]),
        ([0.0, 0.0, 0.0, 0.0], [0.25] * 4),
        ([-5.0], [1.0]),
        ([0.9, 0.4, 0.05, -0.1], [0.75, 0.25, 0.0, 0.0]),
    ],
)
def test_known_projections(values: list[float], projected: list[float]):
    np.testing.assert_allclose(project_onto_simplex(np.array(values)), projected, atol=1e-12)


def test_the_input_is_left_alone():
    values = np.array([0.5, 0.7])
    project_onto_simplex(values)
    assert values.tolist() == [0.5, 0.7]
