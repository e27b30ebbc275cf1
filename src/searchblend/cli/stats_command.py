"""``searchblend stats``: what a log holds, counted exactly. Not private."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace

from searchblend.cli.log_options import read_options
from searchblend.cli.progress import run_progress
from searchblend.cli.tables import new_table, output, say, warn
from searchblend.logs.read import open_log
from searchblend.wire.release import NOT_FOR_RELEASE


def run(options: argparse.Namespace) -> None:
    with run_progress() as (on_progress, on_step):
        reading = replace(read_options(options), keep_lines=True)
        opened = open_log(reading, on_progress=on_progress, on_notice=lambda text: warn(text, "dim"))
        with opened as log:
            on_step("counting")
            figures = asdict(log.statistics())
            summary = log.summary.as_json()
    if options.json:
        figures["malformed_by_reason"] = summary.pop("malformed")
        output.file.write(json.dumps({"notice": NOT_FOR_RELEASE, **summary, **figures}, ensure_ascii=False, indent=2))
        output.file.write("\n")
        return
    table = new_table(f"{options.log} ({summary['format']})")
    table.add_column("figure")
    table.add_column("count", justify="right")
    for name, value in figures.items():
        table.add_row(name, f"{value:,}")
    output.print(table)
    say(NOT_FOR_RELEASE, style="bold red")
