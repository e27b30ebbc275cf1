"""Verdicts of a whole audit: what fails it, what may be left out, and how it is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from searchblend.core.errors import UsageError
from searchblend_lab.evidence import plan, programs
from searchblend_lab.evidence.evidence import ONE_COUNT, Absent, Audited, Claim, Effort, Finding, Kind, Verdict
from searchblend_lab.evidence.mutants import MUTANTS
from searchblend_lab.evidence.page import markdown, page
from searchblend_lab.evidence.run import (
    AuditReport,
    Entry,
    MutantEntry,
    Settings,
    do_check,
    run_audit,
    selected,
    try_mutant,
)

EFFORT = Effort(20_000, 10, 1e-9)
HELD = Finding("noise <b>", Verdict.HOLDS, "a | b", Claim(1.0, 1e-6, ONE_COUNT), 0.9, 7.0, 100)


def report(*findings: Finding, outcome: str = "killed") -> AuditReport:
    entries = [Entry("check", Kind.SAMPLED, findings, 1.0)]
    mutants = [MutantEntry("half the noise", "noise", "exact", outcome, "seen", 1.0)]
    return AuditReport(Settings(), EFFORT, entries, mutants, 60.0)


def raising(error: Exception) -> Audited:
    def check(effort: Effort) -> list[Finding]:
        raise error

    return Audited("made up", Kind.BINARY, check)


def test_an_absent_program_is_said_loudly_and_fails():
    (found,) = do_check(raising(Absent("the Spark engine: no Java")), EFFORT).findings
    assert found.verdict is Verdict.NOT_AUDITED
    assert found.detail == "NOT AUDITED: the Spark engine: no Java"
    assert not report(found).passed


def test_a_check_that_ends_with_an_error_fails():
    (found,) = do_check(raising(ValueError("oops")), EFFORT).findings
    assert found.verdict is Verdict.BROKEN
    assert not report(found).passed


@pytest.mark.parametrize("verdict", [Verdict.REFUTED, Verdict.NO_POWER])
def test_a_refuted_claim_and_a_blind_check_fail(verdict):
    assert report(HELD).passed
    assert not report(HELD, replace(HELD, verdict=verdict)).passed


@pytest.mark.parametrize("outcome", ["SURVIVED", Verdict.BROKEN.value, Verdict.NOT_AUDITED.value])
def test_a_fault_that_is_not_seen_fails(outcome):
    assert not report(HELD, outcome=outcome).passed


def test_an_error_does_not_kill_a_mutant():
    mutant = replace(MUTANTS[0], check=raising(ValueError("oops")).check)
    assert try_mutant(mutant, EFFORT).outcome == "BROKEN"


def test_a_missing_core_is_absent(tmp_path):
    with pytest.raises(Absent, match="JavaScript core"):
        programs.audit_core(tmp_path, "node", EFFORT)


def test_selection_by_part_of_a_name():
    checks, mutants = selected(Settings(only=("boundary-edges", "mutant: JavaScript")))
    assert [check.name for check in checks] == ["boundary-edges"]
    assert mutants
    assert all("JavaScript" in mutant.name for mutant in mutants)
    with pytest.raises(UsageError, match="no check"):
        selected(Settings(only=("nonsense",)))


@pytest.mark.thorough
def test_what_is_left_out_is_named_and_does_not_fail():
    found = run_audit(Settings(only=("program-spark", "exact-choices"), without=("spark",), workers=1))
    by_name = {entry.name: entry.findings[0].verdict for entry in found.entries}
    assert by_name == {"program-spark": Verdict.LEFT_OUT, "exact-choices": Verdict.HOLDS}
    assert found.passed


def test_the_level_is_divided():
    assert plan.effort(quick=True, samples=None, level=1e-6).level == pytest.approx(1e-6 / plan.STATEMENTS)


def test_pages_name_claims_faults_and_limits_and_escape_what_they_show():
    shown = markdown(report(HELD), "searchblend audit")
    assert "| noise <b> | one count moves by one | 1.00 | 1e-06 | 0.90 | 7.00 | holds | a \\| b |" in shown
    assert "## Planted faults: 1 of 1 seen" in shown
    assert "## What this audit cannot see" in shown
    html = page(report(HELD), "searchblend audit")
    assert "noise &lt;b&gt;" in html
    assert html.count("<script") == 1  # the page's own
    assert "http:" not in html
    assert "https:" not in html
    assert "NOT ALL VERDICTS HOLD" in page(report(replace(HELD, verdict=Verdict.REFUTED)), "searchblend audit")
