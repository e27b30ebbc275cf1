"""The design of a selection of values: the law of all that is published, enumerated for neighbours of small cases."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from searchblend.blender.best.stability_histogram import CuratorDesign
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget, Neighbors
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian, on_sigma_grid
from searchblend.mechanisms.value_selection import SelectionDesign

REPLACE, ADD_REMOVE = Neighbors.REPLACE_ONE, Neighbors.ADD_REMOVE_ONE
FLOAT_ERROR = 1e-13
CASES = [
    (budget, neighbors, most)
    for budget in (Budget(4.0, 1e-5), Budget(2.0, 0.05), Budget(1.0, 0.02))
    for neighbors in Neighbors
    for most in (1, 2)
]


def law(design, count, far):
    """What is seen of one value: nothing, or its noisy number, up to one that stands for all above."""
    noise, named = design.noise, range(design.integer, far + 1)
    if not count:
        return np.array([1.0, *(0.0 for _ in named)])
    seen = [noise.at_least(n - count) - noise.at_least(n + 1 - count) for n in named[:-1]]
    return np.array([1 - noise.at_least(design.integer - count), *seen, noise.at_least(far - count)])


def joint(laws):
    return reduce(lambda p, q: np.multiply.outer(p, q).ravel(), laws)


def moves(design):
    """(others who hold a value, before, after): the old user holds some values, the new one others."""
    most, top = design.values_per_user, design.integer
    others = (0, 1, top - 1, top + 2)
    gone, come = [(n, 1, 0) for n in others], [(n, 0, 1) for n in others]
    for n_gone in range(most + 1):
        for n_come in range(most + 1):
            if design.neighbors is ADD_REMOVE and n_gone and n_come:
                continue
            for left in combinations_with_replacement(gone, n_gone):
                for right in combinations_with_replacement(come, n_come):
                    if left or right:
                        yield left + right


def worst(design):
    """The largest hockey-stick divergence between neighbours, at the budget's ε."""
    far = design.integer + 2 + math.ceil(8 * math.sqrt(design.noise.variance))
    one = lru_cache(maxsize=None)(lambda count: law(design, count, far))
    growth, largest = math.exp(design.budget.epsilon), 0.0
    for move in moves(design):
        p = joint([one(n + before) for n, before, _ in move])
        q = joint([one(n + after) for n, _, after in move])
        largest = max(largest, float(np.maximum(p - growth * q, 0).sum()), float(np.maximum(q - growth * p, 0).sum()))
    return largest


@pytest.mark.parametrize(("budget", "neighbors", "most"), CASES)
def test_what_is_published_is_as_private_as_stated(budget, neighbors, most):
    design = SelectionDesign.of(budget, neighbors, values_per_user=most)
    assert worst(design) <= design.mechanism_delta * (1 + 1e-6) + FLOAT_ERROR
    assert design.delta <= budget.delta
    assert worst(design) >= 0.2 * design.mechanism_delta, "narrow noise on whole numbers wastes some of δ, but not all"


def shrunk(noise, factor):
    if isinstance(noise, RoundedGaussian):
        return RoundedGaussian(on_sigma_grid(noise.scale * factor))
    return DiscreteLaplace(noise.rate / Fraction(factor))


FAULTS = {
    "threshold one lower": lambda design: replace(design, integer=design.integer - 1),
    "half the noise": lambda design: replace(design, noise=shrunk(design.noise, 0.5)),
    "noise of another relation": lambda design: replace(design, noise=shrunk(design.noise, 0.7)),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("budget", "neighbors", "most"), CASES)
def test_the_enumeration_rejects_too_little(budget, neighbors, most, fault):
    wrong = FAULTS[fault](SelectionDesign.of(budget, neighbors, values_per_user=most))
    assert worst(wrong) > budget.delta


def test_the_enumeration_rejects_counting_more_values_than_stated():
    design = SelectionDesign.of(Budget(2.0, 0.05), REPLACE)
    assert worst(replace(design, values_per_user=2)) > design.budget.delta


@pytest.mark.parametrize("budget", [Budget(4.0, 1e-5), Budget(1.0, 1e-6), Budget(0.1, 1e-7), Budget(2.0, 0.05)])
def test_one_value_under_replacement_is_the_curators_stability_histogram(budget):
    design, curator = SelectionDesign.of(budget), CuratorDesign.of(budget)
    assert (design.integer, design.noise.rate) == (curator.threshold.integer, curator.threshold.noise.rate)


def test_adding_and_removing_takes_less_noise_and_more_values_take_more():
    budget = Budget(1.0, 1e-6)
    thresholds = {
        (relation, most): SelectionDesign.of(budget, relation, values_per_user=most).integer
        for relation, most in product(Neighbors, (1, 5, 20))
    }
    for most in (1, 5, 20):
        assert thresholds[ADD_REMOVE, most] < thresholds[REPLACE, most]
    for relation in Neighbors:
        assert thresholds[relation, 1] < thresholds[relation, 5] < thresholds[relation, 20]


def test_the_noise_that_names_values_of_fewer_users_is_taken():
    few, many = (SelectionDesign.of(Budget(4.0, 1e-5), ADD_REMOVE, values_per_user=most) for most in (2, 50))
    assert (few.method, many.method) == ("stability histogram", "Gaussian sparse histogram")
    assert isinstance(few.noise, DiscreteLaplace)
    assert isinstance(many.noise, RoundedGaussian)


@pytest.mark.parametrize("most", [0, -1, 101, 1.5, "2", True])
def test_a_number_of_values_outside_the_range_is_refused(most):
    with pytest.raises(InvalidParameter, match=r"values_per_user: expected a whole number from 1 to 100"):
        SelectionDesign.of(Budget(1.0, 1e-6), values_per_user=most)


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("neighbors", Neighbors)
def test_a_delta_that_the_sampler_alone_exceeds_is_refused(neighbors, most):
    with pytest.raises(InvalidParameter, match="delta: too small"):
        SelectionDesign.of(Budget(1.0, 1e-20), neighbors, values_per_user=most)
