"""The projection onto the simplex: a distribution, and the nearest one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchblend.blender.paper.blend import project_onto_simplex
from strategies import distributions, vectors

TOLERANCE = 1e-9


@given(vectors())
def test_the_projection_is_a_distribution(values: np.ndarray):
    projected = project_onto_simplex(values)
    assert projected.sum() == pytest.approx(1, abs=TOLERANCE)
    assert projected.min() >= 0


@given(vectors())
def test_the_projection_satisfies_the_kkt_conditions(values: np.ndarray):
    """One shift θ: positive entries are value − θ, and entries at zero have value ≤ θ. That is the nearest point."""
    projected = project_onto_simplex(values)
    positive = projected > 0
    shift = (values - projected)[positive]
    assert np.ptp(shift) <= TOLERANCE
    assert (values[~positive] <= shift.mean() + TOLERANCE).all()


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(vectors(n, n), distributions(n))))
def test_no_distribution_is_nearer(pair: tuple[np.ndarray, np.ndarray]):
    values, other = pair
    nearest = np.linalg.norm(values - project_onto_simplex(values))
    assert nearest <= np.linalg.norm(values - other) + TOLERANCE


@given(st.integers(1, 8).flatmap(distributions))
def test_a_distribution_stays(distribution: np.ndarray):
    np.testing.assert_allclose(project_onto_simplex(distribution), distribution, atol=TOLERANCE)


@given(vectors(min_size=2), st.randoms(use_true_random=False))
def test_the_order_of_the_entries_does_not_matter(values: np.ndarray, random):
    order = random.sample(range(len(values)), len(values))
    np.testing.assert_allclose(project_onto_simplex(values[order]), project_onto_simplex(values)[order], atol=TOLERANCE)
