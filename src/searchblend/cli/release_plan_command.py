"""``searchblend release plan``: what a release would do, from its parameters alone."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from searchblend.cli.release_command import params_of
from searchblend.cli.tables import new_table, output, say
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.core.errors import UsageError
from searchblend.releases.click_graph_plan import release_curve_figure, release_plan
from searchblend.synthetic.plan_plots import check_suffix, save


def run(options: argparse.Namespace) -> None:
    if options.plot:
        check_suffix(options.plot)
    fixed: dict[str, Any] = {"public_source": "declared in the plan"} if options.urls == "public" else {}
    if options.selection_only:
        if options.urls or options.reformulations:
            raise UsageError("--selection-only: not with --urls or --reformulations")
        fixed = {"query_noise": "reuse"} if options.algorithm in ("kkmn2009", "gaussian") else {}
    design = ClickGraphDesign.of(params_of(options, **fixed))
    document = release_plan(design, selection_only=options.selection_only)
    if options.plot:
        save(release_curve_figure(document), options.plot)
    if options.json:
        output.file.write(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
        return
    output.print(_steps_table(document))
    say(
        f"ε = {document['epsilon']:g}, δ = {document['budget_delta']:g} "
        f"(used with whole-number noise: {document['mechanism_delta']:.3g}); "
        f"a query needs about {document['threshold']:.4g} {document['unit']}"
    )
    say(
        f"published with 1 %, 50 %, 99 % probability at {', '.join(str(n) for n in document['quantiles'].values())} "
        f"{document['unit']}; {document['accounts_to_force']} accounts can force a query out"
    )
    if options.plot:
        say(f"plot: {options.plot}")


def _steps_table(document: Mapping[str, Any]) -> Table:
    table = new_table(f"Release with {document['algorithm']}: nothing was read")
    for name in ("step", "first of a user", "noise", "scale", "threshold", "95 % ±", "ε", "δ"):
        table.add_column(name, justify="left" if name in ("step", "noise") else "right")
    for step in document["steps"]:
        table.add_row(
            step["name"],
            f"{step['first']} {'different' if step['unit'] == 'users' else 'in all'}",
            step["noise"]["law"].replace("_", " "),
            f"{step['noise']['scale']:.4g}",
            "–" if step["threshold"] is None else str(step["threshold"]),
            f"{step['half_width']:.0f}",
            f"{step['epsilon']:.3g}",
            f"{step['delta']:.2g}",
        )
    return table
