"""Subset selection with a sink: exact columns, the code's own law, and its fast twin. proofs/subset_selection.md."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from searchblend.blender.best.subset_report import PLAIN_SETS, TWO_STAGE, ReportDesign, subset_report
from searchblend.blender.best.subset_report_bulk import simulate_subset_reports, simulate_subsets, uniform_subsets
from searchblend.blender.paper.local_report import randomize
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.subset_selection import SINK, PlainSubsetSelection, SubsetSelection, uniform_subset
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.evidence.laws import best_faults
from searchblend_lab.evidence.laws.best_reports import (
    Row,
    check_formula,
    check_law,
    check_rows,
    check_sampled,
    check_simulated,
    coin_rates,
    driven_report,
    driven_row,
    driven_subsets,
    neighbouring_devices,
    row_of_law,
)
from searchblend_lab.evidence.laws.channel import channel_of, check_channel
from searchblend_lab.evidence.laws.laws import check_plain_sets

EPSILONS = [Fraction(e) for e in ("1/1000", "1/10", "7/10", "1", "2", "4", "6", "12", "30")]
SHAPES = [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (5, 2), (16, 5), (50, 1), (50, 2), (50, 49), (50, 50)]
SHAPES += [(379, 17), (1247, 8), (1247, 600), (10**6, 1), (10**6, 3)]
SMALL = [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2), (5, 3)]

shapes = pytest.mark.parametrize(("m", "d"), SHAPES)
small_shapes = pytest.mark.parametrize(("m", "d"), SMALL)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@shapes
def test_columns(m: int, d: int, epsilon: Fraction):
    """Every column's max/min is at most e^ε, exactly, and no probability is further from its formula than rounding."""
    mechanism = SubsetSelection.of(epsilon, m, d)
    check_law(mechanism, epsilon)
    check_formula(mechanism, epsilon)


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(4)], ids=str)
@small_shapes
def test_report_draws_the_stated_law(m: int, d: int, epsilon: Fraction):
    """The code at both ends of every interval of its word, all choices of sets enumerated: equal as fractions."""
    mechanism = SubsetSelection.of(epsilon, m, d)
    rows = []
    for item in [*range(m), None]:
        rows.append(driven_row(mechanism, item))
        assert rows[-1] == {output: p for output, p in row_of_law(mechanism, item).items() if p}
    check_rows(rows, epsilon)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)], ids=str)
