"""The curator over many records: its design, what it publishes, and what is made of it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from searchblend.blender.best.many_records import Measurement, measure_head_list, measured_shares
from searchblend.blender.best.many_records_design import ManyRecordsDesign, many_records_design
from searchblend.blender.groups import InMemoryGroup, Weights
from searchblend.blender.method import METHODS, BestMethod
from searchblend.blender.pipeline import run_blender
from searchblend.blender.result import result_of
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList, Record
from searchblend.synthetic.count_group import RecordModel
from searchblend.synthetic.seeded import SeededRandomness

PARAMS = BlenderParams(Budget(4, 1e-5), max_head_queries=10, records_per_optin=100)


@cache
def people(n: int, seed: int = 1) -> list[list[Record]]:
    """Everybody searches for a few of twenty common things, some of them often, and for things of their own."""
    chance = np.random.Generator(np.random.PCG64(seed))
    users = []
    for i in range(n):
        common = (20 * chance.random(int(chance.integers(1, 12))) ** 2).astype(int)
        rows = [Record(f"q{q:02}", f"u{int(chance.integers(0, 2))}") for q in common]
        users.append([*rows, *(Record(f"own {i} {j}", "u") for j in range(int(chance.integers(0, 5))))])
    return users


@cache
def group() -> InMemoryGroup:
    return InMemoryGroup.from_users(people(3000), randomness=SeededRandomness(1))


def usual_design() -> ManyRecordsDesign:
    return many_records_design(PARAMS.budget, 100, has_urls=True)


def true_shares(head: HeadList) -> np.ndarray:
    shares = np.zeros(head.n_cells)
    for rows in people(3000):
        for row in rows:
            shares[head.cell_of(row)] += 1 / len(rows)
    return shares[:-1] / 3000


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("has_urls", [True, False])
def test_a_design_is_within_its_budget_and_uses_it(epsilon: float, has_urls: bool):
    design = many_records_design(Budget(epsilon, 1e-6), 100, has_urls=has_urls)
    assert 0.9e-6 <= design.delta <= 1e-6
    assert design.selection_delta <= 1e-6
    assert (design.records is None) is not has_urls


def test_a_lower_threshold_or_less_noise_would_be_too_much():
    usual = usual_design()
    queries = usual.queries
    assert replace(usual, queries=replace(queries, integer=queries.integer - 1)).delta > PARAMS.budget.delta
    less = many_records_design(Budget(4.2, 1e-5), 100, has_urls=True)
    assert replace(less, budget=PARAMS.budget).delta > PARAMS.budget.delta


def test_a_budget_that_names_nothing_is_refused():
    with pytest.raises(InvalidParameter, match="records_per_optin 1"):
        many_records_design(Budget(0.01, 1e-9), 100, has_urls=True)


def test_weights_have_norm_one():
    weights = Weights(100, 573)
    assert all(n * w * w <= 573**2 < n * (w + 1) ** 2 for n, w in enumerate(weights.table) if n)


@pytest.mark.thorough
def test_shares_are_measured_without_bias_and_with_the_stated_noise():
    """χ² of 40 runs against the variances that the curator states; the false-alarm rate is below 1e-6."""
    total, freedom, usual = 0.0, 0, usual_design()
    for seed in range(40):
        found = measure_head_list(group(), PARAMS, usual, randomness=SeededRandomness(seed))
        exact = group().own_shares(found.head, usual.units, randomness=SeededRandomness(seed)).cells[:-1]
        first = found.head.first_cells()[:-1]
        named = found.measurement.record_weights > 0
        moved = found.counts - exact
        totals = np.add.reduceat(moved, first) / usual.noise.scale
        gap = np.concatenate([totals, moved[named] / usual.detail_noise.scale])
        total, freedom = total + float((gap**2).sum()), freedom + len(gap)
        assert len(found.head) == 10
    # Another order of rows moves a user's units by less than one a cell: far below the noise.
    assert abs(total - freedom) < 5.5 * math.sqrt(2 * freedom) + 0.1 * freedom


@pytest.mark.thorough
def test_calibrated_shares_are_close_to_the_truth_and_say_how_close():
    gaps = []
    for seed in range(20):
        found = measure_head_list(group(), PARAMS, usual_design(), randomness=SeededRandomness(seed))
        shares = measured_shares(found)
        first = found.head.first_cells()[:-1]
        gap = np.add.reduceat(shares.cells.value - true_shares(found.head), first)
        gaps.append(gap / np.sqrt(shares.totals.variance[first]))
        assert shares.rho is not None
        assert 0.1 < shares.rho < 0.6
    assert np.sqrt(np.mean(np.square(gaps))) < 1.5


def test_nobody_alone_is_named():
    alone = InMemoryGroup.from_users([[Record(f"q{i}", "u")] * 3 for i in range(2000)], randomness=SeededRandomness(1))
    assert not len(measure_head_list(alone, PARAMS, usual_design(), randomness=SeededRandomness(2)).head)


def test_a_reviewer_removes_entries():
    figures = BestMethod().list_head(group(), PARAMS, randomness=SeededRandomness(3))
    assert figures.counts is not None
    assert figures.measurement is not None
    with_urls = next(i for i, n in enumerate(figures.head.n_urls[:-1]) if n > 1)
    left = figures.without([(0 if with_urls else 1, None), (with_urls, 0)], PARAMS)
    assert left.counts is not None
    assert left.measurement is not None
    everything = [int(f.counts.sum()) + f.measurement.rest for f in (figures, left) if f.measurement is not None]
    assert everything[0] == everything[1]
    assert len(left.measurement.query_weights) == len(left.head)
    assert len(left.measurement.record_weights) == left.head.n_cells - 1
    assert Measurement.of_json(left.measurement.as_json()).as_json() == left.measurement.as_json()


@pytest.mark.parametrize(
    ("method", "budget", "has_rows", "expected"),
    [
        ("best", Budget(4, 1e-5), True, 100),
        ("best", Budget(4, 1e-5), False, 1),
        ("best", Budget(4, 1e-14), True, 1),  # too small a δ for the thresholds
        ("paper", Budget(4, 1e-5), True, 1),
    ],
)
def test_the_number_of_records_is_settled_by_method_budget_and_reading(
    method: str, budget: Budget, has_rows: bool, expected: int
):
    params = METHODS[method].settled(BlenderParams(budget), has_rows=has_rows)
    assert params.records_per_optin == expected
    assert METHODS[method].settled(params) == params


def test_a_given_number_of_records_stays_as_it_is():
    for given in (1, 7):
        params = BlenderParams(Budget(4, 1e-5), records_per_optin=given)
        assert BestMethod().settled(params, has_rows=False) == params


@pytest.mark.parametrize(("method", "expected"), [("best", 100), ("paper", 1)])
def test_a_run_counts_many_records_by_default_and_states_how_many(method: str, expected: int):
    params = BlenderParams(Budget(4, 1e-5), max_head_queries=10)
    release = run_blender(group(), group(), params, method=method, randomness=SeededRandomness(1))
    assert release.params.records_per_optin == expected
    assert result_of(release).parameters["records_per_optin"] == expected


def test_a_run_on_people_of_whom_one_record_is_known_counts_that_one():
    model = RecordModel.of_records([Record("a", "u"), Record("b", "u")], [0.6, 0.4])
    people = model.draw(500, np.random.Generator(np.random.PCG64(1)))
    release = run_blender(people, people, BlenderParams(Budget(4, 1e-5)), randomness=SeededRandomness(1))
    assert result_of(release).parameters["records_per_optin"] == 1
