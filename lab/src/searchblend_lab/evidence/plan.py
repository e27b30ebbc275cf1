"""All checks of the audit, by name, and how much each kind of audit draws."""

from __future__ import annotations

from functools import partial
from typing import Final

from searchblend.core.params import ALGORITHMS
from searchblend_lab.evidence import (
    boundaries,
    deterministic,
    exact,
    pipelines,
    programs,
    randomness_source,
    sampled,
    sensitivity,
    service,
    spark,
    support,
    values,
)
from searchblend_lab.evidence.evidence import Audited, Effort, Kind
from searchblend_lab.evidence.law_checks import LAW_CHECKS

LEVEL: Final = 1e-6
"""how likely a whole audit may refute something that is true"""
STATEMENTS: Final = 400
"""random statements of a whole audit, at most: each has this part of the level (Bonferroni)"""
PARTS: Final = ("spark", "javascript", "service", "device")
"""what may be left out"""

CHECKS: Final[tuple[Audited, ...]] = (
    Audited("exact-local-reports", Kind.EXACT, exact.local_reports, 4),
    Audited("exact-subset-reports", Kind.EXACT, exact.subset_reports, 5),
    Audited("exact-choices", Kind.EXACT, exact.uniform_choices, 0.1),
    Audited("exact-noise", Kind.EXACT, exact.noise_laws, 0.1),
    Audited("exact-head-lists", Kind.EXACT, exact.head_lists, 2),
    Audited("exact-click-graphs", Kind.EXACT, exact.click_graphs, 1),
    *LAW_CHECKS,
    Audited("sampled-noise", Kind.SAMPLED, sampled.noise, 1),
    Audited("sampled-local-reports", Kind.SAMPLED, sampled.local_reports, 15, quick=False),
    Audited("sampled-subset-reports", Kind.SAMPLED, sampled.subset_reports, 15, quick=False),
    Audited("sampled-head-lists", Kind.SAMPLED, sampled.head_lists, 4),
    Audited("sampled-hybrid-optin", Kind.SAMPLED, pipelines.hybrid_optin, 60, quick=False),
    Audited("sampled-hybrid-clients", Kind.SAMPLED, pipelines.hybrid_clients, 30, quick=False),
    *(
        Audited(f"sampled-click-graph-{name}", Kind.SAMPLED, partial(pipelines.click_graph, name), 20, quick=False)
        for name in ALGORITHMS
    ),
    Audited("sampled-values", Kind.SAMPLED, values.selection, 8, quick=False),
    Audited("boundary-head-list", Kind.BOUNDARY, boundaries.head_list, 1),
    Audited("boundary-stability-histogram", Kind.BOUNDARY, boundaries.stability_histogram, 2),
    Audited("boundary-many-records", Kind.BOUNDARY, boundaries.many_records, 1),
    *(
        Audited(f"boundary-click-graph-{name}", Kind.BOUNDARY, partial(boundaries.click_graph, name), 3)
        for name in ALGORITHMS
    ),
    Audited("boundary-values", Kind.BOUNDARY, values.boundary, 1),
    Audited("boundary-edges", Kind.BOUNDARY, boundaries.edges, 2),
    Audited("sensitivity-groups", Kind.SENSITIVITY, sensitivity.groups, 5, quick=False),
    Audited("sensitivity-activity", Kind.SENSITIVITY, sensitivity.activity, 8, quick=False),
    Audited("sensitivity-reports", Kind.SENSITIVITY, sensitivity.reports, 1),
    Audited("sensitivity-split", Kind.SENSITIVITY, sensitivity.split, 1),
    Audited("sensitivity-values", Kind.SENSITIVITY, values.sensitivity, 2),
    Audited("source-imports", Kind.SOURCE, randomness_source.import_graph, 4),
    Audited("source-commands", Kind.SOURCE, randomness_source.commands, 15, quick=False),
    Audited("source-forks", Kind.SOURCE, randomness_source.forks, 1),
    Audited("support-numbers", Kind.SUPPORT, support.released_numbers, 2),
    Audited("support-low-bits", Kind.SUPPORT, support.low_bits, 0.2),
    Audited("control-deterministic", Kind.CONTROL, deterministic.deterministic_threshold, 1),
    Audited("program-service", Kind.BINARY, service.service, 30, "service", quick=False),
    Audited("program-javascript", Kind.BINARY, programs.javascript, 25, "javascript", quick=False),
    Audited("program-device", Kind.BINARY, programs.device, 20, "device", quick=False),
    Audited("program-spark", Kind.BINARY, spark.spark, 40, "spark", quick=False),
)

CANNOT_SEE: Final = (
    "A sample refutes; it never proves. A bound below ε says that this attack failed, at the stated resolution. What "
    "is proved is in proofs/; what is enumerated exactly is marked so.",
    "δ of 1e-5 and less is out of reach of samples. Thresholds are tested at loose δ, where the code is the same, and "
    "enumerated exactly at the small ones.",
    "Neighbours and events that no one thought of: pairs are the worst ones that the proofs name, events are chosen "
    "from what a release says of them.",
    "Losses of many releases together. Composition is computed (proofs/composition.md), not sampled here.",
    "Side channels: time, memory, sizes of files and caches, network traffic, who takes part and when.",
    "The operating system's generator, the processor, Python, Node, Java, and the libraries below the code.",
    "People: an operator who reads the log, a curator who keeps the key, a reviewer who is careless; a server that "
    "asks devices more often than it says is stopped by the devices' own budgets, which are not sampled here.",
    "Worlds in whole-pipeline attacks stand side by side in one run. If noises of different records depended on each "
    "other in a way that the tests of independence do not see, those bounds would be off.",
)


def checks_of(method: str | None) -> tuple[Audited, ...]:
    """All checks of this code, or those that attack a method from outside, by its path."""
    if method is None:
        return CHECKS
    return (
        Audited("sampled-hybrid-optin", Kind.SAMPLED, partial(pipelines.outside_optin, method), 60),
        Audited("sampled-hybrid-clients", Kind.SAMPLED, partial(pipelines.outside_clients, method), 30),
    )


def effort(*, quick: bool, samples: int | None, level: float) -> Effort:
    draws = samples or (40_000 if quick else 100_000)
    return Effort(draws, 60 if quick else max(draws * 3 // 200, 60), level / STATEMENTS)


def mutant_effort(level: float) -> Effort:
    return Effort(40_000, 80, level / STATEMENTS)
