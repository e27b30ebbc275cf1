"""The law of counted reports, enumerated: every crowd of a few clients, every two inputs of one of them, in fractions.

Nothing of ``accounting/shuffle.py`` is used but the bound that is to be checked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, permutations
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from searchblend.accounting.shuffle import OutputClass, Pair, ShuffledReports, shuffled_delta
from searchblend.accounting.shuffled_reports import shuffled_cells, shuffled_sets
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.mechanisms.fixed_point import exp_fraction_bounds
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection
from searchblend_lab.evidence.laws.best_reports import row_of_law
from searchblend_lab.evidence.laws.channel import channel_of

Row = Mapping[Hashable, Fraction]
Counts = tuple[int, ...]
Floats = NDArray[np.float64]
Bound = Callable[[ShuffledReports, int, float], float]
_EPSILONS: Final = (0.1, 0.4)
_NUMERIC: Final = 1e-8
"""more than rounding can add to a lower bound"""


@dataclass(frozen=True, eq=False)
class Crowd:
    """A small mechanism, its inputs enumerated, and how many clients run it."""

    rows: Sequence[Row]
    reports: ShuffledReports
    clients: int

    @cached_property
    def worst(self) -> Mapping[float, Fraction]:
        """By ε: the δ of the two neighbours that are told apart most easily."""
        return {epsilon: worst_delta(self, epsilon) for epsilon in _EPSILONS}


def counts_law(rows: Sequence[Row], outputs: Sequence[Hashable]) -> dict[Counts, Fraction]:
    """How likely each vector of counts is if these clients report, one row each."""
    law: dict[Counts, Fraction] = {(0,) * len(outputs): Fraction(1)}
    for row in rows:
        law = _with(law, row, outputs)
    return law


def worst_delta(crowd: Crowd, epsilon: float) -> Fraction:
    """The largest Σ (P − e^ε Q)₊ over all neighbours, e^ε from above."""
    growth = exp_fraction_bounds(Fraction(epsilon))[1]
    outputs = sorted({output for row in crowd.rows for output in row}, key=repr)
    worst = Fraction(0)
    for others in combinations_with_replacement(crowd.rows, crowd.clients - 1):
        shared = counts_law(others, outputs)
        laws = [_with(shared, row, outputs) for row in crowd.rows]
        for p, q in permutations(laws, 2):
            excess = sum((max(v - growth * q.get(c, Fraction(0)), Fraction(0)) for c, v in p.items()), Fraction(0))
            worst = max(worst, excess)
    return worst


def _with(shared: Mapping[Counts, Fraction], row: Row, outputs: Sequence[Hashable]) -> dict[Counts, Fraction]:
    law: dict[Counts, Fraction] = defaultdict(Fraction)
    for counts, p in shared.items():
        for place, output in enumerate(outputs):
            if q := row.get(output, Fraction(0)):
                law[(*counts[:place], counts[place] + 1, *counts[place + 1 :])] += p * q
    return dict(law)


def check_crowd(bound: Bound, crowd: Crowd) -> None:
    """No neighbours among so few clients are told apart more easily than the bound says."""
    for epsilon, worst in crowd.worst.items():
        assert worst <= Fraction(bound(crowd.reports, crowd.clients, epsilon))


def shipped_bound(reports: ShuffledReports, clients: int, epsilon: float) -> float:
    return max(shuffled_delta(pair, clients, epsilon) for pair in reports.bounds)


# --- planted faults --------------------------------------------------------------------------------------------------


def _one_client_more(reports: ShuffledReports, clients: int, epsilon: float) -> float:
    return shipped_bound(reports, clients + 1, epsilon)


def _twice_epsilon(reports: ShuffledReports, clients: int, epsilon: float) -> float:
    return shipped_bound(reports, clients, 2 * epsilon)


def _blanket_of_everyone(reports: ShuffledReports, clients: int, epsilon: float) -> float:
    """As if every report of the others were independent of what they hold: the share of the blanket is dropped."""
    return shipped_bound(reports._replace(bounds=tuple(map(_whole, reports.bounds))), clients, epsilon)


def _whole(pair: Pair) -> Pair:
    certain = sum((one.others for one in pair), Fraction(0))
    return tuple(OutputClass(one.upper, one.lower, one.others / certain) for one in pair)


def _one_direction(reports: ShuffledReports, clients: int, epsilon: float) -> float:
    """The neighbour's law against itself: only what the two have in common is compared."""
    same = tuple(tuple(OutputClass(one.lower, one.lower, one.others) for one in pair) for pair in reports.bounds)
    return shipped_bound(reports._replace(bounds=same), clients, epsilon)


FAULTS: Final[Mapping[str, Bound]] = {
    "one client more": _one_client_more,
    "twice ε": _twice_epsilon,
    "blanket of everyone": _blanket_of_everyone,
    "the neighbour against itself": _one_direction,
}


