"""A comparison for people: tables for a terminal, one self-contained page, and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from searchblend.core.csv_cells import write_csv
from searchblend.pages.charts import IntervalRow, Mark, interval_rows
from searchblend.pages.layout import Cell, PageTable, TableColumn, page_assets, render, small_number
from searchblend_lab.comparison.attacks import ABOUT, CRITERION, Finding
from searchblend_lab.comparison.compare import NOTES, NOTICE, Comparison, finding_of, row_of
from searchblend_lab.comparison.measures import HEADINGS, MEASURES, Row, shown
from searchblend_lab.comparison.people import KINDS

_DRAWN: Final = {"search_volume": "Share of all searches that are for published queries", "queries": "Distinct queries"}
_FINE: Final = 1e-3
SUBJECT: Final = "release or rule"
"""the first column: one attack is called name"""
Line = list[str]


def files_of(comparison: Comparison, document: bytes) -> dict[str, bytes]:
    """Page, tables and the document, by the names of their files."""
    rows = [row_of(row) for row in comparison.rows]
    findings = [finding_of(finding) for finding in comparison.findings]
    return {
        "index.html": page(comparison).encode(),
        "published.csv": write_csv(list(rows[0]), rows).encode(),
        "panel.csv": write_csv(list(findings[0]), findings).encode(),
        "comparison.json": document,
    }


def published_lines(comparison: Comparison) -> Iterator[Line]:
    """What each release or rule publishes: name, and a column for each measure."""
    yield ["the log itself", *(shown(name, comparison.log.get(name)) for name in MEASURES)]
    for row in comparison.rows:
        yield [row.name, *(shown(name, row.mean[name]) for name in MEASURES)]


def panel_columns(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(finding.attack for finding in comparison.findings))


def panel_lines(comparison: Comparison) -> Iterator[Line]:
    """How often each attack succeeds: name, and a column for each attack."""
    columns = panel_columns(comparison)
    for name in dict.fromkeys(finding.subject for finding in comparison.findings):
        mine = {finding.attack: finding for finding in comparison.findings if finding.subject == name}
        yield [name, *(rate(mine[column]) if column in mine else "–" for column in columns)]


def rate(finding: Finding) -> str:
    return f"{percent(finding.rate)}{' ▲' if finding.verdict == 'exceeds' else ''}"


def percent(value: float | None) -> str:
    """A probability for people; small ones keep two digits."""
    if value is None:
        return "–"
    return f"{100 * value:.3g} %" if value >= _FINE or value == 0 else f"{value:.2g}"


def promise(comparison: Comparison) -> str:
    if not any(row.private for row in comparison.rows):
        return "No release was compared."
    if comparison.holds:
        return "No release told more of the planted people than its law and its (ε, δ) allow."
    return "A RELEASE TOLD MORE THAN ITS GUARANTEE ALLOWS: see the rows marked with ▲."


def page(comparison: Comparison) -> str:
    """One file that needs nothing else."""
    settings = comparison.settings
    return render(
        "comparison.html",
        Path(__file__).parent / "templates",
        title="Releases and rules on one log",
        assets=page_assets(),
        notice=NOTICE,
        settings=settings,
        delta=small_number(settings.delta),
        rules=[(rule.name, rule.about) for rule in settings.rules],
        charts=[_chart(comparison.rows, name, caption) for name, caption in _DRAWN.items()],
        published=_table("published", [SUBJECT, *HEADINGS.values()], published_lines(comparison)),
        measures=[(HEADINGS[name], about) for name, about in MEASURES.items()],
        rules_ahead=comparison.rules_ahead,
        tone="yes" if comparison.holds else "no",
        promise=promise(comparison),
        panel=_table("panel", [SUBJECT, *panel_columns(comparison)], panel_lines(comparison)),
        attacks=[(name, CRITERION[name], ABOUT[name]) for name in panel_columns(comparison)],
        examples=[(kind.name, kind.session(0, "weather")) for kind in KINDS],
        findings=_findings_table(comparison.findings),
        notes=NOTES,
    )


def _chart(rows: Sequence[Row], name: str, caption: str) -> str:
    share = name == "search_volume"
    bars = [
        IntervalRow(
            row.name, row.mean[name] or 0, row.least[name] or 0, row.most[name] or 0, shown(name, row.mean[name])
        )
        for row in rows
    ]
    marks = [Mark("dot", "mean of the runs"), Mark("interval", "least to most")]
    return interval_rows(f"{caption}.", bars, marks, unit=0.01 if share else 1, suffix=" %" if share else "")


def _table(name: str, columns: Sequence[str], lines: Iterator[Line]) -> PageTable:
    rows = [[Cell(first), *(Cell(text, _number(text)) for text in others)] for first, *others in lines]
    return PageTable(name, [TableColumn(column, column != SUBJECT) for column in columns], rows, f"{name}-table")


def _number(text: str) -> float:
    """To sort by; what is none comes first."""
    try:
        value = float(text.replace(",", "").replace("%", "").replace("▲", ""))
    except ValueError:
        return -1.0
    return value / 100 if "%" in text else value


def _findings_table(findings: Sequence[Finding]) -> PageTable:
    columns = (
        SUBJECT,
        "criterion",
        "attack",
        "successes",
        "95 % interval",
        "by exact law",
        "allowed",
        "ε at least",
        "verdict",
    )
    words = (SUBJECT, "criterion", "attack", "verdict")
    return PageTable(
        "findings",
        [TableColumn(name, name not in words) for name in columns],
        [_cells(f) for f in findings],
        "findings",
    )


def _cells(finding: Finding) -> list[Cell]:
    interval = f"{percent(finding.low)} – {percent(finding.high)}" if finding.allowed is not None else "no noise"
    epsilon: Any = finding.measured_epsilon
    tone = {"holds": "yes", "exceeds": "no"}.get(finding.verdict, "")
    return [
        Cell(finding.subject),
        Cell(CRITERION[finding.attack]),
        Cell(finding.attack),
        Cell(f"{finding.successes:,} of {finding.trials:,}", finding.rate),
        Cell(interval, finding.low),
        Cell(percent(finding.law), finding.law if finding.law is not None else -1),
        Cell(percent(finding.allowed), finding.allowed if finding.allowed is not None else 2),
        Cell("–" if epsilon is None else f"{epsilon:.2f}", -1 if epsilon is None else epsilon),
        Cell(finding.verdict, tone=tone),
    ]
