"""The arguments of the lab's commands. Light on purpose: ``searchblend evaluate --help`` must be instant."""

from __future__ import annotations

import argparse
from pathlib import Path

from searchblend.cli.arguments import add_reading, positive_int, share

EVALUATE_EXAMPLES = """\
examples:
  searchblend evaluate list                                   every experiment, with what it varies and measures
  searchblend evaluate fig9 fig12 -o results                  two figures of the paper, full size
  searchblend evaluate all --quick --html -o results          everything, few runs, and one page with all of it
  searchblend evaluate fig13 --log searches.tsv -o results    with the people of your own log (NOT PRIVATE)
  searchblend evaluate fig14 --algorithm my.module:MyBlend -o results    your own beside paper and best
"""
AUDIT_EXAMPLES = """\
examples:
  searchblend audit --quick                        the fastest checks and mutants, about half a minute
  searchblend audit                                everything, also the service, Node and Spark: minutes
  searchblend audit --only boundary,sensitivity    checks with one of these in their names
  searchblend audit --only 'mutant: local'         planted faults of the local report
  searchblend audit --without spark --html audit.html
  searchblend audit --list                         every check and every planted fault
  searchblend audit --samples 400000 --json        more draws, as one JSON document
"""


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EVALUATE_EXAMPLES
    parser.add_argument("names", nargs="+", metavar="NAME", help="experiments, all, or list")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="folder for plots, data and pages; an interrupted evaluation goes on",
    )
    people = parser.add_mutually_exclusive_group()
    people.add_argument("--profile", choices=["aol", "yandex"], help="these made-up people in every experiment")
    people.add_argument("--log", metavar="LOG", help="the people of this log; what is written is NOT PRIVATE")
    add_reading(parser)
    parser.add_argument("--runs", type=positive_int, metavar="N", help="runs of every setting (each experiment's own)")
    parser.add_argument("--quick", action="store_true", help="few runs and fewer points: minutes instead of an hour")
    parser.add_argument("--seed", type=positive_int, default=1, help="the same seed gives the same bytes (1)")
    parser.add_argument("--algorithm", metavar="PATH", help="package.module:object, run beside paper and best")
    parser.add_argument("--workers", type=positive_int, metavar="W", help="processes (as many as there are cores)")
    parser.add_argument("--html", action="store_true", help="one self-contained page with everything in DIR")
    parser.add_argument("--json", action="store_true", help="print what was found as one JSON document")


def add_audit(parser: argparse.ArgumentParser) -> None:
    parser.epilog = AUDIT_EXAMPLES
    parser.add_argument("--only", type=_names, default=[], metavar="NAME,…", help="parts of the names of checks")
    parser.add_argument("--quick", action="store_true", help="the fastest checks alone")
    parser.add_argument("--samples", type=_samples, metavar="N", help="draws on each side of a test (100000)")
    parser.add_argument("--level", type=share, default=1e-6, metavar="P", help="chance of a false alarm in all (1e-6)")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=["spark", "javascript", "service", "device"],
        help="leave a program out; repeatable. A program that is not here and not left out fails the audit",
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