# --- a test that really tells two neighbours apart -------------------------------------------------------------------


def scored_delta(pair: Pair, clients: int, epsilon: float, steps: int = 1) -> float:
    """A lower bound of δ at this ε: the best threshold on the sum of whole-numbered scores of all reports.

    ``pair`` has the law of what the others hold; the score of an output is (P − Q)/others in so many steps.
    """
    slopes = [float((one.upper - one.lower) / one.others) for one in pair]
    scores = [round(steps * slope / max(map(abs, slopes))) for slope in slopes]
    crowd = _power(_scored(scores, [one.others for one in pair], steps), clients - 1)
    tails = [
        np.cumsum(np.convolve(crowd, _scored(scores, masses, steps))[::-1])
        for masses in ([one.upper for one in pair], [one.lower for one in pair])
    ]
    return float(np.max(tails[0] - float(exp_fraction_bounds(Fraction(epsilon))[1]) * tails[1])) - _NUMERIC


def _scored(scores: Sequence[int], masses: Sequence[Fraction], steps: int) -> Floats:
    law = np.zeros(2 * steps + 1)
    for score, mass in zip(scores, masses, strict=True):
        law[score + steps] += float(mass)
    return law


def _power(law: Floats, times: int) -> Floats:
    """The law of a sum of so many, where it begins being of no interest to a threshold."""
    total = np.ones(1)
    while times:
        if times & 1:
            total = _without_tails(_convolved(total, law))
        law, times = _without_tails(_convolved(law, law)), times >> 1
    return total


def _convolved(one: Floats, other: Floats) -> Floats:
    """By Fourier transform: an error of about 1e-16, far below what ``scored_delta`` takes off."""
    n = len(one) + len(other) - 1
    padded = 1 << (n - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(one, padded) * np.fft.rfft(other, padded), padded)[:n]
    return np.maximum(product, 0.0)


def _without_tails(law: Floats) -> Floats:
    """Less than 1e-13 on either side is cut off, which only hides something from the test."""
    begin, end = int((law.cumsum() < 1e-13).sum()), int((law[::-1].cumsum() < 1e-13).sum())
    return law[begin : len(law) - end]


# --- small crowds ----------------------------------------------------------------------------------------------------


def sets_of(mechanism: SubsetSelection | PlainSubsetSelection) -> list[Row]:
    """The rows of a set mechanism, one for each item and ⋆."""
    return [row_of_law(mechanism, item) for item in [*range(mechanism.n_items), None]]


def _sets(mechanism: SubsetSelection | PlainSubsetSelection, clients: int) -> Crowd:
    return Crowd(sets_of(mechanism), shuffled_sets([(Fraction(1), mechanism)]), clients)


def _coin(queries: SubsetSelection, cells: SubsetSelection, share: Fraction, clients: int) -> Crowd:
    """Two queries of one URL cell each beside ⟨q,⋆⟩: what is held is a cell, and through it a query."""
    about_queries, about_cells = sets_of(queries), sets_of(cells)
    held = [(cell * queries.n_items // cells.n_items, cell) for cell in range(cells.n_items)]
    rows: list[Row] = [
        {cast("Hashable", ("q", s)): share * p for s, p in about_queries[query].items()}
        | {cast("Hashable", ("c", s)): (1 - share) * p for s, p in about_cells[cell].items()}
        for query, cell in [*held, (queries.n_items, cells.n_items)]
    ]
    return Crowd(rows, shuffled_sets([(share, queries), (1 - share, cells)]), clients)


def _cells(widths: Sequence[int], budget: Budget, clients: int) -> Crowd:
    head = HeadList((f"q{i}", [f"u{j}" for j in range(n)]) for i, n in enumerate(widths))
    probabilities = ReportProbabilities.of(head, BlenderParams(budget))
    rows: list[Row] = [dict(enumerate(row)) for row in channel_of(probabilities)]
    return Crowd(rows, shuffled_cells(probabilities), clients)


CROWDS: Final = (
    _sets(SubsetSelection.of(Fraction(1), 3, 1), 3),
    _sets(SubsetSelection.of(Fraction(2), 3, 2), 3),
    _sets(SubsetSelection.of(Fraction(1), 1, 1), 5),
    _sets(PlainSubsetSelection.of(Fraction(1), 3, 2), 3),
    _coin(SubsetSelection.of(Fraction(1), 2, 1), SubsetSelection.of(Fraction(1), 4, 1), Fraction(7, 20), 2),
    _cells([0, 0, 0], Budget(1.0, 1e-3), 3),
    _cells([1, 0], Budget(2.0, 1e-3), 3),
    _cells([2], Budget(2.0, 1e-3), 3),
)
"""one of each kind of mechanism, lists of one query among them"""
