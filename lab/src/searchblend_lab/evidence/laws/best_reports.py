"""Is a subset-selection report as private as it says, and does the code draw what its law states? Exact arithmetic.

The code is driven: every 64-bit word that decides is given at both ends of its interval, and every choice of "one of n"
is tried with each of its n results. What comes out is the exact law of the reports.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from itertools import combinations, pairwise, product
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.stats import binomtest, chi2

from searchblend.blender.best import subset_report as report_module
from searchblend.blender.best.subset_report import GAMMA_STEPS, ReportDesign, SetMechanism, SubsetReport, subset_report
from searchblend.blender.best.subset_report_bulk import SubsetCounts
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import Randomness, Tape
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms import subset_selection as mechanism_module
from searchblend.mechanisms.fixed_point import exp_fraction_bounds
from searchblend.mechanisms.subset_selection import SINK, WORDS, PlainSubsetSelection, Subset, SubsetSelection

FALSE_ALARM = 1e-6
Row = dict[Hashable, Fraction]
Report = Callable[[Any, int | None, Randomness], Subset]
SendReport = Callable[..., tuple[SubsetReport, ...]]
Simulate = Callable[[np.ndarray, Any, Randomness], SubsetCounts]


# --- from the stated law ---------------------------------------------------------------------------------------------


def check_law(mechanism: SubsetSelection, epsilon: Fraction) -> None:
    """Rows sum to 1 exactly; no report is more than e^ε times as likely for one person as for another."""
    m, d = mechanism.n_items, mechanism.subset_size
    sink, inside, outside = mechanism.law(0)
    star_sink, star_set, same = mechanism.law(None)
    assert star_set == same
    assert sink + math.comb(m - 1, d - 1) * inside + math.comb(m - 1, d) * outside == 1
    assert star_sink + math.comb(m, d) * star_set == 1
    check_ratios([[sink, star_sink], [inside, star_set, *([outside] if d < m else [])]], epsilon)


def check_formula(mechanism: SubsetSelection, epsilon: Fraction) -> None:
    """Within 2^-61 of the printed probabilities, φEB and φB, so that the whole of ε is used."""
    growth = exp_fraction_bounds(epsilon)[0]
    ratio = Fraction(mechanism.subset_size, mechanism.n_items)
    sink, _, _ = mechanism.law(0)
    include, _, _ = mechanism.law(None)
    assert abs(include - ratio * growth / (1 + ratio * growth)) <= Fraction(1, 2**61)
    assert abs(sink - ratio / (1 + ratio * growth)) <= Fraction(1, 2**61)


def check_ratios(columns: Sequence[Sequence[Fraction]], epsilon: Fraction) -> None:
    """max/min ≤ e^ε in every column, e^ε replaced by its lower bound."""
    growth = exp_fraction_bounds(epsilon)[0]
    assert all(max(column) <= growth * min(column) for column in columns)


def row_of_law(mechanism: SetMechanism, item: int | None) -> Row:
    """Every report with its probability."""
    if isinstance(mechanism, PlainSubsetSelection):
        inside, outside = mechanism.law()
        held = mechanism.n_items if item is None else item
        plain = combinations(range(mechanism.n_items + 1), mechanism.subset_size)
        return {chosen: inside if held in chosen else outside for chosen in plain}
    sink, inside, outside = mechanism.law(item)
    sets = combinations(range(mechanism.n_items), mechanism.subset_size)
    return {SINK: sink, **{chosen: inside if item in chosen else outside for chosen in sets}}


def check_rows(rows: Sequence[Row], epsilon: Fraction) -> None:
    """Rows sum to 1 and all columns keep max/min ≤ e^ε; a report that someone cannot send counts as infinite."""
    assert all(sum(row.values()) == 1 for row in rows)
    outputs = {output for row in rows for output, p in row.items() if p}
    check_ratios([[row.get(output, Fraction(0)) for row in rows] for output in outputs], epsilon)


# --- from the code ---------------------------------------------------------------------------------------------------


class Choices:
    """All results of "one of n", tried in turn: stands in for ``uniform_below``."""

    def __init__(self) -> None:
        self._script: list[int] = []
        self._sizes: list[int] = []
        self._position = 0

    def __call__(self, n: int, randomness: Randomness) -> int:
        if self._position == len(self._script):
            self._script.append(0)
            self._sizes.append(n)
        assert self._sizes[self._position] == n
        self._position += 1
        return self._script[self._position - 1]

    def all_runs(self) -> Iterator[None]:
        """One turn per combination of results."""
        while True:
            self._position = 0
            yield
            while self._script and self._script[-1] == self._sizes[-1] - 1:
                self._script.pop()
                self._sizes.pop()
            if not self._script:
                return
            self._script[-1] += 1

    @property
    def weight(self) -> Fraction:
        return Fraction(1, math.prod(self._sizes))


def _law(run: Callable[[], Hashable]) -> Row:
    """The law of what ``run`` returns over all its choices."""
    choices = Choices()
    row: Row = defaultdict(Fraction)
    with ExitStack() as stack:
        for module in (mechanism_module, report_module):
            stack.enter_context(patch.object(module, "uniform_below", choices))
        for _ in choices.all_runs():
            row[run()] += choices.weight
    return dict(row)


def driven_subsets(uniform_subset: Callable[[int, int, Randomness], Subset], n: int, size: int) -> Row:
    return _law(lambda: uniform_subset(n, size, Tape(b"")))


def intervals(mechanism: SetMechanism) -> list[tuple[int, int]]:
    """The decision word's intervals: all words of one have the same consequence."""
    sinks = [mechanism.sink_below] if isinstance(mechanism, SubsetSelection) else []
    return [(start, stop) for start, stop in pairwise([0, mechanism.include_below, *sinks, WORDS]) if start < stop]


