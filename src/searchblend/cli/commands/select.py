"""``searchblend select``: parse, select, print."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from searchblend.cli.arguments import add_budget, positive_int
from searchblend.cli.log_options import (
    add_output,
    add_release_options,
    add_table,
    add_unit,
    ledger_entry,
    read_options,
    releasing,
    require_output,
    stated,
    warn_about_input,
)
from searchblend.cli.printing import new_table, print_json, print_line, print_table, step_progress
from searchblend.core.params import MOST_VALUES_PER_USER
from searchblend.core.privacy import NEIGHBORS, Budget

if TYPE_CHECKING:
    from searchblend.releases.saved_release import SavedRelease
    from searchblend.releases.select_values import Selection

EXAMPLES = """\
examples:
  searchblend select installed.parquet -o common --columns user=person,value=app
  searchblend select visits.csv -o common --epsilon 2 --delta 1e-7
  searchblend select 'aol/user-ct-*.gz' -o common               the queries of AOL's collection, as they were typed
  searchblend select visits.csv -o common --ledger budget.ledger --release-id march
  searchblend select visits.csv --dry-run                       from how many users on a value is named; reads nothing
"""
_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_table(parser)
    add_unit(parser)
    add_output(parser, needed="needed but for --dry-run", page=False)
    add_budget(parser)
    parser.add_argument(
        "--neighbors",
        choices=sorted(NEIGHBORS),
        default="replace-one",
        help="what may change between two inputs: one user's values, or whether one user is there (replace-one)",
    )
    parser.add_argument(
        "--values-per-user",
        type=positive_int,
        default=1,
        metavar="N",
        help=f"how many different values of a user count, up to {MOST_VALUES_PER_USER} (1)",
    )
    parser.add_argument("--allow-large-delta", action="store_true", help="accept δ ≥ 1/users")
    add_release_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would be promised; read nothing")
    parser.add_argument("--json", action="store_true", help="print the selection as one JSON document")


def run(options: argparse.Namespace) -> None:
    from searchblend.releases.make_release import now
    from searchblend.releases.select_values import Selection, run_selection

    budget, neighbors = Budget(options.epsilon, options.delta), NEIGHBORS[options.neighbors]
    selection, created = Selection(read_options(options), budget, neighbors, options.values_per_user), now()
    if options.dry_run:
        _show_dry_run(selection, as_json=options.json)
        return
    output, ledger = require_output(options, instead="--dry-run"), ledger_entry(options)
    with (
        releasing(options, selection.table, selection.cost, created=created) as (reading, write_summary),
        step_progress() as on_step,
    ):
        result = run_selection(
            replace(selection, table=reading),
            output,
            replace=options.force,
            allow_large_delta=options.allow_large_delta,
            ledger=ledger,
            created=created,
            on_step=on_step,
        )
        write_summary(result.input_summary)
    warn_about_input(result, output)
    _show(result.released, output, as_json=options.json)


def _show(released: SavedRelease, folder: Path, *, as_json: bool) -> None:
    from searchblend.wire.release import encode_statement

    values, counts = released.columns().values()
    if as_json:
        rows = [{"value": value, "count": n} for value, n in zip(values, counts, strict=True)]
        print_json({"values": rows, "statement": encode_statement(released.statement)})
        return
    title = f"Values that many users have, with noise ({len(values):,} in all)"
    shown = [(str(value), f"{n:,}") for value, n in zip(values, counts, strict=True)][:_SHOWN]
    print_table(new_table(title, ("value", "users"), shown, words=("value",)))
    print_line(stated(released.guarantee, "each user"))
    print_line(f"files: {folder}/")


def _show_dry_run(selection: Selection, *, as_json: bool) -> None:
    """From how many users on a value is named; no file is opened."""
    budget, design = selection.budget, selection.design
    if as_json:
        figures = {"threshold": design.integer, "noise_scale": design.noise.scale, "method": design.method}
        print_json({"epsilon": budget.epsilon, "delta": budget.delta, "neighbors": design.neighbors.value, **figures})
        return
    most = design.values_per_user
    values = "One value of each user is" if most == 1 else f"Up to {most} values of each user are"
    print_line(
        f"ε = {budget.epsilon:g}, δ = {budget.delta:g} for each user; nothing was read.\n"
        f"{values} drawn; named are values that about {design.integer} users or more drew. "
        f"Neighbours: {design.neighbors.value}."
    )
