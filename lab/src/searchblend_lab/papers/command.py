"""``searchblend evaluate``: the papers' figures, reproduced and extended."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from searchblend.cli.printing import messages, new_table, print_json, print_line, print_table, run_progress, warn
from searchblend.core.errors import UsageError
from searchblend.core.statement import PAGE
from searchblend.core.visible import visible
from searchblend.logs.duckdb.activity import DuckDBActivity
from searchblend.logs.options import ReadOptions
from searchblend.logs.read import open_log
from searchblend.logs.tables.urls import shown_log
from searchblend_lab.papers.algorithms import load_algorithm
from searchblend_lab.papers.clickgraph.week import WEEK
from searchblend_lab.papers.evaluate import CELLS_FILE, Evaluated, evaluate, people_of
from searchblend_lab.papers.experiment import Experiment, Request, Table, without_effect
from searchblend_lab.papers.outputs import document, findings_table
from searchblend_lab.papers.page import INDEX
from searchblend_lab.papers.people import LogPeople, make_known
from searchblend_lab.papers.registry import ALL, EXPERIMENTS, experiments_named

_WORTH_WORKERS: Final = 4.0
"""about the seconds of work from which worker processes save time"""


def run_evaluate(options: argparse.Namespace) -> None:
    if "list" in options.names:
        _list(options)
        return
    if options.output is None:
        raise UsageError("-o: expected a folder for what is found")
    if options.output.exists() and not options.output.is_dir():
        raise UsageError(f"{options.output}: exists and is not a folder")
    if options.algorithm:
        load_algorithm(options.algorithm)
    experiments = experiments_named(options.names)
    log = _log_people(options, experiments) if options.log else None
    request = Request(
        seed=options.seed,
        quick=options.quick,
        runs=options.runs,
        people=log.name if log else options.profile,
        algorithm=options.algorithm,
    )
    experiments = _heeding(experiments, request, everything=ALL in options.names)
    with _progress(options.output) as on_cost:
        evaluated = evaluate(
            experiments,
            request,
            options.output,
            workers=options.workers or _workers(experiments, request),
            people=[log] if log else [],
            html=options.html,
            on_cost=on_cost,
        )
    if options.json:
        found = [document(e.experiment, e.outcome, request) for e in evaluated]
        print_json(found)
        return
    for entry in evaluated:
        _show(entry)
    print_line(f"Everything is in {options.output}, start with {PAGE if options.html else INDEX}.")


def _workers(experiments: Sequence[Experiment], request: Request) -> int:
    """As many as there are cores, unless they need longer to start than the work takes here."""
    cost = sum(cell.cost for cell in {cell for experiment in experiments for cell in experiment.cells(request)})
    return 1 if cost < _WORTH_WORKERS else os.cpu_count() or 1


def _heeding(experiments: list[Experiment], request: Request, *, everything: bool) -> list[Experiment]:
    """The experiments, if every option says something to each. Of all, those to which people and algorithm do."""
    ignored = {experiment.name: without_effect(experiment, request) for experiment in experiments}
    if not everything:
        for name, options in ignored.items():
            if options:
                raise UsageError(f"{name}: {', '.join(options)}: has no effect on this experiment")
        return experiments
    deaf = [name for name, options in ignored.items() if {"--log", "--profile", "--algorithm"} & set(options)]
    if deaf:
        warn(f"left out, because they are not about these people or algorithms: {', '.join(deaf)}")
    return [experiment for experiment in experiments if experiment.name not in deaf]


def _list(options: argparse.Namespace) -> None:
    if len(options.names) > 1:
        raise UsageError("list: expected alone; it names the experiments")
    if options.json:
        found = [{"name": e.name, "title": e.title, "source": e.source, "about": e.about} for e in EXPERIMENTS.values()]
        print_json(found)
        return
    for experiment in EXPERIMENTS.values():
        print_table(Text(experiment.name, style="bold"), Text(f"({experiment.source})", style="dim"))
        print_line(f"  {experiment.title}. {experiment.about}")


def _log_people(options: argparse.Namespace, experiments: Sequence[Experiment]) -> LogPeople:
    """One random record of each user of the log, drawn by the seed; for experiments about weeks all searches."""
    warn("NOT PRIVATE: an evaluation compares with the log itself; keep what it writes.")
    reading = ReadOptions(
        options.log,
        format=options.format,
        columns=options.columns,
        delimiter=options.delimiter,
        urls=not options.no_urls,
        quoted_line_feeds=options.quoted_line_feeds,
        encoding=options.encoding,
        rows=False,
        key=hashlib.sha256(f"evaluate {options.seed}".encode()).digest()[:16],
    )
    searches = None
    if any(cell.kind == WEEK for experiment in experiments for cell in experiment.cells(Request(quick=True))):
        with run_progress() as (on_progress, _), open_log(replace(reading, draws=0), on_progress=on_progress) as log:
            activity = log.activity()
            assert isinstance(activity, DuckDBActivity)
            user, query = activity.numbered_searches()
            searches = user, query
    with run_progress() as (on_progress, _), open_log(reading, on_progress=on_progress) as log:
        found = people_of(Path(shown_log(str(options.log))).name, log.split(optin_fraction=0.5), searches)
    make_known(found)
    return found


@contextlib.contextmanager
def _progress(folder: Path) -> Iterator[Callable[[float, float], None]]:
    """A bar with the time left; an interrupt says that nothing is lost."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages(), transient=True, disable=not messages().is_terminal) as progress:
        task = progress.add_task("runs", total=None)
        try:
            yield lambda done, total: progress.update(task, completed=done, total=total)
        except KeyboardInterrupt:
            warn(f"finished runs are kept in {folder / CELLS_FILE}: the same command goes on from there")
            raise


def _show(entry: Evaluated) -> None:
    print_line("")
    print_table(Text(entry.experiment.title, style="bold"), Text(f"({entry.experiment.source})", style="dim"))
    print_line(entry.outcome.text)
    for table in entry.outcome.tables:
        _show_table(table)
    if entry.outcome.findings and not entry.outcome.printed:
        _show_table(findings_table(entry.outcome.findings))
    for line in entry.outcome.printed:
        print_line(line)
    print_line(f"files: {entry.files[0].with_suffix('')}.[png|svg|csv|parquet|json|md]")


def _show_table(table: Table) -> None:
    shown = new_table(escape(table.title))
    for column in table.columns:
        shown.add_column(column.replace("`", ""))
    for row in table.rows:
        shown.add_row(*(Text(visible(cell), style="bold red" if cell.endswith("▲") else "") for cell in row))
    print_table(shown)
