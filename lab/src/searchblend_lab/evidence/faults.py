"""How each fault is planted: the shipped code with one thing wrong, for as long as a context lasts."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from searchblend.blender.best import many_records, stability_histogram, subset_report
from searchblend.blender.best.stability_histogram import CuratorDesign
from searchblend.blender.groups import InMemoryGroup, Weights
from searchblend.blender.paper import create_head_list, estimate_optin, local_report
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.clickgraph.release import click_log, laplace_design
from searchblend.clickgraph.release.step import CountThreshold, StepDesign
from searchblend.core.randomness import HALF, uniform_from_half, word
from searchblend.logs import read
from searchblend.mechanisms import discrete_laplace, rounded_gaussian
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.noise_table import NoiseTable
from searchblend.mechanisms.rounded_gaussian import on_sigma_grid
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection
from searchblend.mechanisms.tally import InMemoryTally
from searchblend.mechanisms.threshold import Threshold, noise_for_one_record, noisy_counts, printed_threshold
from searchblend.mechanisms.value_selection import SelectionDesign
from searchblend.releases import select_values as heavy_values
from searchblend_lab.evidence import (
    programs,
    randomness_source,
)
from searchblend_lab.evidence.evidence import Absent, Check, Effort, Finding
from searchblend_lab.evidence.source_tree import PRODUCT

Plant = Callable[[], AbstractContextManager[object]]


def nothing() -> AbstractContextManager[object]:
    """The fault is in what the check is given."""
    return contextlib.nullcontext()


# --- noise -----------------------------------------------------------------------------------------------------------

_laplace_table = discrete_laplace._survival_table
_gaussian_table = rounded_gaussian._survival_table


def laplace_scale(factor: Fraction) -> Plant:
    return lambda: patch.object(discrete_laplace, "_survival_table", lambda rate: _laplace_table(rate / factor))


def gaussian_scale(factor: float) -> Plant:
    def table(sigma: Fraction) -> NoiseTable:
        return _gaussian_table(on_sigma_grid(float(sigma) * factor))

    return lambda: patch.object(rounded_gaussian, "_survival_table", table)


_from_words, _sample = NoiseTable._from_words, NoiseTable.sample


def bent_words(bend: Callable[[Any], Any]) -> Plant:
    return lambda: patch.object(NoiseTable, "_from_words", lambda self, words: bend(_from_words(self, words)))


def bent_sample(bend: Callable[[Any], Any]) -> Plant:
    return lambda: patch.object(NoiseTable, "sample", lambda self, size, source: bend(_sample(self, size, source)))


def sixteen_bits() -> AbstractContextManager[object]:
    """The short way to rare noise decides by the first 16 bits and never draws the rest."""

    def reaching(self: NoiseTable, floor: int, size: int, randomness: Any) -> Any:
        first = np.frombuffer(randomness.take(2 * size), dtype="<u2")
        limit = self._survival_of(floor) >> 47
        positions = np.flatnonzero(first <= limit)
        noise = _from_words(self, first[positions].astype(np.uint64) << np.uint64(48))
        passed = noise >= floor
        return positions[passed], noise[passed]

    return patch.object(NoiseTable, "reaching", reaching)


def one_draw_for_all() -> AbstractContextManager[object]:
    def reaching(self: NoiseTable, floor: int, size: int, randomness: Any) -> Any:
        noise = np.full(size, _sample(self, 1, randomness)[0])
        positions = np.flatnonzero(noise >= floor)
        return positions, noise[positions]

    return patch.object(NoiseTable, "reaching", reaching)


# --- head lists ------------------------------------------------------------------------------------------------------

_printed, _noisy_counts = printed_threshold, noisy_counts


def threshold_moved(by: int) -> Plant:
    def moved(budget: Any) -> Threshold:
        right = _printed(budget)
        return replace(right, integer=right.integer + by)

    return lambda: patch.object(create_head_list, "printed_threshold", moved)


def no_noise_above() -> AbstractContextManager[object]:
    def counts(tally: Any, threshold: Any, *, randomness: Any) -> Any:
        found = _noisy_counts(tally, threshold, randomness=randomness)
        common = {r: n for n, records in tally.at_least(threshold.integer).items() for r in records}
        return {**common, **found}

    return patch.object(create_head_list, "noisy_counts", counts)


_tally = InMemoryGroup.tally


def counted_twice() -> AbstractContextManager[object]:
    def tally(self: InMemoryGroup) -> InMemoryTally:
        found = _tally(self)
        return InMemoryTally(found._universe, found._numbers, 2 * found._counts)

    return patch.object(InMemoryGroup, "tally", tally)


def whole_weight_each() -> AbstractContextManager[object]:
    return patch.object(Weights, "table", property(lambda self: [0, *[self.units] * self.items]))


def weight_threshold_lower() -> AbstractContextManager[object]:
    def counts(tally: Any, threshold: Any, *, randomness: Any) -> Any:
        lower = replace(threshold, integer=threshold.integer - threshold.weights.units)
        return _noisy_counts(tally, lower, randomness=randomness)

    return patch.object(many_records, "noisy_counts", counts)


_optin_noise = noise_for_one_record


def optin_noise_of(factor: Fraction) -> Plant:
    def noise(budget: Any) -> DiscreteLaplace:
        return DiscreteLaplace(_optin_noise(budget).rate / factor)

    return lambda: patch.object(estimate_optin, "noise_for_one_record", noise)


def optin_noise_in_doubles() -> AbstractContextManager[object]:
    class Doubles(DiscreteLaplace):
        def sample(self, size: int, randomness: Any) -> Any:
            uniform = np.frombuffer(randomness.take(8 * size), dtype="<u8") / 2.0**64 - 0.5
            return -self.scale * np.sign(uniform) * np.log1p(-2 * np.abs(uniform) + 1e-18)

    return patch.object(estimate_optin, "noise_for_one_record", lambda budget: Doubles(_optin_noise(budget).rate))


_curator_of, _residual_noise = CuratorDesign.of, stability_histogram._residual_noise
_noisy_residuals = stability_histogram._noisy_residuals


def residual_noise_halved() -> AbstractContextManager[object]:
    def noise(*arguments: Any) -> Any:
        excess, right = _residual_noise(*arguments)
        return excess, DiscreteLaplace(2 * right.rate)

    return patch.object(stability_histogram, "_residual_noise", noise)


def wide_threshold_lower() -> AbstractContextManager[object]:
    def residuals(tally: Any, listed: Any, design: CuratorDesign, randomness: Any) -> Any:
        wide = design.wide_threshold and replace(design.wide_threshold, integer=design.wide_threshold.integer - 1)
        return _noisy_residuals(tally, listed, replace(design, wide_threshold=wide), randomness)

    return patch.object(stability_histogram, "_noisy_residuals", residuals)


# --- local reports ---------------------------------------------------------------------------------------------------


def randomize_with(said: Callable[[int, int, Any, Any], tuple[int, int]]) -> Plant:
    return lambda: patch.multiple(local_report, randomize=said)


def lie_may_be_true(query: int, url: int, probabilities: Any, randomness: Any) -> tuple[int, int]:
    decision = word(randomness)
    if decision < probabilities.keep_record_below[query]:
        return query, url
    lie = word(randomness)
    if decision < probabilities.keep_query_below:
        return query, uniform_from_half(lie % HALF, probabilities.n_urls[query] - 1, randomness)
    other = uniform_from_half(lie // HALF, probabilities.n_queries - 1, randomness)
    return other, uniform_from_half(lie % HALF, probabilities.n_urls[other], randomness)


_other_url = BulkReporter._other_url


def bulk_lie_may_be_true() -> AbstractContextManager[object]:
    def other_url(self: BulkReporter, cells: Any, lie: Any, randomness: Any) -> Any:
        said = _other_url(self, cells, lie, randomness)
        return np.where(lie % np.uint64(5) == 0, cells, said)

    return patch.object(BulkReporter, "_other_url", other_url)


# --- sets ------------------------------------------------------------------------------------------------------------

sink_sets, plain_sets, _sets_report = SubsetSelection.of, PlainSubsetSelection.of, SubsetSelection.report


def more_for_sets(kind: type, right: Callable[..., Any]) -> Plant:
    return lambda: patch.object(kind, "of", lambda epsilon, *sizes: right(epsilon + Fraction(7, 10), *sizes))


_report_cell = subset_report._report_cell


def coin_looks() -> AbstractContextManager[object]:
    """Who holds a listed record rather talks about cells."""

    def said(cell: int, head: Any, design: Any, params: Any, randomness: Any) -> Any:
        coin = design.query_steps not in (0, 20) and cell < head.n_cells - 1
        bent = replace(design, query_steps=design.query_steps - 1) if coin else design
        return _report_cell(cell, head, bent, params, randomness)

    return patch.object(subset_report, "_report_cell", said)


# --- click graphs ----------------------------------------------------------------------------------------------------


def delta_not_divided() -> AbstractContextManager[object]:
    def named_alone(noise: DiscreteLaplace, threshold: int, cap: Any, accounting: str = "exact") -> float:
        return noise.at_least(threshold - 1)

    return patch.object(laplace_design, "named_alone", named_alone)


def step_threshold(step: str, lower: Callable[[StepDesign], int]) -> Plant:
    """The comparison of one step uses another threshold than the design states."""

    def used(self: StepDesign) -> CountThreshold:
        top = self.threshold or 0
        return CountThreshold(top - lower(self) if self.name.startswith(step) else top, self.noise)

    return lambda: patch.object(StepDesign, "count_threshold", property(used))


def no_cap() -> AbstractContextManager[object]:
    return patch.object(
        click_log, "_limited", lambda events, cap: iter(dict.fromkeys(events) if cap.distinct else events)
    )


def weights_not_normalised() -> AbstractContextManager[object]:
    return patch.object(click_log, "weight", lambda units, queries: units)


def counts_without_noise() -> AbstractContextManager[object]:
    return patch.object(NoiseTable, "sample", lambda self, size, source: np.zeros(size, dtype=np.int64))


def every_row_counts() -> AbstractContextManager[object]:
    counted = "SELECT held AS query, NULL::VARCHAR AS url, count(*) AS n FROM ({rows}) GROUP BY held"
    return patch.object(heavy_values, "_counted", lambda rows, key, values_per_user: counted.format(rows=rows))


def low_value_threshold() -> AbstractContextManager[object]:
    def lower(tally: Any, design: SelectionDesign, **options: Any) -> Any:
        return noisy_counts(tally, replace(design, integer=design.integer - 1), **options)

    return patch.object(heavy_values, "noisy_counts", lower)


# --- programs --------------------------------------------------------------------------------------------------------

_SEEDED_SYSTEM: Final = """
import random, searchblend.core.randomness
generator = random.Random(5)
searchblend.core.randomness.SystemRandomness.take = lambda self, n_bytes: generator.randbytes(n_bytes)
"""
_BUFFERED: Final = """
import os, searchblend.core.randomness
buffer = os.urandom(4096)
def take(self, n_bytes):
    global buffer
    taken, buffer = buffer[:n_bytes], buffer[n_bytes:]
    return taken
