"""``searchblend demo``: a synthetic log, a private run on it, and what it looks like."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Final

from searchblend.cli.arguments import add_budget, add_method, positive_int, share
from searchblend.cli.commands.run import run_and_warn, show_result
from searchblend.cli.printing import messages, print_line
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness

EXAMPLES = """\
examples:
  searchblend demo                   make a log, run on it, show the table, leave the files in out/demo
  searchblend demo --json            the same as one JSON document
  searchblend demo --epsilon 2       with less budget
"""
NEXT: Final = {
    "to publish its queries and clicks": "searchblend release run YOUR_LOG.tsv -o release --users N",
    "to try the hybrid model on it": "searchblend run YOUR_LOG.tsv -o hybrid --opt-in 0.2",
}
"""what to do after the demo → the command; neither writes where the demo did"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=Path, default=Path("out/demo"), help="where files go (out/demo)")
    parser.add_argument("--users", type=positive_int, default=50_000, help="users of the synthetic log (50000)")
    parser.add_argument("--opt-in", type=share, default=0.2, metavar="SHARE", help="share that opts in (0.2)")
    add_budget(parser)
    add_method(parser)
    parser.add_argument("--seed", type=int, default=1, help="seed of the synthetic log; the noise is never seeded (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


def run(options: argparse.Namespace) -> None:
    from searchblend.logs.options import ReadOptions
    from searchblend.releases.hybrid import HybridSettings
    from searchblend.releases.make_release import now
    from searchblend.synthetic.generator import write_aol_like_log

    started = time.perf_counter()
    params = BlenderParams(Budget(options.epsilon, options.delta))
    log = options.output / "log.tsv"
    with messages().status(f"making a log of {options.users:,} people"):
        write_aol_like_log(log, options.users, seed=options.seed)
    settings = HybridSettings(
        log=ReadOptions(log),
        params=params,
        optin_fraction=options.opt_in,
        method=options.method,
        output=options.output / "release",
        replace=True,
        allow_large_delta=True,  # of synthetic users, however few
        created=now(),
    )
    result = run_and_warn(settings, SystemRandomness(), evaluate=True)
    show_result(result.released, settings, as_json=options.json, limit=10)
    if not options.json:
        print_line(
            f"\nThe log is synthetic ({options.users:,} users, {log}), so its true shares may be shown; "
            f"done in {time.perf_counter() - started:.1f} s."
        )
        print_line("Your own log next (columns user, query, url):")
        for aim, command in NEXT.items():
            print_line(f"  {aim + ':':<34}{command}")
