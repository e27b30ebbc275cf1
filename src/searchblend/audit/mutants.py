"""Planted faults, by name: the shipped code with one thing wrong. A check that does not see its fault is no check.

Each fault is planted in a worker process, or in a process of its own, and taken out again; the check is the one that
audits the real code, with less effort. The faults are those that are known from practice: > for ≥ at a threshold, half
the noise, reused noise, k off by one, a missing ⋆, a lie that may be the truth, budgets swapped or not divided, bounds
on contributions skipped, seeded generators.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from searchblend.audit import (
    boundaries,
    distributions,
    exact,
    pipelines,
    programs,
    randomness_source,
    sampled,
    sensitivity,
    service,
    support,
)
from searchblend.audit.deterministic import without_noise
from searchblend.audit.evidence import Absent, Check, Effort, Finding
from searchblend.audit.source_tree import HERE
from searchblend.blender import (
    create_head_list,
    estimate_optin,
    local_report,
    report_probabilities,
    stability_histogram,
    subset_report,
)
from searchblend.blender.groups import InMemoryGroup, Spread
from searchblend.blender.local_report_bulk import BulkReporter
from searchblend.blender.stability_histogram import CuratorDesign
from searchblend.clickgraph import in_memory, laplace_design
from searchblend.clickgraph.design import CLICK_COUNTS, REFORMULATIONS, SELECT
from searchblend.clickgraph.step import CountThreshold, StepDesign
from searchblend.mechanisms import discrete_laplace, rounded_gaussian
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.noise_table import NoiseTable
from searchblend.mechanisms.rounded_gaussian import on_sigma_grid
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection, uniform_subset
from searchblend.mechanisms.tally import InMemoryTally
from searchblend.mechanisms.threshold import Threshold
from searchblend.params import BlenderParams
from searchblend.randomness import HALF, uniform_from_half, word

Plant = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Mutant:
    """A fault and the check that must see it."""

    name: str
    fault: str
    """which of the known kinds of fault it is"""
    plant: Plant
    check: Check
    seen_by: str
    cost: float = 2.0
    needs: str = ""
    quick: bool = False


def _nothing() -> AbstractContextManager[object]:
    """The fault is in what the check is given."""
    return contextlib.nullcontext()


# --- noise -----------------------------------------------------------------------------------------------------------

_laplace_table = discrete_laplace._survival_table
_gaussian_table = rounded_gaussian._survival_table


def _laplace_scale(factor: Fraction) -> Plant:
    return lambda: patch.object(discrete_laplace, "_survival_table", lambda rate: _laplace_table(rate / factor))


def _gaussian_scale(factor: float) -> Plant:
    def table(sigma: Fraction) -> NoiseTable:
        return _gaussian_table(on_sigma_grid(float(sigma) * factor))

    return lambda: patch.object(rounded_gaussian, "_survival_table", table)


def _table_ends_early() -> AbstractContextManager[object]:
    def table(rate: Fraction) -> NoiseTable:
        return NoiseTable(_laplace_table(rate).survival[: max(int(6 / rate), 2)].tolist())

    return patch.object(discrete_laplace, "_survival_table", table)


_from_words, _sample = NoiseTable._from_words, NoiseTable.sample


def _bent_words(bend: Callable[[Any], Any]) -> Plant:
    return lambda: patch.object(NoiseTable, "_from_words", lambda self, words: bend(_from_words(self, words)))


def _bent_sample(bend: Callable[[Any], Any]) -> Plant:
    return lambda: patch.object(NoiseTable, "sample", lambda self, size, source: bend(_sample(self, size, source)))


def _sixteen_bits() -> AbstractContextManager[object]:
    """The short way to rare noise decides by the first 16 bits and never draws the rest."""

    def reaching(self: NoiseTable, floor: int, size: int, randomness: Any) -> Any:
        first = np.frombuffer(randomness.take(2 * size), dtype="<u2")
        limit = self._survival_of(floor) >> 47
        positions = np.flatnonzero(first <= limit)
        noise = _from_words(self, first[positions].astype(np.uint64) << np.uint64(48))
        passed = noise >= floor
        return positions[passed], noise[passed]

    return patch.object(NoiseTable, "reaching", reaching)


def _one_draw_for_all() -> AbstractContextManager[object]:
    def reaching(self: NoiseTable, floor: int, size: int, randomness: Any) -> Any:
        noise = np.full(size, _sample(self, 1, randomness)[0])
        positions = np.flatnonzero(noise >= floor)
        return positions, noise[positions]

    return patch.object(NoiseTable, "reaching", reaching)


# --- head lists ------------------------------------------------------------------------------------------------------

_printed, _noisy_counts = create_head_list.printed_threshold, create_head_list.noisy_counts


def _threshold_moved(by: int) -> Plant:
    def moved(budget: Any) -> Threshold:
        right = _printed(budget)
        return replace(right, integer=right.integer + by)

    return lambda: patch.object(create_head_list, "printed_threshold", moved)


def _no_noise_above() -> AbstractContextManager[object]:
    def counts(tally: Any, threshold: Any, *, randomness: Any) -> Any:
        found = _noisy_counts(tally, threshold, randomness=randomness)
        common = {r: n for n, records in tally.at_least(threshold.integer).items() for r in records}
        return {**common, **found}

    return patch.object(create_head_list, "noisy_counts", counts)


_tally = InMemoryGroup.tally


def _counted_twice() -> AbstractContextManager[object]:
    def tally(self: InMemoryGroup, spread: Spread = Spread(), *, randomness: Any = None) -> InMemoryTally:  # noqa: B008
        found = _tally(self, spread, randomness=randomness)
        return InMemoryTally(found._universe, found._numbers, 2 * found._counts)

    return patch.object(InMemoryGroup, "tally", tally)


def _whole_weight_each() -> AbstractContextManager[object]:
    def tally(self: InMemoryGroup, spread: Spread = Spread(), *, randomness: Any = None) -> InMemoryTally:  # noqa: B008
        return _tally(self, Spread(spread.records, spread.units * spread.records), randomness=randomness)

    return patch.object(InMemoryGroup, "tally", tally)


_optin_noise = estimate_optin.noise_for_one_record


def _optin_noise_of(factor: Fraction) -> Plant:
    def noise(budget: Any) -> DiscreteLaplace:
        return DiscreteLaplace(_optin_noise(budget).rate / factor)

    return lambda: patch.object(estimate_optin, "noise_for_one_record", noise)


def _optin_noise_in_doubles() -> AbstractContextManager[object]:
    class Doubles(DiscreteLaplace):
        def sample(self, size: int, randomness: Any) -> Any:
            uniform = np.frombuffer(randomness.take(8 * size), dtype="<u8") / 2.0**64 - 0.5
            return -self.scale * np.sign(uniform) * np.log1p(-2 * np.abs(uniform) + 1e-18)

    return patch.object(estimate_optin, "noise_for_one_record", lambda budget: Doubles(_optin_noise(budget).rate))


_curator_of, _residual_noise = CuratorDesign.of, stability_histogram._residual_noise
_noisy_residuals = stability_histogram._noisy_residuals


def _residual_noise_halved() -> AbstractContextManager[object]:
    def noise(*arguments: Any) -> Any:
        excess, right = _residual_noise(*arguments)
        return excess, DiscreteLaplace(2 * right.rate)

    return patch.object(stability_histogram, "_residual_noise", noise)


def _residual_not_clipped() -> AbstractContextManager[object]:
    def of(*arguments: Any, **options: Any) -> CuratorDesign:
        right = _curator_of(*arguments, **options)
        return replace(right, clip=right.threshold.integer + 8)

    return patch.object(CuratorDesign, "of", of)


def _wide_threshold_lower() -> AbstractContextManager[object]:
    def residuals(tally: Any, listed: Any, design: CuratorDesign, randomness: Any) -> Any:
        wide = design.wide_threshold and replace(design.wide_threshold, integer=design.wide_threshold.integer - 1)
        return _noisy_residuals(tally, listed, replace(design, wide_threshold=wide), randomness)

    return patch.object(stability_histogram, "_noisy_residuals", residuals)


def _threshold_for_shares() -> AbstractContextManager[object]:
    """The threshold is made as if everybody spread their weight over all their records."""

    def named_alone(noise: DiscreteLaplace, threshold: int, spread: Spread) -> float:
        return noise.at_least(threshold - spread.units // spread.records)

    return patch.object(stability_histogram, "named_alone", named_alone)


# --- local reports ---------------------------------------------------------------------------------------------------

_keep = report_probabilities.keep_probability


def _keep_with(bend: Callable[[Fraction, Fraction, int], tuple[Fraction, Fraction, int]]) -> Plant:
    return lambda: patch.object(
        report_probabilities,
        "keep_probability",
        lambda epsilon, delta, n: Fraction(1) if n == 1 else _keep(*bend(epsilon, delta, n)),
    )


def _shares(query: Callable[[BlenderParams], Any], url: Callable[[BlenderParams], Any]) -> Plant:
    return lambda: patch.multiple(BlenderParams, query_share=property(query), url_share=property(url))


def _part(params: BlenderParams, fraction: float) -> tuple[Fraction, Fraction]:
    epsilon, delta = params.per_record
    return Fraction(fraction) * epsilon, Fraction(fraction) * delta


def _whole_budget_per_record() -> AbstractContextManager[object]:
    whole = property(lambda self: (Fraction(self.budget.epsilon), Fraction(self.budget.delta)))
    return patch.object(BlenderParams, "per_record", whole)


def _randomize(said: Callable[[int, int, Any, Any], tuple[int, int]]) -> Plant:
    return lambda: patch.multiple(local_report, randomize=said)


def _lie_may_be_true(query: int, url: int, probabilities: Any, randomness: Any) -> tuple[int, int]:
    decision = word(randomness)
    if decision < probabilities.keep_record_below[query]:
        return query, url
    lie = word(randomness)
    if decision < probabilities.keep_query_below:
        return query, uniform_from_half(lie % HALF, probabilities.n_urls[query] - 1, randomness)
    other = uniform_from_half(lie // HALF, probabilities.n_queries - 1, randomness)
    return other, uniform_from_half(lie % HALF, probabilities.n_urls[other], randomness)


def _never_star(query: int, url: int, probabilities: Any, randomness: Any) -> tuple[int, int]:
    said = local_randomize(query, url, probabilities, randomness)
    star = probabilities.n_queries - 1
    return (0, 0) if said[0] == star != query else said


local_randomize: Final = local_report.randomize
_other_url = BulkReporter._other_url


def _bulk_lie_may_be_true() -> AbstractContextManager[object]:
    def other_url(self: BulkReporter, cells: Any, lie: Any, randomness: Any) -> Any:
        said = _other_url(self, cells, lie, randomness)
        return np.where(lie % np.uint64(5) == 0, cells, said)

    return patch.object(BulkReporter, "_other_url", other_url)


# --- sets ------------------------------------------------------------------------------------------------------------

_sink_sets, _plain_sets, _sets_report = SubsetSelection.of, PlainSubsetSelection.of, SubsetSelection.report


def _sink_thresholds(bend: Callable[[SubsetSelection], SubsetSelection]) -> Plant:
    return lambda: patch.object(SubsetSelection, "of", lambda *arguments: bend(_sink_sets(*arguments)))


def _more_for_sets(kind: type, right: Callable[..., Any]) -> Plant:
    return lambda: patch.object(kind, "of", lambda epsilon, *sizes: right(epsilon + Fraction(7, 10), *sizes))


def _set_may_contain_own(self: SubsetSelection, item: int | None, randomness: Any) -> Any:
    decision = word(randomness)
    if item is None or not self.sink_below <= decision:
        return _sets_report(self, item, _After(decision, randomness))
    return uniform_subset(self.n_items, self.subset_size, randomness)


class _After:
    """A source that gives one word again before it goes on."""

    cryptographic = False

    def __init__(self, first: int, source: Any) -> None:
        self._first: int | None = first
        self._source = source

    def take(self, n_bytes: int) -> bytes:
        if self._first is None:
            return bytes(self._source.take(n_bytes))
        first, self._first = self._first, None
        return first.to_bytes(8, "little")


_report_cell = subset_report._report_cell


def _coin_looks() -> AbstractContextManager[object]:
    """Who holds a listed record rather talks about cells."""

    def said(cell: int, head: Any, design: Any, params: Any, randomness: Any) -> Any:
        coin = design.query_steps not in (0, 20) and cell < head.n_cells - 1
        bent = replace(design, query_steps=design.query_steps - 1) if coin else design
        return _report_cell(cell, head, bent, params, randomness)

    return patch.object(subset_report, "_report_cell", said)


# --- click graphs ----------------------------------------------------------------------------------------------------


def _delta_not_divided() -> AbstractContextManager[object]:
    def named_alone(noise: DiscreteLaplace, threshold: int, cap: Any, accounting: str = "exact") -> float:
        return noise.at_least(threshold - 1)

    return patch.object(laplace_design, "named_alone", named_alone)


def _thresholds(step: str, lower: Callable[[StepDesign], int]) -> Plant:
    """The comparison of one step uses another threshold than the design states."""

    def used(self: StepDesign) -> CountThreshold:
        top = self.threshold or 0
        return CountThreshold(top - lower(self) if self.name.startswith(step) else top, self.noise)

    return lambda: patch.object(StepDesign, "count_threshold", property(used))


def _no_cap() -> AbstractContextManager[object]:
    return patch.object(
        in_memory, "_limited", lambda events, cap: iter(dict.fromkeys(events) if cap.distinct else events)
    )


def _weights_not_normalised() -> AbstractContextManager[object]:
    return patch.object(in_memory, "weight", lambda units, queries: units)


def _counts_without_noise() -> AbstractContextManager[object]:
    return patch.object(NoiseTable, "sample", lambda self, size, source: np.zeros(size, dtype=np.int64))


def _click_graph(algorithm: str, effort: Effort) -> Sequence[Finding]:
    return pipelines.click_graph(algorithm, effort)


# --- programs --------------------------------------------------------------------------------------------------------

_SEEDED_SYSTEM: Final = """
import random, searchblend.randomness
generator = random.Random(5)
searchblend.randomness.SystemRandomness.take = lambda self, n_bytes: generator.randbytes(n_bytes)
"""
_BUFFERED: Final = """
import os, searchblend.randomness
buffer = os.urandom(4096)
def take(self, n_bytes):
    global buffer
    taken, buffer = buffer[:n_bytes], buffer[n_bytes:]
    return taken