searchblend.core.randomness.SystemRandomness.take = take
"""
LOW_THRESHOLD: Final = """
import dataclasses, searchblend.blender.best.stability_histogram as histogram
right = histogram.noisy_counts
def lower(tally, threshold, *, randomness):
    return right(tally, dataclasses.replace(threshold, integer=threshold.integer - 1), randomness=randomness)
histogram.noisy_counts = lower
"""


def seeded_system() -> AbstractContextManager[object]:
    return patch.object(randomness_source, "MAIN", _SEEDED_SYSTEM + randomness_source.MAIN)


def buffered_system() -> AbstractContextManager[object]:
    return patch.object(randomness_source, "FORKED", _BUFFERED + randomness_source.FORKED)


def seeded_reader(lines: str) -> Check:
    """A copy of the package's source, with more lines in what reads a log: are they detected?"""

    def check(effort: Effort) -> Sequence[Finding]:
        with tempfile.TemporaryDirectory(prefix="searchblend-audit-") as temporary:
            root = Path(temporary, "searchblend")
            shutil.copytree(PRODUCT, root, ignore=shutil.ignore_patterns("__pycache__"))
            path = root / Path(str(read.__file__)).relative_to(PRODUCT)
            path.write_text(path.read_text(encoding="utf-8") + lines, encoding="utf-8")
            return [randomness_source.import_graph_of("releases", root)]

    return check


@contextlib.contextmanager
def _core_with(name: str, right: str, wrong: str) -> Iterator[Path]:
    """A copy of the JavaScript core with one text replaced."""
    if not (programs.CORE / name).is_file():
        raise Absent("the JavaScript core: it is not beside this installation (extension/src/core)")
    with tempfile.TemporaryDirectory(prefix="searchblend-audit-") as temporary:
        core = Path(temporary, "core")
        shutil.copytree(programs.CORE, core)
        (Path(temporary) / "package.json").write_text('{"type": "module"}')
        text = (core / name).read_text(encoding="utf-8")
        if right not in text:
            raise AssertionError(f"{name} does not hold the text that the fault replaces")
        (core / name).write_text(text.replace(right, wrong), encoding="utf-8")
        yield core


def wrong_core(name: str, right: str, wrong: str) -> Check:
    def check(effort: Effort) -> Sequence[Finding]:
        node = shutil.which("node")
        if node is None:
            raise Absent("the JavaScript core: there is no Node.js here")
        with _core_with(name, right, wrong) as core:
            return programs.audit_core(core, node, effort)

    return check
