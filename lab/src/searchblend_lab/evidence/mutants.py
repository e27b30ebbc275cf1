"""Planted faults, by name: the shipped code with one thing wrong. A check that does not see its fault is not a check.

Each fault is planted in a worker process, or in a process of its own, and taken out again; the check is the one that
audits the real code, with less effort. The faults are those that are known from practice: > for ≥ at a threshold, half
the noise, reused noise, k off by one, a missing ⋆, a lie that may be the truth, budgets swapped or not divided, bounds
on contributions skipped, seeded generators.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection
from searchblend_lab.evidence import (
    boundaries,
    exact,
    faults,
    sampled,
    sensitivity,
    support,
)
from searchblend_lab.evidence.deterministic import without_noise
from searchblend_lab.evidence.law_checks import LAW_MUTANTS, sampled_law
from searchblend_lab.evidence.mutant import Mutant
from searchblend_lab.evidence.other_mutants import OTHER_MUTANTS

HALF_SCALE: Final = Fraction(1, 2)
_HYBRID: Final[tuple[Mutant, ...]] = (
    Mutant(
        "Laplace noise a tenth too wide",
        "wrong scale",
        faults.laplace_scale(Fraction(11, 10)),
        sampled_law("discrete Laplace sampler"),
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
        sampled_law("discrete Laplace sampler"),
        "distribution test",
    ),
    Mutant(
        "each noise used twice",
        "reused noise",
        faults.bent_sample(lambda y: np.repeat(y[: (len(y) + 1) // 2], 2)[: len(y)]),
        sampled_law("discrete Laplace sampler"),
        "distribution test",
        quick=True,
    ),
    Mutant(
        "rare noise from 16 bits",
        "short cut",
        faults.sixteen_bits,
        sampled_law("noise that reaches a floor"),
        "distribution test",
    ),
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
        sampled_law("rounded Gaussian sampler"),
        "distribution test",
    ),
    Mutant(
        "noise moved by one",
        "wrong sampler",
        faults.bent_sample(lambda y: y + 1),
        sampled_law("discrete Laplace sampler"),
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
        "many records: each query with the whole weight",
        "bound on contributions skipped",
        faults.whole_weight_each,
        sensitivity.groups,
        "sensitivity",
        4,
    ),
    Mutant(
        "many records: threshold lower by one user",
        "threshold",
        faults.weight_threshold_lower,
        boundaries.many_records,
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
        "wide list: threshold one lower",
        "threshold",
        faults.wide_threshold_lower,
        boundaries.stability_histogram,
        "boundary test",
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
        "bulk reports: a lie may be the truth",
        "lie may equal truth",
        faults.bulk_lie_may_be_true,
        sampled_law("local reports in bulk"),
        "distribution test",
        4,
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
        sampled_law("sets of a report"),
        "distribution test",
        3,
    ),
    Mutant(
        "sets: the coin looks at the record",
        "data-dependent choice",
        faults.coin_looks,
        exact.subset_reports,
        "exact enumeration",
        6,
    ),
)
MUTANTS: Final = (*_HYBRID, *OTHER_MUTANTS, *LAW_MUTANTS)
