"""An audit as a page: Markdown for the documentation, and one self-contained HTML file."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from typing import Final

from searchblend.audit.evidence import Finding, Kind
from searchblend.audit.plan import CANNOT_SEE, STATEMENTS
from searchblend.audit.run import AuditReport, machine

COLUMNS: Final = ("what", "neighbours", "claimed ε", "δ", "measured", "resolution", "verdict", "how")
MUTANT_COLUMNS: Final = ("planted fault", "kind of fault", "seen by", "outcome", "what was seen")
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --bad: #c0262d; --good: #1a7f4b; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .3rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
th { background: var(--soft); white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bad { color: var(--bad); font-weight: 700; } .good { color: var(--good); }
@media (prefers-color-scheme: dark) { :root { --bad: #ff7b80; --good: #5dd39e; } }
"""


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
    body = [f"<h1>Audit</h1><p>Written by <code>{html.escape(command)}</code>.</p>"]
    body += [
        f"<p{_class(report.passed) if not i else ''}>{html.escape(line)}</p>" for i, line in enumerate(summary(report))
    ]
    for title, rows in sections(report):
        body.append(f"<h2>{html.escape(title[0].upper() + title[1:])}</h2>{_html_table(COLUMNS, rows)}")
    if report.mutants:
        body.append(f"<h2>Planted faults: {report.killed} of {report.planted} seen</h2>")
        body.append(_html_table(MUTANT_COLUMNS, mutant_rows(report)))
    cannot = "".join(f"<li>{html.escape(line)}</li>" for line in CANNOT_SEE)
    body.append(f"<h2>What this audit cannot see</h2><ul>{cannot}</ul>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>searchblend audit</title><style>{_STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _class(good: bool) -> str:
    return ' class="good"' if good else ' class="bad"'


def _html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in columns)
    cells = ("".join(_cell(name, cell) for name, cell in zip(columns, row, strict=True)) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(column: str, text: str) -> str:
    if column in ("verdict", "outcome"):
        good = text in ("holds", "killed") or text.startswith(("refuted, as", "left out"))
        return f"<td{_class(good)}>{html.escape(text)}</td>"
    kind = ' class="number"' if column in ("claimed ε", "δ", "measured", "resolution") else ""
    return f"<td{kind}>{html.escape(text)}</td>"
