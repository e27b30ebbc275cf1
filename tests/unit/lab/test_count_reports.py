"""Counted reports have the law of reports that are sent one by one: exact joint laws, and wrong ones rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, TWO_STAGE, ReportDesign
from searchblend.blender.devices import EACH_DEVICE
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import WORDS, PlainSubsetSelection, SubsetSelection
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.papers.blender.count_reports import CountedDevices, draw_sets, draw_two_stage, uniform_sets

Law = dict[tuple[int, ...], float]
DRAWS = 3_000
HEAD = HeadList({"a": ["u", "v"], "b": []})
PARAMS = BlenderParams(Budget(1.5, 1e-5))


def together(one: Law, other: Law) -> Law:
    """The law of the sum of two independent vectors."""
    total: Counter[tuple[int, ...]] = Counter()
    for a, p in one.items():
        for b, q in other.items():
            total[tuple(x + y for x, y in zip(a, b, strict=True))] += p * q
    return dict(total)


def law_of_all(laws: list[Law]) -> Law:
    total = laws[0]
    for law in laws[1:]:
        total = together(total, law)
    return total


def p_value(law: Law, draw: Callable[[np.random.Generator], tuple[int, ...]], seed: int = 1) -> float:
    """χ² of the drawn vectors against the exact law; vectors that are too rare are put together."""
    generator = np.random.default_rng(seed)
    seen = Counter(draw(generator) for _ in range(DRAWS))
    assert set(seen) <= set(law), "something impossible was drawn"
    common = [key for key, p in law.items() if p * DRAWS >= 8]
    expected = [law[key] * DRAWS for key in common]
    observed = [seen[key] for key in common]
    rest = DRAWS - sum(expected)
    if rest > 8:
        expected.append(rest)
        observed.append(DRAWS - sum(observed))
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return float(chi2.sf(statistic, len(expected) - 1))


def unit(cell: int, n: int) -> tuple[int, ...]:
    return tuple(int(i == cell) for i in range(n))


def two_stage_law(held: list[int], probabilities: ReportProbabilities) -> Law:
    laws, cell = [], 0
    for query, width in enumerate(probabilities.n_urls):
        for url in range(width):
            row = {unit(i, len(held)): float(p) for i, p in enumerate(probabilities.channel_row(query, url))}
            laws += [row] * held[cell]
            cell += 1
    return law_of_all(laws)


@pytest.mark.parametrize("held", [[2, 0, 1, 0, 1], [0, 1, 0, 2, 0], [1, 1, 1, 1, 0]])
def test_two_stage_reports_have_the_exact_joint_law(held):
    probabilities = ReportProbabilities.of(HEAD, PARAMS)
    law = two_stage_law(held, probabilities)
    assert p_value(law, lambda g: tuple(draw_two_stage(np.array(held), probabilities, g).tolist())) > 0.001


def test_two_stage_reports_with_another_probability_are_rejected():
    held = [2, 0, 1, 0, 1]
    right = ReportProbabilities.of(HEAD, PARAMS)
    wrong = replace(right, keep_query_below=int(0.9 * right.keep_query_below))
    wrong = replace(wrong, keep_record_below=tuple(int(0.9 * below) for below in right.keep_record_below))
    law = two_stage_law(held, right)
    assert p_value(law, lambda g: tuple(draw_two_stage(np.array(held), wrong, g).tolist())) < 1e-6


def set_law(mechanism: SubsetSelection | PlainSubsetSelection, item: int) -> Law:
    """Item counts and the sink of one report, from the mechanism's own exact law."""
    m, d = mechanism.n_items, mechanism.subset_size
    law: Counter[tuple[int, ...]] = Counter()
    if isinstance(mechanism, PlainSubsetSelection):
        within, without = mechanism.law()
        for chosen in combinations(range(m + 1), d):
            named = tuple(int(i in chosen) for i in range(m))
            law[*named, 0] += float(within if item in chosen else without)
        return dict(law)
    sink, within, without = mechanism.law(None if item == m else item)
    law[*([0] * m), 1] += float(sink)
    for chosen in combinations(range(m), d):
        named = tuple(int(i in chosen) for i in range(m))
        law[*named, 0] += float(within if item in chosen else without)
    return dict(law)


