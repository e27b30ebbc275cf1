"""Planted faults, by name: the shipped code with one thing wrong. A check that does not see its fault is no check.

Each fault is planted in a worker process, or in a process of its own, and taken out again; the check is the one that
audits the real code, with less effort. The faults are those that are known from practice: > for ≥ at a threshold, half
the noise, reused noise, k off by one, a missing ⋆, a lie that may be the truth, budgets swapped or not divided, bounds
on contributions skipped, seeded generators.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final
from unittest.mock import patch

import numpy as np

from searchblend.audit import (
    boundaries,
    distributions,
    exact,
    faults,
    pipelines,
    randomness_source,
    sampled,
    sensitivity,
    service,
    support,
)
from searchblend.audit.deterministic import without_noise
from searchblend.audit.evidence import Check
from searchblend.audit.faults import Plant
from searchblend.clickgraph.design import CLICK_COUNTS, REFORMULATIONS, SELECT
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection


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


MATH_RANDOM: Final = "for (let i = start; i < content.length; i += 1) content[i] = Math.random() * 256;"
HALF_SCALE: Final = Fraction(1, 2)
MUTANTS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "Laplace noise of half the scale",
        "too little noise",
        faults.laplace_scale(HALF_SCALE),
        exact.noise_laws,
        "exact enumeration",
        1,
        quick=True,
    ),
    Mutant(
        "Laplace noise a tenth too wide",
        "wrong scale",
        faults.laplace_scale(Fraction(11, 10)),
        distributions.noise,
        "distribution test",
        quick=True,
    ),
    Mutant(
        "noise without a sign", "wrong sampler", faults.bent_words(np.abs), sampled.noise, "lower bound", quick=True
    ),
    Mutant(
        "magnitudes one too small",
        "wrong sampler",
        faults.bent_words(lambda y: np.sign(y) * np.maximum(abs(y) - 1, 0)),
        distributions.noise,
        "distribution test",
    ),
    Mutant(
        "noise table ends early",
        "outputs that only one neighbour has",
        faults.table_ends_early,
        exact.noise_laws,
        "exact enumeration",
        1,
    ),
    Mutant(
        "each noise used twice",
        "reused noise",
        faults.bent_sample(lambda y: np.repeat(y[: (len(y) + 1) // 2], 2)[: len(y)]),
        distributions.noise,
        "distribution test",
        quick=True,
    ),
    Mutant("rare noise from 16 bits", "short cut", faults.sixteen_bits, distributions.rare_noise, "distribution test"),
    Mutant(
        "Gaussian noise of σ/√2",
        "too little noise",
        faults.gaussian_scale(0.7071),
        exact.noise_laws,
        "exact enumeration",
        1,
        quick=True,
    ),
    Mutant(
        "Gaussian noise a tenth too wide",
        "wrong scale",
        faults.gaussian_scale(1.1),
        distributions.noise,
        "distribution test",
    ),
    Mutant(
        "noise moved by one",
        "wrong sampler",
        faults.bent_sample(lambda y: y + 1),
        distributions.noise,
        "distribution test",
    ),
    Mutant(
        "head list: > for ≥ at T",
        "threshold",
        faults.threshold_moved(1),
        boundaries.head_list,
        "boundary test",
        quick=True,
    ),
    Mutant(
        "head list: ≥ for > at τ",
        "threshold",
        faults.threshold_moved(-1),
        boundaries.head_list,
        "boundary test",
        quick=True,
    ),
    Mutant("head list: no noise above T", "threshold", faults.no_noise_above, boundaries.head_list, "boundary test"),
    Mutant(
        "head list: one draw for all records",
        "reused noise",
        faults.one_draw_for_all,
        boundaries.head_list,
        "boundary test",
        quick=True,
    ),
    Mutant("head list: no noise at all", "no noise", without_noise, boundaries.head_list, "boundary test"),
    Mutant(
        "a person counts twice",
        "bound on contributions skipped",
        faults.counted_twice,
        sensitivity.groups,
        "sensitivity",
        4,
        quick=True,
    ),
    Mutant(
        "several records: each with the whole weight",
        "bound on contributions skipped",
        faults.whole_weight_each,
        sensitivity.groups,
        "sensitivity",
        4,
    ),
    Mutant(
        "several records: threshold for shares alone",
        "threshold",
        faults.threshold_for_shares,
        boundaries.stability_histogram,
        "boundary test",
    ),
    Mutant(
        "opt-in shares: half the noise",
        "too little noise",
        faults.optin_noise_of(HALF_SCALE),
        sampled.head_lists,
        "lower bound",
        4,
    ),
    Mutant(
        "opt-in shares: noise in doubles",
        "floating point",
        faults.optin_noise_in_doubles,
        support.released_numbers,
        "support",
        quick=True,
    ),
    Mutant(
        "stability histogram: half the residual noise",
        "too little noise",
        faults.residual_noise_halved,
        exact.head_lists,
        "exact enumeration",
        3,
    ),
    Mutant(
        "stability histogram: residuals not clipped",
        "bound on contributions skipped",
        faults.residual_not_clipped,
        exact.head_lists,
        "exact enumeration",
        4,
    ),
    Mutant(
        "wide list: threshold one lower",
        "threshold",
        faults.wide_threshold_lower,
        boundaries.stability_histogram,
        "boundary test",
    ),
    Mutant(
        "local report: each stage has the whole budget",
        "budget not divided",
        faults.stage_shares(lambda p: p.per_record, lambda p: p.per_record),
        exact.local_reports,
        "exact enumeration",
        4,
        quick=True,
    ),
    Mutant(
        "local report: swapped stage budgets",
        "swapped budgets",
        faults.stage_shares(
            lambda p: faults.part_of_budget(p, 1 - p.query_budget_fraction),
            lambda p: faults.part_of_budget(p, p.query_budget_fraction),
        ),
        distributions.local_reports,
        "distribution test",
        4,
    ),
    Mutant(
        "local report: δ four times too large",
        "δ",
        faults.keep_with(lambda e, d, n: (e, 4 * d, n)),
        exact.local_reports,
        "exact enumeration",
        4,
    ),
    Mutant(
        "local report: k one too small",
        "k off by one",
        faults.keep_with(lambda e, d, n: (e, d, n - 1)),
        exact.local_reports,
        "exact enumeration",
        4,
    ),
    Mutant(
        "local report: k one too large",
        "k off by one",
        faults.keep_with(lambda e, d, n: (e, d, n + (n > 3))),
        distributions.local_reports,
        "distribution test",
        4,
    ),
    Mutant(
        "local report: m_C cells at the whole budget each",
        "budget not divided",
        faults.whole_budget_per_record,
        exact.local_reports,
        "exact enumeration",
        4,
    ),
    Mutant(
        "local report: a lie may be the truth",
        "lie may equal truth",
        faults.randomize_with(faults.lie_may_be_true),
        exact.local_reports,
        "exact enumeration",
        4,
        quick=True,
    ),
    Mutant(
        "local report: ⋆ is never a lie",
        "missing wildcard",
        faults.randomize_with(faults.never_star),
        exact.local_reports,
        "exact enumeration",
        4,
    ),
    Mutant(
        "bulk reports: a lie may be the truth",
        "lie may equal truth",
        faults.bulk_lie_may_be_true,
        distributions.local_reports,
        "distribution test",
        4,
    ),
    Mutant(
        "sets: three words too many",
        "rounded up",
        faults.sink_thresholds(lambda s: replace(s, include_below=s.include_below + 3, sink_below=s.sink_below + 3)),
        exact.set_laws,
        "exact enumeration",
        1,
        quick=True,
    ),
    Mutant(
        "sets: e^(ε+0.7) for e^ε",
        "budget",
        faults.more_for_sets(SubsetSelection, faults.sink_sets),
        sampled.subset_reports,
        "lower bound",
        6,
    ),
    Mutant(
        "plain sets: e^(ε+0.7) for e^ε",
        "budget",
        faults.more_for_sets(PlainSubsetSelection, faults.plain_sets),
        distributions.subset_reports,
        "distribution test",
        3,
    ),
    Mutant(
        "sets: no sink for holders",
        "missing wildcard",
        faults.sink_thresholds(lambda s: replace(s, sink_below=s.include_below)),
        exact.subset_reports,
        "exact enumeration",
        6,
    ),
    Mutant(
        "sets: others may contain the own item",
        "lie may equal truth",
        lambda: patch.object(SubsetSelection, "report", faults.set_may_contain_own),
        exact.subset_reports,
        "exact enumeration",
        6,
    ),
    Mutant(
        "sets: the coin looks at the record",
        "data-dependent choice",
        faults.coin_looks,
        exact.subset_reports,
        "exact enumeration",
        6,
    ),
    Mutant(
        "kkmn2009: δ of one query for all of them",
        "δ",
        faults.delta_not_divided,
        exact.click_graphs,
        "exact enumeration",
        2,
        quick=True,
    ),
    Mutant(
        "kkmn2009: counts without noise",
        "no noise",
        faults.counts_without_noise,
        partial(pipelines.click_graph, "kkmn2009"),
        "lower bound",
        6,
    ),
    Mutant(
        "gaussian: noise of one query for two",
        "sensitivity",
        faults.gaussian_scale(0.7071),
        exact.click_graphs,
        "exact enumeration",
        2,
    ),
    Mutant(
        "weighted_gaussian: weights not normalised",
        "bound on contributions skipped",
        faults.weights_not_normalised,
        sensitivity.activity,
        "sensitivity",
        5,
    ),
    Mutant(
        "weighted_gaussian: threshold half a user lower",
        "threshold",
        faults.step_threshold(SELECT, lambda step: step.units // 2),
        partial(boundaries.click_graph, "weighted_gaussian"),
        "boundary test",
        3,
    ),
    Mutant(
        "dp_sips: thresholds a user lower",
        "δ",
        faults.step_threshold(SELECT, lambda step: step.units),
        partial(boundaries.click_graph, "dp_sips"),
        "boundary test",
        5,
    ),
    Mutant(
        "activity not limited",
        "bound on contributions skipped",
        faults.no_cap,
        sensitivity.activity,
        "sensitivity",
        5,
        quick=True,
    ),
    Mutant(
        "private clicks without a threshold",
        "threshold",
        faults.step_threshold(CLICK_COUNTS, lambda step: 10**6),
        boundaries.edges,
        "boundary test",
    ),
    Mutant(
        "reformulations: ≥ for > at T",
        "threshold",
        faults.step_threshold(REFORMULATIONS, lambda step: 1),
        boundaries.edges,
        "boundary test",
    ),
    Mutant(
        "a seeded generator for the system's",
        "seeded generator",
        faults.seeded_system,
        randomness_source.commands,
        "equal seeds, equal runs",
        12,
    ),
    Mutant(
        "random bytes kept in a buffer",
        "state copied by fork",
        faults.buffered_system,
        randomness_source.forks,
        "fork",
        1,
        quick=True,
    ),
    Mutant(
        "numpy's generator in the reader",
        "seeded generator",
        faults.nothing,
        faults.seeded_module("logs", "duckdb_draws.py", "\nimport numpy\n_RNG = numpy.random.default_rng(7)\n"),
        "imports",
        6,
    ),
    Mutant(
        "random() in the database",
        "seeded generator",
        faults.nothing,
        faults.seeded_module("logs", "duckdb_draws.py", '\n_SQL = "SELECT * FROM lines ORDER BY random()"\n'),
        "imports",
        6,
    ),
    Mutant(
        "service: threshold one lower",
        "threshold",
        faults.nothing,
        partial(service.audit_service, faults.LOW_THRESHOLD),
        "real program",
        15,
        needs="service",
    ),
    Mutant(
        "JavaScript: a lie may be the truth",
        "lie may equal truth",
        faults.nothing,
        faults.wrong_core(
            "local_report.js", "const other = others + Number(others >= query);", "const other = others;"
        ),
        "real program",
        10,
        needs="javascript",
    ),
    Mutant(
        "JavaScript: Math.random for the system's",
        "seeded generator",
        faults.nothing,
        faults.wrong_core(
            "randomness.js", "crypto.getRandomValues(content.subarray(start, start + LARGEST_REQUEST));", MATH_RANDOM
        ),
        "real program",
        10,
        needs="javascript",
    ),
)
