"""``searchblend audit``: its arguments. Light: the checks are loaded when it runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from searchblend.cli.arguments import positive_int, share

EXAMPLES = """\
examples:
  searchblend audit --quick                        the fastest checks and mutants, about half a minute
  searchblend audit                                everything, also the service, Node and Spark: minutes
  searchblend audit --only boundary,sensitivity    checks with one of these in their names
  searchblend audit --only 'mutant: local'         planted faults of the local report
  searchblend audit --without spark --html audit.html
  searchblend audit --method my_steps:MySteps      whole runs of a method of your own, against what it promises
  searchblend audit --list                         every check and every planted fault
  searchblend audit --samples 400000 --json        more draws, as one JSON document
"""


def run(options: argparse.Namespace) -> None:
    from searchblend_lab.evidence.command import run_audit_command

    run_audit_command(options)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", type=_names, default=[], metavar="NAME,…", help="parts of the names of checks")
    parser.add_argument(
        "--method", metavar="NAME", help="attack a method from outside instead, as searchblend run --method takes it"
    )
    parser.add_argument("--quick", action="store_true", help="the fastest checks alone")
    parser.add_argument("--samples", type=_samples, metavar="N", help="draws on each side of a test (100000)")
    parser.add_argument("--level", type=share, default=1e-6, metavar="P", help="chance of a false alarm in all (1e-6)")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=["spark", "javascript", "service", "device"],
        help="leave a program out; repeatable. One that is missing here and not left out fails the audit",
    )
    parser.add_argument("--workers", type=positive_int, default=2, metavar="W", help="processes (2)")
    parser.add_argument("--list", action="store_true", help="name the checks and the planted faults; run nothing")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a self-contained page")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a page for the documentation")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _names(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    if not names:
        raise argparse.ArgumentTypeError("expected parts of names, separated by commas")
    return names


def _samples(text: str) -> int:
    if positive_int(text) < 20_000:
        raise argparse.ArgumentTypeError("expected at least 20000: with fewer the tests have no power")
    return int(text)