@small_shapes
def test_plain_sets_draw_the_stated_law(m: int, d: int, epsilon: Fraction):
    """Without a sink, ⋆ being one more item."""
    mechanism = PlainSubsetSelection.of(epsilon, m, d)
    rows = [driven_row(mechanism, item) for item in [*range(m), None]]
    assert rows == [row_of_law(mechanism, item) for item in [*range(m), None]]
    check_rows(rows, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@shapes
def test_plain_columns(m: int, d: int, epsilon: Fraction):
    check_plain_sets(PlainSubsetSelection.of, (epsilon, m, d))


@pytest.mark.parametrize("n", range(1, 7))
def test_subsets_are_uniform(n: int):
    """Floyd's algorithm over all results of its draws: every set exactly equally often."""
    for size in range(n + 1):
        law = driven_subsets(uniform_subset, n, size)
        assert law == dict.fromkeys(combinations(range(n), size), Fraction(1, math.comb(n, size)))


def test_subsets_of_real_draws_are_uniform():
    law: Row = dict.fromkeys(combinations(range(7), 3), Fraction(1, 35))
    source = SystemRandomness()
    check_sampled(Counter(uniform_subset(7, 3, source) for _ in range(20_000)), law)
    sets = np.sort(uniform_subsets(60_000, 7, 3, source), axis=0).T
    check_sampled(Counter(map(tuple, sets.tolist())), law)


@pytest.mark.parametrize("item", [0, 2, None])
def test_real_reports_follow_the_law(item: int | None):
    mechanism, source = SubsetSelection.of(Fraction(1), 5, 2), SystemRandomness()
    reports = Counter(mechanism.report(item, source) for _ in range(20_000))
    check_sampled(reports, row_of_law(mechanism, item))


@pytest.mark.parametrize(("m", "d", "epsilon"), [(1, 1, 1), (3, 3, 1), (4, 1, 4), (5, 2, 1), (12, 4, 2), (40, 1, 6)])
def test_bulk_follows_the_law(m: int, d: int, epsilon: int):
    mechanism = SubsetSelection.of(Fraction(epsilon), m, d)
    check_simulated(simulate_subsets, mechanism, 40_000, SystemRandomness())


@pytest.mark.parametrize(("m", "d", "epsilon"), [(1, 1, 1), (3, 3, 1), (4, 1, 4), (12, 4, 2)])
def test_bulk_of_plain_sets_follows_the_law(m: int, d: int, epsilon: int):
    mechanism = PlainSubsetSelection.of(Fraction(epsilon), m, d)
    check_simulated(simulate_subsets, mechanism, 40_000, SystemRandomness())


@pytest.mark.parametrize("name", best_faults.BULK)
def test_wrong_bulk_is_rejected(name: str):
    with pytest.raises(AssertionError):
        check_simulated(best_faults.BULK[name], SubsetSelection.of(Fraction(1), 4, 2), 20_000, SystemRandomness())


# --- the whole device ------------------------------------------------------------------------------------------------

LISTS = [
    HeadList({"a": ["1", "2", "3"], "b": [], "c": ["1"]}),
    HeadList({"a": ["1"], "b": ["1", "2"]}),
    HeadList({"a": [], "b": [], "c": []}),
    HeadList({"a": ["1", "2"]}),
]
DESIGNS = [ReportDesign(10, 1, 2), ReportDesign(3, 1, 1), ReportDesign(20, 1, 1), ReportDesign(0, 1, 2)]
DESIGNS += [ReportDesign(6, 1, 2, PLAIN_SETS), ReportDesign(20, 1, 1, PLAIN_SETS)]


def params_for(epsilon: float, cells: int = 1) -> BlenderParams:
    return BlenderParams(Budget(epsilon, 1e-5), records_per_client=cells)


def rows_of(head: HeadList, design: ReportDesign, params: BlenderParams, send=subset_report) -> list[Row]:
    return [driven_report(records, head, design, params, send) for records in neighbouring_devices(head)]


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("design", DESIGNS, ids=str)
@pytest.mark.parametrize("head", LISTS, ids=lambda head: str(head.n_urls))
def test_device_is_private(head: HeadList, design: ReportDesign, epsilon: float):
    """Coin, cell and set together, for every record that a person can hold; mixed numbers of URLs."""
    rows = rows_of(head, design, params_for(epsilon))
    check_rows(rows, Fraction(epsilon))
    assert set.union(*map(coin_rates, rows)) == {Fraction(2**64 * design.query_steps // 20, 2**64)}


@pytest.mark.parametrize("fraction", [0.3, 0.85])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 6.0])
@pytest.mark.parametrize("head", LISTS, ids=lambda head: str(head.n_urls))
def test_two_stages_without_delta_are_private(head: HeadList, epsilon: float, fraction: float):
    """The third mechanism of method ``best``: no column above e^ε, no δ."""
    params = BlenderParams(Budget(epsilon, 1e-5), query_budget_fraction=fraction)
    rows = channel_of(ReportProbabilities.exact(head, params))
    check_channel(rows, Fraction(epsilon), Fraction(0), pure=True)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_device_sends_two_stages(epsilon: float):
    """``subset_report`` with that design is ``randomize`` with those probabilities: the same words, the same cell."""
    head, design, params = LISTS[0], ReportDesign(0, 1, 1, TWO_STAGE), params_for(epsilon)
    stages, first = ReportProbabilities.exact(head, params), LISTS[0].first_cells()
    for seed, (record,) in enumerate(neighbouring_devices(head)):
        cell = head.cell_of(record)
        query = head.query_of_cells()[cell]
        for turn in range(50):
            one, other = (SeededRandomness(1000 * seed + turn) for _ in range(2))
            said = randomize(query, cell - first[query], stages, one)
            ((about_queries, items),) = subset_report([record], head, design, params, randomness=other)
            assert (about_queries, items) == (False, (first[said[0]] + said[1],))


@pytest.mark.parametrize("head", LISTS, ids=lambda head: str(head.n_urls))
def test_device_reports_the_cell_it_holds(head: HeadList):
    """The row of a record is the mechanism's row of its cell and of its query; what is not listed is ⋆."""
    design, params = DESIGNS[0], params_for(2.0)
    queries, cells = design.about_queries(head, params), design.about_cells(head, params)
    half = Fraction(1, 2)
    for (record,) in neighbouring_devices(head):
        cell = head.cell_of(record)
        listed = cell < head.n_cells - 1
        expected = {
            (kind, items): half * p
            for kind, mechanism, item in (
                (True, queries, head.query_of_cells()[cell]),
                (False, cells, cell),
            )
            for items, p in row_of_law(mechanism, item if listed else None).items()
            if p
        }
        driven = driven_report([record], head, design, params)
        assert {tuple(sent[0]): p for sent, p in driven.items()} == expected


@pytest.mark.parametrize("name", best_faults.SEND)
def test_device_that_leaks_is_rejected(name: str):
    with pytest.raises(AssertionError):
        check_rows(rows_of(LISTS[1], DESIGNS[0], params_for(1.0), best_faults.SEND[name]), Fraction(1))


@pytest.mark.parametrize("name", best_faults.WRONG_SEND)
def test_device_with_the_wrong_cell_is_rejected(name: str):
    record = [Record("b", "not listed")]
    right, wrong = (
        driven_report(record, LISTS[1], DESIGNS[0], params_for(1.0), send)
        for send in (subset_report, best_faults.WRONG_SEND[name])
    )
    assert right != wrong


TWO_CELLS = HeadList({"a": ["1"], "b": []})
PEOPLE = [[Record("a", "1")], [Record("a", "2"), Record("b", "1")], [Record("c", "1")], [Record("a", "1"), Record("c")]]


def several(send=subset_report) -> list[Row]:
    design, params = ReportDesign(10, 1, 1), params_for(2.0, cells=2)
    return [driven_report(records, TWO_CELLS, design, params, send) for records in PEOPLE]


def test_several_cells_share_the_budget():
    """m_C = 2: each cell has ε/2, drawn with replacement from any number of records; both together keep ε."""
    rows = several()
    check_rows(rows, Fraction(2))
    assert all(len(sent) == 2 for row in rows for sent in row)


@pytest.mark.parametrize("name", best_faults.SEND_SEVERAL)
def test_several_cells_that_leak_are_rejected(name: str):
    with pytest.raises((AssertionError, IndexError)):
        check_rows(several(best_faults.SEND_SEVERAL[name]), Fraction(2))


@cache
def _mixed() -> tuple[HeadList, ReportDesign, BlenderParams]:
    return LISTS[0], ReportDesign(7, 2, 2), params_for(1.0)


def test_bulk_and_device_agree_on_a_mixed_list():
    """The fast twin and single devices, the same people: counts of items and sinks compared by χ², two-sample."""
    head, design, params = _mixed()
    source = SystemRandomness()
    held = np.array([900, 100, 300, 200, 700, 400, 50, 1350])
    bulk = simulate_subset_reports(held * 10, head, design, params, randomness=source)
    seen = {True: Counter[int](), False: Counter[int]()}
    n = Counter[bool]()
    for cell, people in zip(head.cells(), held.tolist(), strict=True):
        for _ in range(people):
            ((kind, items),) = subset_report([cell], head, design, params, randomness=source)
            n[kind] += 1
            seen[kind].update(items or ["sink"])
    for kind, counted in ((True, bulk.queries), (False, bulk.cells)):
        one = np.array([*(seen[kind][i] for i in range(len(counted.items))), seen[kind]["sink"]])
        ten = np.array([*counted.items, counted.sinks])
        rate = (one + ten) / (n[kind] + counted.n)
        z = (one / n[kind] - ten / counted.n) / np.sqrt(rate * (1 - rate) * (1 / n[kind] + 1 / counted.n))
        assert np.abs(z).max() <= 6
    share = n[True] / n.total()
    assert share == pytest.approx(0.35, abs=6 * math.sqrt(0.35 * 0.65 / n.total()))


def test_sink_is_no_set():
    assert SINK == ()
