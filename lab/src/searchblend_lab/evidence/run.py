"""Runs an audit: checks and planted faults in worker processes, and what came of it."""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from searchblend.core.errors import UsageError
from searchblend.synthetic.worker_pool import WorkerPool
from searchblend_lab.evidence import plan
from searchblend_lab.evidence.evidence import Absent, Audited, Effort, Finding, Kind, Verdict
from searchblend_lab.evidence.mutant import Mutant
from searchblend_lab.evidence.mutants import MUTANTS

OnProgress = Callable[[float, float, str], None]
"""seconds of work done, in all, and what was finished last"""
_MUTANT: Final = "mutant: "
_WORTH_A_PROCESS: Final = 2.0
"""seconds of work: a worker needs one to start"""


@dataclass(frozen=True)
class Settings:
    """What to audit, and how much."""

    only: Sequence[str] = ()
    """parts of names; empty for everything"""
    quick: bool = False
    samples: int | None = None
    level: float = plan.LEVEL
    without: Sequence[str] = ()
    workers: int = 2
    method: str | None = None
    """a method from outside, by its path: it is attacked, and nothing else is"""


@dataclass(frozen=True)
class Entry:
    """What one check found."""

    name: str
    kind: Kind
    findings: Sequence[Finding]
    seconds: float

    @property
    def passed(self) -> bool:
        return all(finding.verdict.is_good for finding in self.findings)


@dataclass(frozen=True)
class MutantEntry:
    """What became of one planted fault."""

    name: str
    fault: str
    seen_by: str
    outcome: str
    """killed, SURVIVED, or why it was not planted"""
    detail: str
    seconds: float

    @property
    def killed(self) -> bool:
        return self.outcome == "killed"


@dataclass(frozen=True)
class AuditReport:
    """Everything that an audit says."""

    settings: Settings
    effort: Effort
    entries: Sequence[Entry]
    mutants: Sequence[MutantEntry]
    seconds: float

    @property
    def killed(self) -> int:
        return sum(entry.killed for entry in self.mutants)

    @property
    def planted(self) -> int:
        return sum(entry.outcome != Verdict.LEFT_OUT.value for entry in self.mutants)

    @property
    def passed(self) -> bool:
        return all(entry.passed for entry in self.entries) and self.killed == self.planted

    @property
    def statements(self) -> int:
        """random statements that were made"""
        return sum(finding.trials > 0 for entry in self.entries for finding in entry.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "level": self.settings.level,
            "level_of_each_statement": self.effort.level,
            "random_statements": self.statements,
            "draws": self.effort.draws,
            "runs": self.effort.runs,
            "quick": self.settings.quick,
            "seconds": round(self.seconds, 1),
            "machine": machine(),
            "checks": [
                {
                    "name": entry.name,
                    "kind": entry.kind.value,
                    "seconds": round(entry.seconds, 2),
                    "findings": [finding.as_json() for finding in entry.findings],
                }
                for entry in self.entries
            ],
            "mutants": {
                "planted": self.planted,
                "killed": self.killed,
                "each": [asdict(entry) | {"seconds": round(entry.seconds, 2)} for entry in self.mutants],
            },
            "cannot_see": list(plan.CANNOT_SEE),
        }


def machine() -> str:
    """What the audit ran on, without names."""
    system = f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores"
    return f"{system}; Python {platform.python_version()}, NumPy {np.__version__}, searchblend {version('searchblend')}"


def selected(settings: Settings) -> tuple[list[Audited], list[Mutant]]:
    """The checks and faults that were asked for; a part of a name that fits nothing is a mistake."""
    if settings.method is not None:
        if settings.quick or settings.only or settings.without:
            raise UsageError("--method: not with --quick, --only or --without; of such a method there is one audit")
        return list(plan.checks_of(settings.method)), []
    checks = [check for check in plan.CHECKS if check.quick or not settings.quick]
    mutants = [mutant for mutant in MUTANTS if mutant.quick or not settings.quick]
    if not settings.only:
        return checks, mutants
    for part in settings.only:
        if not any(part in name for name in _names()):
            raise UsageError(f"--only: {part}: no check and no mutant has that in its name; see --list")
    return (
        [check for check in plan.CHECKS if any(part in check.name for part in settings.only)],
        [mutant for mutant in MUTANTS if any(part in _MUTANT + mutant.name for part in settings.only)],
    )


