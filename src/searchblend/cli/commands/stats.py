"""``searchblend stats``: what a log holds, counted exactly. Not private."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from searchblend.cli.log_options import STANDARD_INPUT, add_log, read_options, with_standard_input
from searchblend.cli.printing import new_table, print_json, print_line, print_table, run_progress, warn

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLES = """\
examples:
  searchblend stats searches.tsv                      size, users, queries, URLs, records, malformed lines
  searchblend stats 'aol/user-ct-*.gz' --json         ten files as one log
  searchblend stats train.gz --format yandex --memory 2GB
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_log(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


def run(options: argparse.Namespace) -> None:
    from searchblend.logs.read import open_log
    from searchblend.logs.tables.urls import shown_log
    from searchblend.wire.release import NOT_FOR_RELEASE

    with with_standard_input(read_options(options)) as reading, run_progress() as (on_progress, on_step):
        opened = open_log(
            replace(reading, keep_lines=True), on_progress=on_progress, on_notice=lambda text: warn(text, "dim")
        )
        with opened as log:
            on_step("counting")
            figures = asdict(log.statistics())
            summary = log.summary.as_json()
    if options.json:
        figures["malformed_by_reason"] = summary.pop("malformed")
        print_json({"notice": NOT_FOR_RELEASE, **summary, **figures})
        return
    name = "standard input" if options.log == STANDARD_INPUT else shown_log(options.log)
    print_table(_figures_table(f"{name} ({summary['format']})", figures))
    print_line(NOT_FOR_RELEASE, style="bold red")


def _figures_table(title: str, figures: Mapping[str, int]) -> Table:
    rows = [(name, f"{value:,}") for name, value in figures.items()]
    return new_table(title, ("figure", "count"), rows, words=("figure",))
