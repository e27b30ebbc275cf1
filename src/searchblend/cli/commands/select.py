"""``searchblend select``: parse, select, print."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from searchblend.cli.arguments import add_budget
from searchblend.cli.commands.run import malformed_warnings, now
from searchblend.cli.log_options import (
    add_output,
    add_release_options,
    add_table,
    ledger_entry,
    remembered,
    require_output,
    summary_file,
    table_options,
)
from searchblend.cli.printing import new_table, print_json, print_line, print_table, step_progress, warn
from searchblend.cli.standard_input import with_standard_input
from searchblend.core.documents import encode
from searchblend.core.privacy import Budget

if TYPE_CHECKING:
    from rich.table import Table

    from searchblend.wire.selection import Selection

EXAMPLES = """\
examples:
  searchblend select installed.parquet -o out --columns user=person,value=app
  searchblend select visits.csv -o out --epsilon 2 --delta 1e-7
  searchblend select 'aol/user-ct-*.gz' -o out                  the queries of AOL's collection, as they were typed
  searchblend select visits.csv -o out --ledger budget.ledger --release-id march
  searchblend select visits.csv --dry-run                       from how many users on a value is named; reads nothing
"""
_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_table(parser)
    add_output(parser, needed="needed but for --dry-run", page=False)
    add_budget(parser)
    parser.add_argument("--allow-large-delta", action="store_true", help="accept δ ≥ 1/users")
    add_release_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would be promised; read nothing")
    parser.add_argument("--json", action="store_true", help="print the selection as one JSON document")


def run(options: argparse.Namespace) -> None:
    from searchblend.releases.selection import SelectionSettings, run_selection

    budget = Budget(options.epsilon, options.delta)
    if options.dry_run:
        _show_dry_run(budget, as_json=options.json)
        return
    settings = SelectionSettings(
        table=table_options(options),
        budget=budget,
        output=require_output(options, instead="--dry-run"),
        replace=options.force,
        allow_large_delta=options.allow_large_delta,
        ledger=ledger_entry(options),
        created=now(),
    )
    with (
        summary_file(options.summary, settings.output, replace=options.force) as write_summary,
        remembered(options, settings.output, settings.cost, created=settings.created),
        with_standard_input(settings.table) as reading,
        step_progress() as on_step,
    ):
        result = run_selection(replace(settings, table=reading), on_step=on_step)
        write_summary(result.input_summary)
    if result.input_summary is None:
        warn("this release id was published before: the same files again, nothing was spent")
    else:
        for line in malformed_warnings(result.input_summary):
            warn(line, "bold yellow")
    if options.json:
        print_json(encode(result.released))
        return
    print_table(_values_table(result.released))
    guarantee = result.released.guarantee
    print_line(
        f"ε = {guarantee.epsilon:g}, δ = {guarantee.delta:g} for each user; "
        f"guarantee {'holds' if guarantee.holds else 'does NOT hold'}"
    )
    print_line(f"files: {settings.output}/")


def _show_dry_run(budget: Budget, *, as_json: bool) -> None:
    """From how many users on a value is named; no file is opened."""
    from searchblend.releases.select_values import selection_design

    threshold = selection_design(budget).threshold.integer
    if as_json:
        print_json({"epsilon": budget.epsilon, "delta": budget.delta, "threshold": threshold})
        return
    print_line(
        f"ε = {budget.epsilon:g}, δ = {budget.delta:g} for each user; nothing was read.\n"
        f"One value of each user is drawn; named are values that about {threshold} users or more drew."
    )


def _values_table(selection: Selection) -> Table:
    table = new_table(f"Values of at least {selection.threshold:,} users, with noise ({len(selection.values):,})")
    table.add_column("value")
    table.add_column("users", justify="right")
    for each in selection.values[:_SHOWN]:
        table.add_row(each.value, f"{each.count:,}")
    return table