def _names() -> list[str]:
    return [check.name for check in plan.CHECKS] + [_MUTANT + mutant.name for mutant in MUTANTS]


def run_audit(settings: Settings, on_progress: OnProgress = lambda done, total, name: None) -> AuditReport:
    """All checks that were asked for, the longest first, in at most ``workers`` processes beside this one."""
    started = time.perf_counter()
    checks, mutants = selected(settings)
    effort = plan.effort(quick=settings.quick, samples=settings.samples, level=settings.level)
    jobs: list[tuple[float, str]] = [(c.cost, c.name) for c in checks if c.needs not in settings.without or not c.needs]
    jobs += [(m.cost, _MUTANT + m.name) for m in mutants if m.needs not in settings.without or not m.needs]
    found: dict[str, Entry | MutantEntry] = {}
    total, done = sum(cost for cost, _ in jobs), 0.0
    for cost, entry in _worked(sorted(jobs, reverse=True), effort, settings):
        found[(_MUTANT if isinstance(entry, MutantEntry) else "") + entry.name] = entry
        done += cost
        on_progress(done, total, entry.name)
    entries = [found.get(check.name) or _left_out(check) for check in checks]
    planted = [found.get(_MUTANT + mutant.name) or _not_planted(mutant) for mutant in mutants]
    seconds = time.perf_counter() - started
    return AuditReport(settings, effort, entries, planted, seconds)  # type: ignore[arg-type]  # by name


def _worked(
    jobs: list[tuple[float, str]], effort: Effort, settings: Settings
) -> Iterator[tuple[float, Entry | MutantEntry]]:
    """What came of each job, with its cost, as soon as it is done."""
    if sum(cost for cost, _ in jobs) < _WORTH_A_PROCESS:
        for cost, name in jobs:
            yield cost, _work(name, effort, settings.level, settings.method)
        return
    with WorkerPool(settings.workers) as pool:
        costs = {pool.submit(_work, name, effort, settings.level, settings.method): cost for cost, name in jobs}
        for future in as_completed(costs):
            yield costs[future], future.result()


def _work(name: str, effort: Effort, level: float, method: str | None) -> Entry | MutantEntry:
    """One job, in a worker if that is worth it."""
    if name.startswith(_MUTANT):
        mutant = next(mutant for mutant in MUTANTS if _MUTANT + mutant.name == name)
        return try_mutant(mutant, plan.mutant_effort(level))
    return do_check(next(check for check in plan.checks_of(method) if check.name == name), effort)


def do_check(audited: Audited, effort: Effort) -> Entry:
    started = time.perf_counter()
    try:
        findings = list(audited.check(effort))
    except Absent as absent:
        findings = [Finding(audited.name, Verdict.NOT_AUDITED, f"NOT AUDITED: {absent}")]
    except Exception as error:
        findings = [
            Finding(audited.name, Verdict.BROKEN, f"the check ended with {type(error).__name__}: {error}"[:300])
        ]
    return Entry(audited.name, audited.kind, findings, time.perf_counter() - started)


def try_mutant(mutant: Mutant, effort: Effort) -> MutantEntry:
    """Plant the fault, run its check, take the fault out. Only a refuted claim kills: an error does not count."""
    started = time.perf_counter()
    entry = MutantEntry(mutant.name, mutant.fault, mutant.seen_by, "SURVIVED", "", 0.0)
    try:
        with mutant.plant(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            findings = mutant.check(effort)
    except Absent as absent:
        entry = replace(entry, outcome=Verdict.NOT_AUDITED.value, detail=str(absent))
    except Exception as error:
        entry = replace(entry, outcome=Verdict.BROKEN.value, detail=f"{type(error).__name__}: {error}"[:300])
    else:
        refuted = [finding for finding in findings if finding.verdict is Verdict.REFUTED]
        if refuted:
            entry = replace(entry, outcome="killed", detail=f"{refuted[0].subject}: {refuted[0].detail}")
    return replace(entry, seconds=time.perf_counter() - started)


def _left_out(check: Audited) -> Entry:
    return Entry(check.name, check.kind, [Finding(check.name, Verdict.LEFT_OUT, f"--without {check.needs}")], 0.0)


def _not_planted(mutant: Mutant) -> MutantEntry:
    outcome = Verdict.LEFT_OUT.value
    return MutantEntry(mutant.name, mutant.fault, mutant.seen_by, outcome, f"--without {mutant.needs}", 0.0)
