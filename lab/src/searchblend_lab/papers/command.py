"""``searchblend evaluate``: the papers' figures, reproduced and extended."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from searchblend.cli.log_options import read_options
from searchblend.cli.printing import messages, new_table, print_json, print_line, print_table, run_progress, warn
from searchblend.core.errors import UsageError
from searchblend.core.statement import PAGE
from searchblend.core.visible import visible
from searchblend.logs.duckdb.activity import DuckDBActivity
from searchblend.logs.formats.layout import UTF_8
from searchblend.logs.read import open_log
from searchblend.logs.tables.urls import shown_log
from searchblend_lab.papers.algorithms import load_algorithm
from searchblend_lab.papers.cells import OF_ROWS, OF_SEARCHES
from searchblend_lab.papers.comparisons.real_logs import EPSILONS, OPTIN, RealLog, measure_logs
from searchblend_lab.papers.evaluate import CELLS_FILE, Evaluated, evaluate, people_of, rows_of
from searchblend_lab.papers.experiment import Experiment, Request, Table
from searchblend_lab.papers.heeding import without_effect
from searchblend_lab.papers.outputs import document, findings_table
from searchblend_lab.papers.page import INDEX
from searchblend_lab.papers.people import LogPeople, Searches, make_known
from searchblend_lab.papers.registry import ALL, EXPERIMENTS, experiments_named

_WORTH_WORKERS: Final = 4.0
"""about the seconds of work from which worker processes save time"""
_OF_LOGS: Final = (
    *("epsilons", "delta", "opt_in", "opt_in_column"),
    *("format", "columns", "delimiter", "no_urls", "quoted_line_feeds", "encoding", "host_only", "strict"),
)


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
    _check_real(options)
    reading = _reading(options)
    log = _log_people(options, experiments) if options.log else None
    request = Request(
        seed=options.seed,
        quick=options.quick,
        runs=options.runs,
        people=log.name if log else options.profile,
        algorithm=options.algorithm,
        logs=_real_logs(options) if options.logs else (),
        source=options.source or "",
        reading=reading,
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
        documents = [document(e.experiment, e.outcome, request) for e in evaluated]
        print_json(documents)
        return
    for entry in evaluated:
        _show(entry)
    print_line(f"Everything is in {options.output}, start with {PAGE if options.html else INDEX}.")


def _reading(options: argparse.Namespace) -> str:
    """The options that change what is read of logs or compared on them, as they are typed."""
    words: list[str] = []
    for name in _OF_LOGS:
        value = getattr(options, name)
        if isinstance(value, tuple):
            value = ",".join(f"{one:g}" for one in value)
        elif isinstance(value, dict):
            value = ",".join(f"{role}={column}" for role, column in value.items())
        if value and value not in ("auto", UTF_8):
            flag = f"--{name.replace('_', '-')}"
            words.append(flag if value is True else shlex.join([flag, str(value)]))
    if words and not (options.log or options.logs):
        raise UsageError(f"{words[0].split()[0]}: only with --log or --logs; it says how a log is read")
    return " ".join(words)


def _workers(experiments: Sequence[Experiment], request: Request) -> int:
    """As many as there are cores, unless they need longer to start than the work takes here."""
    cost = sum(cell.cost for cell in {cell for experiment in experiments for cell in experiment.cells(request)})
    return 1 if cost < _WORTH_WORKERS else os.cpu_count() or 1


def _heeding(experiments: list[Experiment], request: Request, *, everything: bool) -> list[Experiment]:
    """The experiments, if every option means something to each. Of all, those to which people and algorithm do."""
    if not request.logs:  # only of all: named alone, it was refused
        experiments = [experiment for experiment in experiments if experiment is not EXPERIMENTS["real"]]
    ignored = {experiment.name: without_effect(experiment, request) for experiment in experiments}
    if not everything:
        for name, options in ignored.items():
            if options:
                raise UsageError(f"{name}: " + "; ".join(f"{option}: {why}" for option, why in options.items()))
        return experiments
    deaf = [name for name, options in ignored.items() if {"--log", "--logs", "--profile", "--algorithm"} & set(options)]
    if deaf:
        warn(f"left out, because they are not about these people or algorithms: {', '.join(deaf)}")
    return [experiment for experiment in experiments if experiment.name not in deaf]


def _list(options: argparse.Namespace) -> None:
    if len(options.names) > 1:
        raise UsageError("list: expected alone; it names the experiments")
    if options.json:
        listed = [
            {"name": e.name, "title": e.title, "source": e.source, "about": e.about} for e in EXPERIMENTS.values()
        ]
        print_json(listed)
        return
    for experiment in EXPERIMENTS.values():
        print_table(Text(experiment.name, style="bold"), Text(f"({experiment.source})", style="dim"))
        print_line(f"  {experiment.title}. {experiment.about}")


def _log_people(options: argparse.Namespace, experiments: Sequence[Experiment]) -> LogPeople:
    """One random record of each user of the log, drawn by the seed; for experiments about weeks all searches."""
    warn("NOT PRIVATE: an evaluation compares with the log itself; keep what it writes.")
    key = hashlib.sha256(f"evaluate {options.seed}".encode()).digest()[:16]
    reading = replace(read_options(options), rows=False, key=key)
    searches = None
    kinds = {cell.kind for experiment in experiments for cell in experiment.cells(Request(quick=True))}
    if kinds & OF_SEARCHES:
        with run_progress() as (on_progress, _), open_log(replace(reading, draws=0), on_progress=on_progress) as log:
            activity = log.activity()
            assert isinstance(activity, DuckDBActivity)
            user, query, moment = activity.numbered_searches()
            searches = Searches(user, query, np.ma.filled(moment.astype(np.float64), np.nan))
    reading = replace(reading, rows=bool(kinds & OF_ROWS))
    with run_progress() as (on_progress, _), open_log(reading, on_progress=on_progress) as log:
        groups = log.split(optin_fraction=0.5)
        label = Path(shown_log(str(options.log))).name
        people = people_of(label, groups, searches, rows_of(groups) if reading.rows else None)
    make_known(people)
    return people


def _check_real(options: argparse.Namespace) -> None:
    """The comparison on real logs needs them, and they mean nothing without it."""
    if not options.logs and "real" in options.names:
        raise UsageError("real: --logs FILE…: expected the logs to compare on")
    for name in ("epsilons", "delta", "opt_in", "opt_in_column", "source"):
        if not options.logs and getattr(options, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')}: only with --logs")


def _real_logs(options: argparse.Namespace) -> tuple[RealLog, ...]:
    warn("NOT PRIVATE: an evaluation compares with the logs themselves; keep what it writes.")
    with run_progress() as (on_progress, _):
        return measure_logs(
            options.logs,
            read_options(options, optin_column=options.opt_in_column),
            epsilons=options.epsilons or EPSILONS,
            delta=options.delta,
            optin=None if options.opt_in_column else options.opt_in or OPTIN,
            on_progress=on_progress,
        )


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
