"""``searchblend audit``: attack the shipped code and say what was found."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from searchblend.cli.printing import messages, new_table, print_json, print_line, print_table
from searchblend.core.errors import OutputError, RunError, UsageError
from searchblend_lab.evidence.mutants import MUTANTS
from searchblend_lab.evidence.page import COLUMNS, MUTANT_COLUMNS, markdown, mutant_rows, page, sections, summary
from searchblend_lab.evidence.plan import CANNOT_SEE, CHECKS
from searchblend_lab.evidence.run import AuditReport, Settings, run_audit

_GOOD = ("holds", "killed", "refuted, as it must be", "left out, as asked")


def run_audit_command(options: argparse.Namespace) -> None:
    if options.list:
        _list(as_json=options.json)
        return
    settings = Settings(
        only=tuple(options.only),
        quick=options.quick,
        samples=options.samples,
        level=options.level,
        without=tuple(options.without),
        workers=options.workers,
        method=options.method,
    )
    for path in (options.html, options.markdown):
        if path is not None and not path.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}")
    with _progress() as on_progress:
        report = run_audit(settings, on_progress)
    command = _command(options)
    _write(options.html, lambda: page(report, command))
    _write(options.markdown, lambda: markdown(report, command))
    if options.json:
        print_json(_finite(report.as_json()))
    else:
        _show(report)
    if not report.passed:
        raise RunError("the audit failed: see the verdicts that do not hold")


def _command(options: argparse.Namespace) -> str:
    words = ["searchblend audit"]
    words += ["--quick"] if options.quick else []
    words += [f"--method {options.method}"] if options.method else []
    words += [f"--only {','.join(options.only)}"] if options.only else []
    words += [f"--samples {options.samples}"] if options.samples else []
    return " ".join([*words, *(f"--without {name}" for name in options.without)])


def _write(path: Path | None, content: Callable[[], str]) -> None:
    if path is None:
        return
    try:
        path.write_text(content(), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}") from error


def _finite(document: Any) -> Any:
    """JSON has no infinity: such a bound is written as a text."""
    if isinstance(document, dict):
        return {name: _finite(value) for name, value in document.items()}
    if isinstance(document, list):
        return [_finite(value) for value in document]
    return str(document) if isinstance(document, float) and not math.isfinite(document) else document


def _list(*, as_json: bool) -> None:
    checks = [{"name": c.name, "kind": c.kind.value, "quick": c.quick, "needs": c.needs} for c in CHECKS]
    mutants = [{"name": m.name, "fault": m.fault, "seen_by": m.seen_by, "quick": m.quick} for m in MUTANTS]
    if as_json:
        print_json({"checks": checks, "mutants": mutants})
        return
    for check in checks:
        print_line(f"{check['name']}  ({check['kind']})")
    for mutant in mutants:
        print_line(f"mutant: {mutant['name']}  ({mutant['fault']}; must be seen by: {mutant['seen_by']})")


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[float, float, str], None]]:
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=messages(), transient=True, disable=not messages().is_terminal) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda done, total, name: progress.update(task, completed=done, total=total, description=f"done: {name}")


def _show(report: AuditReport) -> None:
    for title, rows in sections(report):
        _table(title[0].upper() + title[1:], COLUMNS[:-1], [row[:-1] for row in rows])
        for row in rows:
            if row[-2] not in _GOOD:
                print_line(f"{row[0]}: {row[-1]}", style="bold red")
    if report.mutants:
        _table("Planted faults", MUTANT_COLUMNS[:-1], [row[:-1] for row in mutant_rows(report)])
    print_line("What this audit cannot see", style="bold")
    for line in CANNOT_SEE:
        print_line(f"  – {line}")
    for i, line in enumerate(summary(report)):
        print_line(line, style=("bold green" if report.passed else "bold red") if not i else None)


def _table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    table = new_table(title)
    for column in columns:
        table.add_column(column, justify="right" if column in ("claimed ε", "δ", "measured", "resolution") else "left")
    for *cells, verdict in rows:
        table.add_row(*cells, Text(verdict, style="" if verdict in _GOOD else "bold red"))
    print_table(table)
