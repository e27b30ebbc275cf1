"""The vectorised twin of ``subset_report``: the reports of millions of clients, already counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.best.subset_report import GAMMA_STEPS, TWO_STAGE, ReportDesign, SetMechanism
from searchblend.blender.groups import random_words
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import HALF, Randomness, SystemRandomness
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import WORDS, PlainSubsetSelection, SubsetSelection
from searchblend.mechanisms.tally import Ints

_CHUNK: Final = 1 << 17


@dataclass(frozen=True)
class SubsetCounts:
    """How often each item and the sink were reported, in one of the two kinds of report."""

    items: Ints
    sinks: int
    n: int


@dataclass(frozen=True)
class ReportCounts:
    """All reports of a round, counted; ``None`` where the design has no such reports."""

    queries: SubsetCounts | None = None
    cells: SubsetCounts | None = None
    two_stage: Ints | None = None
    """by cell, ⟨⋆,⋆⟩ last"""


def simulate_subset_reports(
    cell_counts: Ints,
    head: HeadList,
    design: ReportDesign,
    params: BlenderParams,
    *,
    randomness: Randomness | None = None,
) -> ReportCounts:
    """The counted reports of clients of whom this many hold each cell."""
    source = randomness or SystemRandomness()
    if design.mechanism == TWO_STAGE:
        return ReportCounts(
            two_stage=BulkReporter(ReportProbabilities.exact(head, params)).report_counts(cell_counts, source)
        )
    queries, cells = design.about_queries(head, params), design.about_cells(head, params)
    about_queries = _heads(cell_counts, design, source)
    query_counts = np.add.reduceat(about_queries, head.first_cells())
    return ReportCounts(
        queries=None if queries is None else simulate_subsets(query_counts, queries, source),
        cells=None if cells is None else simulate_subsets(cell_counts - about_queries, cells, source),
    )


def _heads(cell_counts: Ints, design: ReportDesign, randomness: Randomness) -> Ints:
    """How many holders of each cell report about queries: one coin each."""
    if design.query_steps == 0:
        return np.zeros_like(cell_counts)
    if design.query_steps == GAMMA_STEPS:
        return cell_counts
    below = np.uint64(WORDS * design.query_steps // GAMMA_STEPS)
    heads = [int((random_words(count, randomness) < below).sum()) for count in cell_counts.tolist()]
    return np.array(heads, dtype=np.int64)


def simulate_subsets(holders: Ints, mechanism: SetMechanism, randomness: Randomness) -> SubsetCounts:
    """Reports of holders of each item; the last entry of ``holders`` counts those of ⋆."""
    m = mechanism.n_items
    items, sinks = np.zeros(m + 1, dtype=np.int64), 0
    ends = np.cumsum(holders)
    n = int(ends[-1])
    for start in range(0, n, _CHUNK):
        held = np.searchsorted(ends, np.arange(start, min(start + _CHUNK, n)), side="right")
        if isinstance(mechanism, PlainSubsetSelection):
            items += _plain_chunk(held, mechanism, randomness)
        else:
            named, sunk = _sink_chunk(held, mechanism, randomness)
            items[:m] += named
            sinks += sunk
    return SubsetCounts(items[:m], sinks, n)


def _sink_chunk(held: Ints, mechanism: SubsetSelection, randomness: Randomness) -> tuple[Ints, int]:
    m, size = mechanism.n_items, mechanism.subset_size
    decision = random_words(len(held), randomness)
    included = decision < np.uint64(mechanism.include_below)
    star = held == m
    sink = np.where(star, included, ~included & _below(decision, mechanism.sink_below))
    with_item = included & ~star
    items = np.bincount(held[with_item], minlength=m)
    items += _count_sets(held[with_item], m, size - 1, randomness)
    items += _count_sets(held[~with_item & ~star & ~sink], m, size, randomness)
    items += _count_sets(None, m, size, randomness, n=int((star & ~sink).sum()))
    return items, int(sink.sum())


def _plain_chunk(held: Ints, mechanism: PlainSubsetSelection, randomness: Randomness) -> Ints:
    m, size = mechanism.n_items + 1, mechanism.subset_size
    included = random_words(len(held), randomness) < np.uint64(mechanism.include_below)
    items = np.bincount(held[included], minlength=m)
    items += _count_sets(held[included], m, size - 1, randomness)
    return items + _count_sets(held[~included], m, size, randomness)


def _below(words: NDArray[np.uint64], threshold: int) -> NDArray[np.bool_]:
    """words < threshold, for a threshold that may be 2^64 itself."""
    return np.ones(len(words), dtype=np.bool_) if threshold >= WORDS else words < np.uint64(threshold)


def _count_sets(avoided: Ints | None, m: int, size: int, randomness: Randomness, n: int = 0) -> Ints:
    """Counts of the items of uniform sets, one set per entry of ``avoided``, which it must not contain."""
    n = n if avoided is None else len(avoided)
    if not n or not size:
        return np.zeros(m, dtype=np.int64)
    sets = uniform_subsets(n, m if avoided is None else m - 1, size, randomness)
    if avoided is not None:
        sets += sets >= avoided
    return np.bincount(sets.ravel(), minlength=m)


def uniform_subsets(n: int, m: int, size: int, randomness: Randomness) -> Ints:
    """``n`` exactly uniform sets of ``size`` of the numbers 0..m−1, one per column (Floyd's algorithm)."""
    sets = np.empty((size, n), dtype=np.int64)
    for row, last in enumerate(range(m - size, m)):
        candidate = _uniform_below(n, last + 1, randomness)
        taken = (sets[:row] == candidate).any(axis=0)
        sets[row] = np.where(taken, last, candidate)
    return sets


def _uniform_below(n: int, limit: int, randomness: Randomness) -> Ints:
    """``n`` exactly uniform numbers below ``limit``, from 32-bit halves with rejection."""
    accept = np.uint64(HALF - HALF % limit)
    half = np.frombuffer(randomness.take(4 * n), dtype="<u4").astype(np.uint64)
    rejected = np.flatnonzero(half >= accept)
    while len(rejected):
        half[rejected] = np.frombuffer(randomness.take(4 * len(rejected)), dtype="<u4")
        rejected = rejected[half[rejected] >= accept]
    return (half % np.uint64(limit)).astype(np.int64)