def driven_row(mechanism: SetMechanism, item: int | None, report: Report | None = None) -> Row:
    """The law of ``report`` itself."""
    said: Any = report or type(mechanism).report
    row: Row = defaultdict(Fraction)
    for start, stop in intervals(mechanism):
        if start < stop:
            laws = [_law(partial(lambda w: said(mechanism, item, _words(w)), w)) for w in (start, stop - 1)]
            assert laws[0] == laws[1], "one interval of the decision word gives two different laws"
            for output, p in laws[0].items():
                row[output] += p * Fraction(stop - start, WORDS)
    return dict(row)


def _words(*words: int) -> Tape:
    return Tape(b"".join(w.to_bytes(8, "little") for w in words))


def driven_report(
    records: Sequence[Record],
    head: HeadList,
    design: ReportDesign,
    params: BlenderParams,
    send: SendReport = subset_report,
) -> Row:
    """The law of everything that a device with these records sends; one or more cells, coin included."""
    one_cell = _cell_words(head, design, params)
    row: Row = defaultdict(Fraction)
    for cells in product(one_cell, repeat=params.records_per_client):
        ends = [[sum((w[end] for w, _ in cells), ())] for end in (0, 1)]
        laws = [_law(partial(lambda w: send(records, head, design, params, randomness=_words(*w)), w)) for (w,) in ends]
        assert laws[0] == laws[1], "one interval of a word gives two different laws"
        weight = math.prod(p for _, p in cells)
        for output, p in laws[0].items():
            row[output] += p * weight
    return dict(row)


def _cell_words(
    head: HeadList, design: ReportDesign, params: BlenderParams
) -> list[tuple[tuple[tuple[int, ...], tuple[int, ...]], Fraction]]:
    """For each combination of intervals of coin and decision: its first words, its last words, its probability."""
    cut = WORDS * design.query_steps // GAMMA_STEPS
    found: list[tuple[tuple[tuple[int, ...], tuple[int, ...]], Fraction]] = []
    for coin, mechanism in (
        ((0, cut), design.about_queries(head, params)),
        ((cut, WORDS), design.about_cells(head, params)),
    ):
        if mechanism is None:
            continue
        tossed = 0 < design.query_steps < GAMMA_STEPS
        for start, stop in intervals(mechanism):
            if start < stop:
                first = (coin[0], start) if tossed else (start,)
                last = (coin[1] - 1, stop - 1) if tossed else (stop - 1,)
                weight = Fraction(stop - start, WORDS) * (Fraction(coin[1] - coin[0], WORDS) if tossed else 1)
                found.append(((first, last), weight))
    return found


def coin_rates(row: Row) -> set[Fraction]:
    """P(the first cell is about queries)."""
    return {sum((p for sent, p in row.items() if _first(sent).about_queries), Fraction(0))}


def _first(sent: Any) -> SubsetReport:
    first: SubsetReport = sent[0]
    return first


def neighbouring_devices(head: HeadList) -> list[list[Record]]:
    """People with one record: every cell of the list, an unlisted URL of every query, an unlisted query."""
    unlisted = [Record(query, "not listed") for query in head.queries]
    return [[record] for record in [*head.cells(), *unlisted, Record("not listed", "u")]]


# --- by sampling -----------------------------------------------------------------------------------------------------


def check_sampled(outputs: Counter[Hashable], row: Row) -> None:
    """χ² of observed reports against their exact law, at 1e-6; what cannot be must not be."""
    n = outputs.total()
    possible = [output for output, p in row.items() if p]
    assert set(outputs) <= set(possible)
    expected = np.array([float(row[output]) * n for output in possible])
    observed = np.array([outputs[output] for output in possible])
    assert chi2.sf(((observed - expected) ** 2 / expected).sum(), len(possible) - 1) >= FALSE_ALARM


def naming_rates(mechanism: SetMechanism, holder: int | None) -> np.ndarray:
    """P(an item is named) for every item and P(sink) last, from the exact law of the sets, whoever the holder is."""
    m, d = mechanism.n_items, mechanism.subset_size
    if isinstance(mechanism, PlainSubsetSelection):
        m, sink, (inside, outside) = m + 1, Fraction(0), mechanism.law()
        holder = m - 1 if holder is None else holder
    else:
        sink, inside, outside = mechanism.law(holder)
    both = (math.comb(m - 2, d - 2) if d > 1 else 0) if m > 1 else 0
    without = math.comb(m - 2, d - 1) if m > 1 else 0
    if holder is None:
        rates = [math.comb(m - 1, d - 1) * inside] * m
    else:
        rates = [both * inside + without * outside] * m
        rates[holder] = math.comb(m - 1, d - 1) * inside
    return np.array([float(p) for p in [*rates[: mechanism.n_items], sink]])


def check_simulated(simulate: Simulate, mechanism: SetMechanism, n: int, randomness: Randomness) -> None:
    """``n`` holders of each item and of ⋆, kind by kind: exact binomial tests of every figure, together 1e-6."""
    m, d = mechanism.n_items, mechanism.subset_size
    for holder in [*range(m), None]:
        holders = np.zeros(m + 1, dtype=np.int64)
        holders[m if holder is None else holder] = n
        counted = simulate(holders, mechanism, randomness)
        assert counted.n == n
        assert isinstance(mechanism, PlainSubsetSelection) or counted.items.sum() == d * (n - counted.sinks)
        rates = naming_rates(mechanism, holder)
        for observed, rate in zip([*counted.items.tolist(), counted.sinks], rates, strict=True):
            assert binomtest(observed, n, min(max(rate, 0.0), 1.0)).pvalue >= FALSE_ALARM / (m + 1) ** 2
