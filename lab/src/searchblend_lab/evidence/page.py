"""An audit as a page: Markdown for the documentation, and one self-contained HTML file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from searchblend.pages.layout import Cell, PageTable, TableColumn, page_assets, render
from searchblend_lab.evidence.evidence import Finding, Kind
from searchblend_lab.evidence.plan import CANNOT_SEE, STATEMENTS
from searchblend_lab.evidence.run import AuditReport, machine

COLUMNS: Final = ("what", "neighbours", "claimed ε", "δ", "measured", "resolution", "verdict", "how")
MUTANT_COLUMNS: Final = ("planted fault", "kind of fault", "seen by", "outcome", "what was seen")
_NUMBERS: Final = ("claimed ε", "δ", "measured", "resolution")
_VERDICTS: Final = ("verdict", "outcome")


def number(value: float | None) -> str:
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "none"
    return f"{value:.3g}" if abs(value) < 1e-3 and value else f"{value:.2f}"


def delta(value: float | None) -> str:
    return "–" if value is None else (f"{value:.2g}" if value else "0")


def row_of(finding: Finding) -> tuple[str, ...]:
    """What a table shows of one finding. A bound below 0 says nothing: "none"."""
    claim = finding.claim
    measured = finding.measured
    shown = "none" if measured is not None and finding.resolution is not None and measured <= 0 else number(measured)
    return (
        finding.subject,
        claim.neighbours if claim else "–",
        number(claim.epsilon) if claim else "–",
        delta(claim.delta) if claim else "–",
        shown,
        number(finding.resolution),
        finding.verdict.value,
        finding.detail,
    )


def summary(report: AuditReport) -> list[str]:
    findings = [finding for entry in report.entries for finding in entry.findings]
    good = sum(finding.verdict.is_good for finding in findings)
    verdict = "All verdicts hold." if report.passed else "NOT ALL VERDICTS HOLD."
    effort = report.effort
    return [
        f"{verdict} {good} of {len(findings)} findings hold; "
        f"{report.killed} of {report.planted} planted faults were seen.",
        f"The chance that this audit refutes anything that is true is at most {report.settings.level:g}: it is shared "
        f"by at most {STATEMENTS} random statements, {effort.level:.2g} each. {effort.draws:,} draws of a mechanism "
        f"and {effort.runs:,} runs of a pipeline on each side, twice: an event is chosen on one sample and bounded "
        "on a fresh one.",
        f"{report.seconds / 60:.1f} minutes in {report.settings.workers} processes. {machine()}.",
    ]


def sections(report: AuditReport) -> Iterator[tuple[str, Sequence[tuple[str, ...]]]]:
    """The tables of the audit, one for each kind of evidence."""
    for kind in Kind:
        rows = [row_of(f) for entry in report.entries if entry.kind is kind for f in entry.findings]
        if rows:
            yield kind.value, rows


def mutant_rows(report: AuditReport) -> list[tuple[str, ...]]:
    return [(m.name, m.fault, m.seen_by, m.outcome, m.detail) for m in report.mutants]


# --- Markdown --------------------------------------------------------------------------------------------------------


def markdown(report: AuditReport, command: str) -> str:
    parts = ["# Audit", "", f"Written by `{command}`; [how to read it](../how-to/audit.md).", ""]
    for line in summary(report):
        parts += [line, ""]
    for title, rows in sections(report):
        parts += [f"## {title[0].upper()}{title[1:]}", "", *_markdown_table(COLUMNS, rows), ""]
    if report.mutants:
        parts += [f"## Planted faults: {report.killed} of {report.planted} seen", ""]
        parts += [*_markdown_table(MUTANT_COLUMNS, mutant_rows(report)), ""]
    parts += ["## What this audit cannot see", "", *(f"- {line}" for line in CANNOT_SEE), ""]
    return "\n".join(parts)


def _markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return lines + [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]


# --- HTML ------------------------------------------------------------------------------------------------------------


def page(report: AuditReport, command: str) -> str:
    tables = [(title[0].upper() + title[1:], _table(title, COLUMNS, rows)) for title, rows in sections(report)]
    if report.mutants:
        heading = f"Planted faults: {report.killed} of {report.planted} seen"
        tables.append((heading, _table("planted faults", MUTANT_COLUMNS, mutant_rows(report))))
    return render(
        "audit.html",
        Path(__file__).parent / "templates",
        title="searchblend audit",
        assets=page_assets(),
        command=command,
        tone=_tone(report.passed),
        summary=summary(report),
        tables=tables,
        cannot_see=CANNOT_SEE,
    )


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> PageTable:
    cells = [[_cell(column, text) for column, text in zip(columns, row, strict=True)] for row in rows]
    headings = [TableColumn(column, column in _NUMBERS) for column in columns]
    return PageTable(title, headings, cells, title.split()[0].strip(":"))


def _cell(column: str, text: str) -> Cell:
    if column in _NUMBERS:
        return Cell(text, _sorted_by(text))
    if column not in _VERDICTS:
        return Cell(text)
    return Cell(text, tone=_tone(text in ("holds", "killed") or text.startswith(("refuted, as", "left out"))))


def _sorted_by(text: str) -> float:
    """A number as it is shown; what is none comes before all."""
    try:
        return float(text.replace("∞", "inf"))
    except ValueError:
        return -1.0


def _tone(good: bool) -> str:
    return "yes" if good else "no"
