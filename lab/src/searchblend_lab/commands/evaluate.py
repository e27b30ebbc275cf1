"""``searchblend evaluate``: its arguments. Light: the experiments are loaded when it runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from searchblend.cli.arguments import positive_int, share
from searchblend.cli.log_options import add_log_reading

EXAMPLES = """\
examples:
  searchblend evaluate list                                   every experiment, with what it varies and measures
  searchblend evaluate fig9 fig12 -o results                  two figures of the paper, full size
  searchblend evaluate all --quick --html -o results          everything, few runs, and one page with all of it
  searchblend evaluate fig13 --log searches.tsv -o results    with the people of your own log (NOT PRIVATE)
  searchblend evaluate real --logs a.tsv b.csv -o results     methods and click graph on real logs (NOT PRIVATE)
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
    people.add_argument("--logs", nargs="+", metavar="FILE", help="the logs that real compares on; NOT PRIVATE, too")
    parser.add_argument(
        "--epsilons", type=_epsilons, metavar="E,…", help="with --logs: privacy parameters ε to compare at (1,2,4)"
    )
    parser.add_argument(
        "--delta", type=float, metavar="D", help="with --logs: δ (1e-5, or a tenth of 1/users where that is too large)"
    )
    opt_in = parser.add_mutually_exclusive_group()
    opt_in.add_argument("--opt-in", type=share, metavar="SHARE", help="with --logs: random share that opts in (0.05)")
    opt_in.add_argument(
        "--opt-in-column", metavar="NAME", help="with --logs: a column with 1/true/yes for opt-in users"
    )
    parser.add_argument("--source", metavar="TEXT", help="with --logs: where they come from; stands on the page")
    add_log_reading(parser)
    parser.add_argument("--runs", type=positive_int, metavar="N", help="runs of every setting (each experiment's own)")
    parser.add_argument("--quick", action="store_true", help="few runs and fewer points: minutes instead of an hour")
    parser.add_argument("--seed", type=positive_int, default=1, help="the same seed gives the same bytes (1)")
    parser.add_argument("--algorithm", metavar="PATH", help="package.module:object, run beside paper and best")
    parser.add_argument(
        "--workers", type=positive_int, metavar="W", help="processes (as many as there are cores; one for little work)"
    )
    parser.add_argument("--html", action="store_true", help="one self-contained page with everything in DIR")
    parser.add_argument("--json", action="store_true", help="print what was found as one JSON document")


def _epsilons(text: str) -> tuple[float, ...]:
    try:
        epsilons = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers with commas between, found {text!r}") from None
    return tuple(dict.fromkeys(epsilons))