searchblend.randomness.SystemRandomness.take = take
"""
_LOW_THRESHOLD: Final = """
import dataclasses, searchblend.blender.stability_histogram as histogram
right = histogram.noisy_counts
def lower(tally, threshold, *, randomness):
    return right(tally, dataclasses.replace(threshold, integer=threshold.integer - 1), randomness=randomness)
histogram.noisy_counts = lower
"""


def _seeded_system() -> AbstractContextManager[object]:
    return patch.object(randomness_source, "MAIN", _SEEDED_SYSTEM + randomness_source.MAIN)


def _buffered_system() -> AbstractContextManager[object]:
    return patch.object(randomness_source, "FORKED", _BUFFERED + randomness_source.FORKED)


def _seeded_module(folder: str, name: str, text: str) -> Check:
    """A copy of the package's source with one more line: is it seen?"""

    def check(effort: Effort) -> Sequence[Finding]:
        with tempfile.TemporaryDirectory(prefix="searchblend-audit-") as temporary:
            root = Path(temporary, "searchblend")
            shutil.copytree(HERE, root, ignore=shutil.ignore_patterns("__pycache__", "evaluation", "audit"))
            path = root / folder / name
            path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
            return [randomness_source.import_graph_of("runs", root)]

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


def _wrong_core(name: str, right: str, wrong: str) -> Check:
    def check(effort: Effort) -> Sequence[Finding]:
        node = shutil.which("node")
        if node is None:
            raise Absent("the JavaScript core: there is no Node.js here")
        with _core_with(name, right, wrong) as core:
            return programs.audit_core(core, node, effort)

    return check


