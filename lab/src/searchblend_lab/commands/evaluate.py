"""``searchblend evaluate``: its arguments. Light: the experiments are loaded when it runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from searchblend.cli.arguments import positive_int
from searchblend.cli.log_options import add_reading

EXAMPLES = """\
examples:
  searchblend evaluate list                                   every experiment, with what it varies and measures
  searchblend evaluate fig9 fig12 -o results                  two figures of the paper, full size
  searchblend evaluate all --quick --html -o results          everything, few runs, and one page with all of it
  searchblend evaluate fig13 --log searches.tsv -o results    with the people of your own log (NOT PRIVATE)
  searchblend evaluate fig14 --algorithm my.module:MyBlend -o results    your own beside paper and best
"""


def run(options: argparse.Namespace) -> None:
    from searchblend_lab.papers.command import run_evaluate

    run_evaluate(options)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="experiments, all, or list")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="folder for plots, data and pages; an interrupted evaluation goes on",
    )
    people = parser.add_mutually_exclusive_group()
    people.add_argument("--profile", choices=["aol", "yandex"], help="these synthetic people in every experiment")
    people.add_argument("--log", metavar="LOG", help="the people of this log; what is written is NOT PRIVATE")
    add_reading(parser)
    parser.add_argument("--runs", type=positive_int, metavar="N", help="runs of every setting (each experiment's own)")
    parser.add_argument("--quick", action="store_true", help="few runs and fewer points: minutes instead of an hour")
    parser.add_argument("--seed", type=positive_int, default=1, help="the same seed gives the same bytes (1)")
    parser.add_argument("--algorithm", metavar="PATH", help="package.module:object, run beside paper and best")
    parser.add_argument(
        "--workers", type=positive_int, metavar="W", help="processes (as many as there are cores; one for little work)"
    )
    parser.add_argument("--html", action="store_true", help="one self-contained page with everything in DIR")
    parser.add_argument("--json", action="store_true", help="print what was found as one JSON document")
