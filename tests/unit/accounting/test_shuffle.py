"""The cost of published counts to one client: values, a test that nearly reaches them, and rounding upwards."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from searchblend.accounting import shuffle
from searchblend.accounting.shuffle import OutputClass, ShuffledReports, shuffle_cost, shuffled_delta
from searchblend.accounting.shuffled_reports import shuffled_cells, shuffled_sets
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection
from searchblend_lab.evidence.laws.shuffled import scored_delta

DELTA = 1e-5


def sets(kind, epsilon, items=150):
    size = max(1, round(items / (math.exp(epsilon) + 1)))
    return shuffled_sets([(Fraction(1), kind.of(Fraction(epsilon), items, size))])


def cells(widths, epsilon, make=ReportProbabilities.of):
    head = HeadList((f"q{i}", [f"u{j}" for j in range(n)]) for i, n in enumerate(widths))
    return shuffled_cells(make(head, BlenderParams(Budget(epsilon, DELTA))))


KINDS = {
    "sink": lambda epsilon: sets(SubsetSelection, epsilon),
    "plain": lambda epsilon: sets(PlainSubsetSelection, epsilon),
    "two-stage": lambda epsilon: cells([0, 1, 2], epsilon),
    "queries alone": lambda epsilon: cells([0] * 50, epsilon),
    "one query": lambda epsilon: sets(SubsetSelection, epsilon, items=1),
}


GENERAL = {(493_000, 1): 0.005, (493_000, 2): 0.015, (493_000, 4): 0.06, (493_000, 6): 0.19, (10_000, 4): 0.52}
"""what holds for any local mechanism (Feldman, McMillan, Talwar 2023), approximately"""


@pytest.mark.parametrize(
    ("kind", "clients", "epsilon"),
    [
        *[("sink", *point) for point in GENERAL],
        *[(kind, 10_000, 4) for kind in KINDS if kind != "sink"],
        ("one query", 493_000, 6),
        ("plain", 493_000, 1),
    ],
)
def test_every_mechanism_is_below_the_general_bound(kind, clients, epsilon):
    cost = shuffle_cost(KINDS[kind](epsilon), clients, DELTA, epsilon)
    assert 0 < cost.at_least <= cost.epsilon < GENERAL[clients, epsilon]


@pytest.mark.parametrize(
    ("kind", "clients", "epsilon", "steps"),
    [
        (SubsetSelection, 493_000, 1, 3),
        (PlainSubsetSelection, 493_000, 1, 3),
        (SubsetSelection, 493_000, 4, 1),
        (SubsetSelection, 493_000, 6, 1),
        (PlainSubsetSelection, 10_000, 4, 1),
    ],
)
def test_a_real_test_nearly_reaches_the_bound(kind, clients, epsilon, steps):
    """At ε/1.15 somebody who sees the counts already does better than δ."""
    reports = sets(kind, epsilon)
    bound = shuffle_cost(reports, clients, DELTA, epsilon).epsilon
    assert max(scored_delta(pair, clients, bound / 1.15, steps) for pair in reports.concrete) > DELTA
    assert max(scored_delta(pair, clients, bound, steps) for pair in reports.concrete) <= DELTA


@pytest.mark.parametrize("kind", KINDS)
def test_laws_are_whole_and_the_blanket_lies_below_them(kind):
    reports = KINDS[kind](2)
    for pair in (*reports.bounds, *reports.concrete):
        assert sum(one.upper for one in pair) == sum(one.lower for one in pair) == 1
    assert all(one.others <= min(one.upper, one.lower) for pair in reports.bounds for one in pair)
    assert all(sum(one.others for one in pair) == 1 for pair in reports.concrete)


def test_more_clients_cost_less_and_nothing_exceeds_the_local_epsilon():
    reports = sets(SubsetSelection, 4, items=20)
    costs = [shuffle_cost(reports, n, DELTA, 4.0).epsilon for n in (1, 10, 1_000, 50_000)]
    assert costs[0] == 4.0
    assert all(one >= other for one, other in pairwise(costs))


def test_several_reports_of_one_client_cost_more_than_one_and_less_than_their_sum_in_a_smaller_crowd():
    parts = [(Fraction(1), SubsetSelection.of(Fraction(1), 20, 5))]
    three = shuffle_cost(shuffled_sets(parts, records_per_client=3), 10_000, DELTA, 3.0)
    assert shuffle_cost(shuffled_sets(parts), 30_000, DELTA, 1.0).epsilon < three.epsilon
    assert three.epsilon < 3 * shuffle_cost(shuffled_sets(parts), 30_000, DELTA / 4, 1.0).epsilon
    assert three.at_least == 0


def test_two_outputs_by_hand():
    """One client and one other, randomized response over two values: (P − e^ε Q)₊ of three counts."""
    t = Fraction(3, 4)
    pair = (OutputClass(t, 1 - t, 1 - t), OutputClass(1 - t, t, t))  # the other holds the second
    # counts of the first value: 2, 1, 0
    p = (t * (1 - t), t * t + (1 - t) ** 2, (1 - t) * t)
    q = ((1 - t) ** 2, 2 * t * (1 - t), t * t)
    expected = float(sum(max(one - other, 0) for one, other in zip(p, q, strict=True)))
    assert shuffled_delta(pair, 2, 0.0) == pytest.approx(expected, rel=1e-9)
    assert shuffled_delta(pair, 2, 0.0) >= expected


def test_outputs_that_nobody_else_sends_are_seen():
    half = Fraction(1, 2)
    pair = (OutputClass(half, half, half), OutputClass(half, Fraction(0), Fraction(0)), OutputClass(0, half, 0))
    assert shuffled_delta(pair, 1000, 0.3) == pytest.approx(0.5)


def test_a_coarser_grid_keeps_mass_and_mean_and_spreads():
    fine = shuffle._Sum(0.5, -7, np.array([0.1, 0.2, 0.0, 0.3, 0.05, 0.25, 0.1]))
    for first in (-7, -6, 0, 1):
        law = shuffle._Sum(fine.step, first, fine.mass)
        coarse = law.coarser()
        assert coarse.mass.sum() == pytest.approx(1)
        assert moment(coarse, 1) == pytest.approx(moment(law, 1))
        assert moment(coarse, 2) >= moment(law, 2)
        assert coarse.mean_above_zero() >= law.mean_above_zero()


def moment(law, power):
    return float(((law.step * (law.first + np.arange(len(law.mass)))) ** power) @ law.mass)


def test_what_is_cut_off_is_charged(monkeypatch):
    """With a coarse cut δ rises: mass below is moved up, mass above is paid for in full."""
    pair = sets(SubsetSelection, 1, items=20).bounds[0]
    exact = shuffled_delta(pair, 2_000, 0.05)
    monkeypatch.setattr(shuffle, "_CUT", 1e-9)
    assert shuffled_delta(pair, 2_000, 0.05) > exact


@pytest.mark.parametrize(("clients", "delta"), [(0, 1e-5), (2**40, 1e-5), (10, 0.0), (10, 1.0)])
def test_refused(clients, delta):
    with pytest.raises(InvalidParameter):
        shuffle_cost(ShuffledReports((), ()), clients, delta, 1.0)


def test_chances_that_do_not_sum_to_one_are_refused():
    with pytest.raises(InvalidParameter):
        shuffled_sets([(Fraction(1, 2), SubsetSelection.of(Fraction(1), 4, 2))])
