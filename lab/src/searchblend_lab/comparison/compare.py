"""Releases and rules on one log: what each publishes of it, and what each tells about planted people. NOT PRIVATE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from searchblend.clickgraph.release.click_log import ClickLog
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.core.errors import UsageError
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.core.silent import SILENT
from searchblend_lab.comparison.attacks import ABOUT, CRITERION, Finding, ReleaseUnderAttack, rule_findings
from searchblend_lab.comparison.measures import (
    MEASURES,
    Figures,
    Row,
    Yardstick,
    release_row,
    rule_row,
    where_rules_publish_more,
)
from searchblend_lab.comparison.published import TrueCounts
from searchblend_lab.comparison.rules import Rule

NOTICE: Final = (
    "NOT PRIVATE: the log was read exactly, and every figure about it is exact or made with it. Not for release."
)
NOTES: Final = (
    "A release with (ε, δ) is private whatever a reader knows and whatever is published later; the figures of its runs "
    "are a simulation with seeded noise and are no release.",
    "A rule has no guarantee: what it keeps back depends on what other people searched and on what its filters were "
    "made to see. Its rows of the panel show these planted people and this attacker; they bound nothing.",
    "A reader who puts accounts of their own into a log knows what a threshold will say but for one person. Membership "
    "and inference under a rule use one account fewer than the rule asks for, and need no published count.",
    "Rules are compared by query and by pair of query and URL; cells by country or device are not, since the log is "
    "read without them.",
)


@dataclass(frozen=True)
class Settings:
    """What is compared."""

    epsilons: Sequence[float]
    delta: float
    algorithms: Sequence[str]
    rules: Sequence[Rule]
    queries_per_user: int = 20
    clicks_per_user: int = 20
    population: int | None = None
    allow_large_delta: bool = False
    runs: int = 3
    attack_runs: int = 1000
    seed: int = 1

    def designs(self, *, urls: bool) -> dict[str, ClickGraphDesign]:
        """One release for each algorithm and ε, by its name."""
        return {
            f"{algorithm}, ε = {epsilon:g}": ClickGraphDesign.of(
                ClickGraphParams(
                    Budget(epsilon, self.delta),
                    population=self.population,
                    algorithm=algorithm,
                    max_queries_per_user=self.queries_per_user,
                    max_clicks_per_user=self.clicks_per_user,
                    urls="private" if urls else "none",
                    allow_large_delta=self.allow_large_delta,
                )
            )
            for algorithm in self.algorithms
            for epsilon in self.epsilons
        }


@dataclass(frozen=True)
class Comparison:
    """Everything that is shown."""

    settings: Settings
    log: Figures
    rows: Sequence[Row]
    rules_ahead: Sequence[str]
    findings: Sequence[Finding]

    @property
    def holds(self) -> bool:
        """Whether no release did more than its guarantee allows."""
        return all(finding.verdict != "exceeds" for finding in self.findings)

    def document(self) -> dict[str, Any]:
        return {
            "notice": NOTICE,
            "settings": {
                "epsilon": list(self.settings.epsilons),
                "delta": self.settings.delta,
                "algorithms": list(self.settings.algorithms),
                "rules": {rule.name: rule.about for rule in self.settings.rules},
                "max_queries_per_user": self.settings.queries_per_user,
                "max_clicks_per_user": self.settings.clicks_per_user,
                "runs": self.settings.runs,
                "attack_runs": self.settings.attack_runs,
                "seed": self.settings.seed,
            },
            "measures": dict(MEASURES),
            "log": self.log,
            "published": [row_of(row) for row in self.rows],
            "rules_publish_more": list(self.rules_ahead),
            "attacks": {name: {"criterion": CRITERION[name], "about": about} for name, about in ABOUT.items()},
            "panel": [finding_of(finding) for finding in self.findings],
            "guarantees_hold": self.holds,
            "notes": list(NOTES),
        }


def row_of(row: Row) -> dict[str, Any]:
    """A row as a table has it."""
    figures: dict[str, Any] = {"name": row.name, "about": row.about, "guarantee": row.private}
    for name in MEASURES:
        figures |= {name: row.mean[name], f"{name}_least": row.least[name], f"{name}_most": row.most[name]}
    return figures


def finding_of(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.subject,
        "criterion": CRITERION[finding.attack],
        "attack": finding.attack,
        "successes": finding.successes,
        "trials": finding.trials,
        "rate": finding.rate,
        "low95": finding.low,
        "high95": finding.high,
        "exact_law": finding.law,
        "allowed": finding.allowed,
        "measured_epsilon": finding.measured_epsilon,
        "verdict": finding.verdict,
    }


def compare(log: ClickLog, settings: Settings, *, urls: bool, on_step: Callable[[str], None] = SILENT) -> Comparison:
    """Count the log, run everything on it, then attack everything on small logs of planted people."""
    designs = settings.designs(urls=urls)
    on_step("counting")
    truth = TrueCounts.of(log, urls=urls)
    if not truth.searches:
        raise UsageError("LOG: expected at least one search")
    yardstick = Yardstick(truth)
    rows, findings = [], []
    for name, design in designs.items():
        on_step(name)
        rows.append(release_row(name, design, log, yardstick, runs=settings.runs, seed=settings.seed))
        attacked = ReleaseUnderAttack(name, design, runs=settings.attack_runs, seed=settings.seed)
        findings += attacked.findings()
    for rule in settings.rules:
        on_step(rule.name)
        rows.append(rule_row(rule, yardstick))
        findings += rule_findings(rule, pages=urls)
    return Comparison(settings, yardstick.all_of_it(), rows, where_rules_publish_more(rows), findings)
