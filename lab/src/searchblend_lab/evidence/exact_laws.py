"""The exact laws as checks of the audit, and their planted faults."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from searchblend_lab.evidence import faults
from searchblend_lab.evidence.evidence import Audited, Effort, Finding, Kind, Verdict, judged
from searchblend_lab.evidence.laws.laws import LAWS, ExactLaw
from searchblend_lab.evidence.mutant import Mutant


def _shipped(law: ExactLaw, effort: Effort) -> Sequence[Finding]:
    detail = f"enumerated in fractions, {len(law.settings)} settings; {len(law.faults)} faults are rejected"
    return [Finding(f"law: {law.name}", judged(holds=law.accepts(law.shipped)), detail)]


def _faulty(law: ExactLaw, fault: str, effort: Effort) -> Sequence[Finding]:
    rejected = law.rejects(law.faults[fault])
    detail = f"rejected at all {len(law.settings)} settings" if rejected else "accepted at one of the settings"
    return [Finding(f"law: {law.name}", Verdict.REFUTED if rejected else Verdict.HOLDS, detail)]


LAW_CHECKS: Final = tuple(
    Audited(f"law-{law.name.replace(' ', '-')}", Kind.EXACT, partial(_shipped, law), law.cost) for law in LAWS
)
LAW_MUTANTS: Final = tuple(
    Mutant(
        f"{law.name}: {fault}",
        "law",
        faults.nothing,
        partial(_faulty, law, fault),
        "exact enumeration",
        law.cost,
        quick=True,
    )
    for law in LAWS
    for fault in law.faults
)
