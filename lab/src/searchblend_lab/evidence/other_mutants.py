"""Planted faults of click graphs, selected values, sources of randomness and whole programs."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Final

from searchblend.clickgraph.release.design import CLICK_COUNTS, REFORMULATIONS, SELECT
from searchblend_lab.evidence import (
    boundaries,
    exact,
    faults,
    pipelines,
    randomness_source,
    sensitivity,
    service,
    values,
)
from searchblend_lab.evidence.mutant import Mutant

_MATH_RANDOM: Final = "for (let i = start; i < content.length; i += 1) content[i] = Math.random() * 256;"
OTHER_MUTANTS: Final[tuple[Mutant, ...]] = (
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
        "adaptive_gaussian: threshold three users lower",
        "threshold",
        faults.step_threshold(SELECT, lambda step: 3 * step.units),
        partial(boundaries.click_graph, "adaptive_gaussian"),
        "boundary test",
        5,
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
        "values: every row of a user counts",
        "bound on contributions skipped",
        faults.every_row_counts,
        values.sensitivity,
        "sensitivity",
        3,
    ),
    Mutant(
        "values: threshold one lower",
        "threshold",
        faults.low_value_threshold,
        values.boundary,
        "boundary test",
    ),
    Mutant(
        "values: half the noise",
        "too little noise",
        faults.laplace_scale(Fraction(1, 2)),
        values.selection,
        "lower bound",
        6,
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
        faults.seeded_reader("\nimport numpy\n_RNG = numpy.random.default_rng(7)\n"),
        "imports",
        6,
    ),
    Mutant(
        "random() in the database",
        "seeded generator",
        faults.nothing,
        faults.seeded_reader('\n_SQL = "SELECT * FROM lines ORDER BY random()"\n'),
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
            "randomness.js", "crypto.getRandomValues(content.subarray(start, start + LARGEST_REQUEST));", _MATH_RANDOM
        ),
        "real program",
        10,
        needs="javascript",
    ),
)