MECHANISMS = [
    SubsetSelection.of(Fraction(1), 4, 2),
    SubsetSelection.of(Fraction(2), 3, 1),
    SubsetSelection.of(Fraction(1), 3, 3),
    PlainSubsetSelection.of(Fraction(1), 3, 2),
]


def drawn_sets(holders, mechanism, generator) -> tuple[int, ...]:
    counts = draw_sets(np.array(holders), mechanism, generator)
    assert counts.n == sum(holders)
    return (*counts.items.tolist(), counts.sinks)


@pytest.mark.thorough
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sets_have_the_exact_joint_law(mechanism):
    holders = [1, 0, 2, 0, 1][-mechanism.n_items - 1 :]
    law = law_of_all([set_law(mechanism, item) for item, n in enumerate(holders) for _ in range(n)])
    assert p_value(law, lambda g: drawn_sets(holders, mechanism, g)) > 0.001


@pytest.mark.thorough
@pytest.mark.parametrize(
    "wrong",
    [
        lambda m: replace(m, include_below=m.include_below + WORDS // 10),
        lambda m: replace(m, subset_size=m.subset_size - 1),
    ],
)
def test_sets_of_another_mechanism_are_rejected(wrong):
    mechanism, holders = MECHANISMS[0], [1, 0, 2, 0, 1]
    law = law_of_all([set_law(mechanism, item) for item, n in enumerate(holders) for _ in range(n)])
    with pytest.raises(AssertionError):
        assert p_value(law, lambda g: drawn_sets(holders, wrong(mechanism), g)) > 1e-4


def test_nobody_names_what_they_avoid():
    generator = np.random.default_rng(1)
    chosen = uniform_sets(np.array([1000, 0, 0]), 2, generator)
    assert chosen.tolist() == [0, 1000, 1000]


def test_every_set_is_complete():
    generator = np.random.default_rng(2)
    avoiding = np.array([300, 20, 0, 7, 100])
    chosen = uniform_sets(avoiding, 3, generator, anyone=50)
    assert chosen.sum() == 3 * (avoiding.sum() + 50)


@pytest.mark.parametrize(
    "design", [ReportDesign(7, 1, 2), ReportDesign(20, 1, 1, PLAIN_SETS), ReportDesign(0, 1, 1, TWO_STAGE)]
)
def test_counted_devices_report_as_each_device_does(design):
    """Means of all counts over many rounds, both ways."""
    held = np.array([30, 5, 10, 20, 200])
    assert design.mechanism in (SINK_SETS, PLAIN_SETS, TWO_STAGE)

    def counts(devices, seed):
        found = devices.sets_reported(held, HEAD, design, PARAMS, SeededRandomness(seed))
        parts = [] if found.two_stage is None else [found.two_stage]
        for part in (found.queries, found.cells):
            if part is not None:
                parts += [part.items, np.array([part.sinks])]
        return np.concatenate(parts)

    one = np.array([counts(CountedDevices(), seed) for seed in range(200)])
    other = np.array([counts(EACH_DEVICE, 10_000 + seed) for seed in range(200)])
    error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / 200) + 1e-9
    assert np.all(np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4 * error)


def test_counted_devices_report_cells_as_each_device_does():
    held, probabilities = np.array([30, 5, 10, 20, 200]), ReportProbabilities.of(HEAD, PARAMS)
    one, other = (
        np.array([devices.cells_reported(held, HEAD, probabilities, SeededRandomness(s)) for s in range(200)])
        for devices in (CountedDevices(), EACH_DEVICE)
    )
    assert np.all(one.sum(axis=1) == held.sum())
    error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / 200)
    assert np.all(np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4 * error)