# --- all of them -----------------------------------------------------------------------------------------------------

HALF_SCALE: Final = Fraction(1, 2)
MUTANTS: Final[tuple[Mutant, ...]] = (
    Mutant("Laplace noise of half the scale", "too little noise", _laplace_scale(HALF_SCALE), exact.noise_laws, "exact enumeration", 1, quick=True),
    Mutant("Laplace noise a tenth too wide", "wrong scale", _laplace_scale(Fraction(11, 10)), distributions.noise, "distribution test", quick=True),
    Mutant("noise without a sign", "wrong sampler", _bent_words(np.abs), sampled.noise, "lower bound", quick=True),
    Mutant("magnitudes one too small", "wrong sampler", _bent_words(lambda y: np.sign(y) * np.maximum(abs(y) - 1, 0)), distributions.noise, "distribution test"),
    Mutant("noise table ends early", "outputs that only one neighbour has", _table_ends_early, exact.noise_laws, "exact enumeration", 1),
    Mutant("each noise used twice", "reused noise", _bent_sample(lambda y: np.repeat(y[: (len(y) + 1) // 2], 2)[: len(y)]), distributions.noise, "distribution test", quick=True),
    Mutant("rare noise from 16 bits", "short cut", _sixteen_bits, distributions.rare_noise, "distribution test"),
    Mutant("Gaussian noise of σ/√2", "too little noise", _gaussian_scale(0.7071), exact.noise_laws, "exact enumeration", 1, quick=True),
    Mutant("Gaussian noise a tenth too wide", "wrong scale", _gaussian_scale(1.1), distributions.noise, "distribution test"),
    Mutant("noise moved by one", "wrong sampler", _bent_sample(lambda y: y + 1), distributions.noise, "distribution test"),
    Mutant("head list: > for ≥ at T", "threshold", _threshold_moved(1), boundaries.head_list, "boundary test", quick=True),
    Mutant("head list: ≥ for > at τ", "threshold", _threshold_moved(-1), boundaries.head_list, "boundary test", quick=True),
    Mutant("head list: no noise above T", "threshold", _no_noise_above, boundaries.head_list, "boundary test"),
    Mutant("head list: one draw for all records", "reused noise", _one_draw_for_all, boundaries.head_list, "boundary test", quick=True),
    Mutant("head list: no noise at all", "no noise", without_noise, boundaries.head_list, "boundary test"),
    Mutant("a person counts twice", "bound on contributions skipped", _counted_twice, sensitivity.groups, "sensitivity", 4, quick=True),
    Mutant("several records: each with the whole weight", "bound on contributions skipped", _whole_weight_each, sensitivity.groups, "sensitivity", 4),
    Mutant("several records: threshold for shares alone", "threshold", _threshold_for_shares, boundaries.stability_histogram, "boundary test"),
    Mutant("opt-in shares: half the noise", "too little noise", _optin_noise_of(HALF_SCALE), sampled.head_lists, "lower bound", 4),
    Mutant("opt-in shares: noise in doubles", "floating point", _optin_noise_in_doubles, support.released_numbers, "support", quick=True),
    Mutant("stability histogram: half the residual noise", "too little noise", _residual_noise_halved, exact.head_lists, "exact enumeration", 3),
    Mutant("stability histogram: residuals not clipped", "bound on contributions skipped", _residual_not_clipped, exact.head_lists, "exact enumeration", 4),
    Mutant("wide list: threshold one lower", "threshold", _wide_threshold_lower, boundaries.stability_histogram, "boundary test"),
    Mutant("local report: each stage has the whole budget", "budget not divided", _shares(lambda p: p.per_record, lambda p: p.per_record), exact.local_reports, "exact enumeration", 4, quick=True),
    Mutant("local report: swapped stage budgets", "swapped budgets", _shares(lambda p: _part(p, 1 - p.query_budget_fraction), lambda p: _part(p, p.query_budget_fraction)), distributions.local_reports, "distribution test", 4),
    Mutant("local report: δ four times too large", "δ", _keep_with(lambda e, d, n: (e, 4 * d, n)), exact.local_reports, "exact enumeration", 4),
    Mutant("local report: k one too small", "k off by one", _keep_with(lambda e, d, n: (e, d, n - 1)), exact.local_reports, "exact enumeration", 4),
    Mutant("local report: k one too large", "k off by one", _keep_with(lambda e, d, n: (e, d, n + (n > 3))), distributions.local_reports, "distribution test", 4),
    Mutant("local report: m_C cells at the whole budget each", "budget not divided", _whole_budget_per_record, exact.local_reports, "exact enumeration", 4),
    Mutant("local report: a lie may be the truth", "lie may equal truth", _randomize(_lie_may_be_true), exact.local_reports, "exact enumeration", 4, quick=True),
    Mutant("local report: ⋆ is never a lie", "missing wildcard", _randomize(_never_star), exact.local_reports, "exact enumeration", 4),
    Mutant("bulk reports: a lie may be the truth", "lie may equal truth", _bulk_lie_may_be_true, distributions.local_reports, "distribution test", 4),
    Mutant("sets: three words too many", "rounded up", _sink_thresholds(lambda s: replace(s, include_below=s.include_below + 3, sink_below=s.sink_below + 3)), exact.set_laws, "exact enumeration", 1, quick=True),
    Mutant("sets: e^(ε+0.7) for e^ε", "budget", _more_for_sets(SubsetSelection, _sink_sets), sampled.subset_reports, "lower bound", 6),
    Mutant("plain sets: e^(ε+0.7) for e^ε", "budget", _more_for_sets(PlainSubsetSelection, _plain_sets), distributions.subset_reports, "distribution test", 3),
    Mutant("sets: no sink for holders", "missing wildcard", _sink_thresholds(lambda s: replace(s, sink_below=s.include_below)), exact.subset_reports, "exact enumeration", 6),
    Mutant("sets: others may contain the own item", "lie may equal truth", lambda: patch.object(SubsetSelection, "report", _set_may_contain_own), exact.subset_reports, "exact enumeration", 6),
    Mutant("sets: the coin looks at the record", "data-dependent choice", _coin_looks, exact.subset_reports, "exact enumeration", 6),
    Mutant("kkmn2009: δ of one query for all of them", "δ", _delta_not_divided, exact.click_graphs, "exact enumeration", 2, quick=True),
    Mutant("kkmn2009: counts without noise", "no noise", _counts_without_noise, partial(_click_graph, "kkmn2009"), "lower bound", 6),
    Mutant("gaussian: noise of one query for two", "sensitivity", _gaussian_scale(0.7071), exact.click_graphs, "exact enumeration", 2),
    Mutant("weighted_gaussian: weights not normalised", "bound on contributions skipped", _weights_not_normalised, sensitivity.activity, "sensitivity", 5),
    Mutant("weighted_gaussian: threshold a quarter user lower", "threshold", _thresholds(SELECT, lambda step: step.units // 4), partial(boundaries.click_graph, "weighted_gaussian"), "boundary test", 3),
    Mutant("dp_sips: thresholds half a user lower", "δ", _thresholds(SELECT, lambda step: step.units // 2), partial(boundaries.click_graph, "dp_sips"), "boundary test", 5),
    Mutant("activity not limited", "bound on contributions skipped", _no_cap, sensitivity.activity, "sensitivity", 5, quick=True),
    Mutant("private clicks without a threshold", "threshold", _thresholds(CLICK_COUNTS, lambda step: 10**6), boundaries.edges, "boundary test"),
    Mutant("reformulations: ≥ for > at T", "threshold", _thresholds(REFORMULATIONS, lambda step: 1), boundaries.edges, "boundary test"),
    Mutant("a seeded generator for the system's", "seeded generator", _seeded_system, randomness_source.commands, "equal seeds, equal runs", 12),
    Mutant("random bytes kept in a buffer", "state copied by fork", _buffered_system, randomness_source.forks, "fork", 1, quick=True),
    Mutant("numpy's generator in the reader", "seeded generator", _nothing, _seeded_module("logs", "duckdb_draws.py", "\nimport numpy\n_RNG = numpy.random.default_rng(7)\n"), "imports", 6),
    Mutant("random() in the database", "seeded generator", _nothing, _seeded_module("logs", "duckdb_draws.py", '\n_SQL = "SELECT * FROM lines ORDER BY random()"\n'), "imports", 6),
    Mutant("service: threshold one lower", "threshold", _nothing, partial(service.audit_service, _LOW_THRESHOLD), "real program", 15, needs="service"),
    Mutant("JavaScript: a lie may be the truth", "lie may equal truth", _nothing, _wrong_core("local_report.js", "const other = others + Number(others >= query);", "const other = others;"), "real program", 10, needs="javascript"),
    Mutant("JavaScript: Math.random for the system's", "seeded generator", _nothing, _wrong_core("randomness.js", "crypto.getRandomValues(content.subarray(start, start + LARGEST_REQUEST));", "for (let i = start; i < content.length; i += 1) content[i] = Math.random() * 256;"), "real program", 10, needs="javascript"),
)  # fmt: skip
