"""The laws of both tables as checks of the audit, and their planted faults."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from searchblend_lab.evidence import faults
from searchblend_lab.evidence.evidence import Audited, Effort, Finding, Kind, Verdict, judged
from searchblend_lab.evidence.laws.law import Law
from searchblend_lab.evidence.laws.laws import LAWS
from searchblend_lab.evidence.laws.sampled_laws import SAMPLED_LAWS
from searchblend_lab.evidence.mutant import Mutant

_TRIES: Final = {Kind.EXACT: 1, Kind.DISTRIBUTION: 2}
"""how often a law must be rejected: two tests of 1e-6 on fresh draws are both wrong once in 10^12"""
_HOW: Final = {Kind.EXACT: "enumerated in fractions", Kind.DISTRIBUTION: "sampled"}


def shipped(law: Law, kind: Kind, effort: Effort) -> Sequence[Finding]:
    """What the shipped code, as it is now, does to the law."""
    holds = any(law.accepts(law.shipped) for _ in range(_TRIES[kind]))
    detail = f"{_HOW[kind]}, {len(law.settings)} settings; {len(law.faults)} faults are rejected"
    return [Finding(f"law: {law.name}", judged(holds=holds), detail)]


def _faulty(law: Law, fault: str, kind: Kind, effort: Effort) -> Sequence[Finding]:
    rejected = all(law.rejects(law.faults[fault]) for _ in range(_TRIES[kind]))
    detail = f"rejected at all {len(law.settings)} settings" if rejected else "accepted at one of the settings"
    return [Finding(f"law: {law.name}", Verdict.REFUTED if rejected else Verdict.HOLDS, detail)]


_ALL: Final = (*((law, Kind.EXACT) for law in LAWS), *((law, Kind.DISTRIBUTION) for law in SAMPLED_LAWS))
LAW_CHECKS: Final = tuple(
    Audited(f"law-{law.name.replace(' ', '-')}", kind, partial(shipped, law, kind), law.cost) for law, kind in _ALL
)
LAW_MUTANTS: Final = tuple(
    Mutant(
        f"{law.name}: {fault}",
        "law",
        faults.nothing,
        partial(_faulty, law, fault, kind),
        kind.value,
        law.cost,
        quick=law.cost <= 1,
    )
    for law, kind in _ALL
    for fault in law.faults
)


def sampled_law(name: str) -> partial[Sequence[Finding]]:
    """The check of a sampled law, for a fault that is planted in the shipped code."""
    return partial(shipped, next(law for law in SAMPLED_LAWS if law.name == name), Kind.DISTRIBUTION)
