"""``searchblend demo``: a made-up log, a private run on it, and what it looks like."""

from __future__ import annotations

import argparse
import time

from searchblend.cli.run_command import now, run_and_warn, show_result
from searchblend.cli.tables import messages, say
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.logs.options import ReadOptions
from searchblend.releases.hybrid import HybridSettings
from searchblend.synthetic.made_log import write_aol_like_log


def run(options: argparse.Namespace) -> None:
    started = time.perf_counter()
    params = BlenderParams(Budget(options.epsilon, options.delta))
    log = options.output / "log.tsv"
    with messages.status(f"making a log of {options.users:,} people"):
        write_aol_like_log(log, options.users, seed=options.seed)
    settings = HybridSettings(
        log=ReadOptions(log),
        params=params,
        optin_fraction=options.opt_in,
        method=options.method,
        output=options.output / "release",
        replace=True,
        created=now(),
    )
    result = run_and_warn(settings, SystemRandomness(), evaluate=True)
    show_result(result, settings, as_json=options.json, limit=10)
    if not options.json:
        say(f"\n{options.users:,} made-up people in {log}; done in {time.perf_counter() - started:.1f} s.")
        say("Your own log next:  searchblend run YOUR_LOG.tsv -o out   (columns user, query, url; see --help)")
