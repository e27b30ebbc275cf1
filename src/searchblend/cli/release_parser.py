"""The arguments of ``searchblend release``: a private query click graph, from plan to review."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from searchblend.cli.arguments import Commands, add_command, add_release_options, positive_int

RELEASE_EXAMPLES = """\
examples:
  searchblend release plan --epsilon 2.3 --delta 1e-6 --max-queries-per-user 20
  searchblend release run searches.tsv -o release --population 500000
  searchblend release verify release/
  searchblend release review release/ --terms adult.txt
"""
RUN_EXAMPLES = """\
examples:
  searchblend release run searches.tsv -o release --population 500000
  searchblend release run 'aol/user-ct-*.gz' -o release --urls private --population 650000 --epsilon 2.3
  searchblend release run searches.tsv -o release --public-urls results.csv --public-source 'results page of May'
  searchblend release run searches.tsv -o release --algorithm kkmn2009 --max-queries-per-user 5 --shares even
  searchblend release run searches.tsv -o release --reformulations --from 2006-03-01 --to 2006-04-01
  searchblend release run searches.tsv -o release --ledger budget.ledger --release-id march
"""
PLAN_EXAMPLES = """\
examples:
  searchblend release plan --population 500000                           the default at its default budget
  searchblend release plan --algorithm kkmn2009 --epsilon 2.302585 --delta 1e-5 --selection-only --json
  searchblend release plan --algorithm kkmn2009 --accounting exact --max-queries-per-user 5
  searchblend release plan --urls private --plot curve.png
"""
VERIFY_EXAMPLES = """\
examples:
  searchblend release verify release/            hashes, and (ε, δ) computed again; exit code 1 if a check fails
  searchblend release verify release/ --json
"""
REVIEW_EXAMPLES = """\
examples:
  searchblend release review release/                         what a person should look at before publishing
  searchblend release review release/ --terms adult.txt       a list of your own, one term a line
  searchblend release review release/ --head 500 --abandoned-below 0.05 --json
"""
ALGORITHMS = ("gaussian", "kkmn2009", "weighted_gaussian", "dp_sips")
PRESETS = ("select-heavy", "even", "counts-heavy")


def add_release(commands: Commands, add_log: Callable[[argparse.ArgumentParser], None]) -> None:
    parser = add_command(commands, "release", "a private query click graph of a log", RELEASE_EXAMPLES)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_run(actions, add_log)
    _add_plan(actions)
    verify = add_command(actions, "verify", "check a release without the log", VERIFY_EXAMPLES)
    review = add_command(actions, "review", "what to look at before publishing", REVIEW_EXAMPLES)
    for action in (verify, review):
        action.add_argument("folder", type=Path, metavar="DIR", help="the folder of a release")
        action.add_argument("--json", action="store_true", help="print one JSON document")
    review.add_argument("--terms", type=Path, metavar="FILE", help="terms of your own to look for, one a line")
    review.add_argument(
        "--head", type=positive_int, default=100, metavar="N", help="queries looked at for clicks (100)"
    )
    review.add_argument(
        "--abandoned-below", type=float, default=0.1, metavar="F", help="clicks per search below which to ask (0.1)"
    )


def _add_run(actions: Commands, add_log: Callable[[argparse.ArgumentParser], None]) -> None:
    parser = add_command(actions, "run", "release the click graph of a log", RUN_EXAMPLES)
    add_log(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the released files")
    parser.add_argument("--force", action="store_true", help="replace an earlier release in DIR")
    parser.add_argument("--html", action="store_true", help="also a page for people in DIR: index.html, one file")
    _add_parameters(parser)
    parser.add_argument("--public-urls", type=Path, metavar="TABLE", help="pairs query,url from outside the log")
    parser.add_argument("--public-source", metavar="TEXT", help="where that table comes from; enters the statement")
    parser.add_argument("--synonyms", type=Path, metavar="TABLE", help="public table query,meaning of queries to merge")
    parser.add_argument("--from", dest="first", type=_moment, metavar="TIME", help="leave out lines before this time")
    parser.add_argument("--to", dest="last", type=_moment, metavar="TIME", help="leave out lines from this time on")
    add_release_options(parser, population="--people")
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print the statement as one JSON document")


def _add_plan(actions: Commands) -> None:
    parser = add_command(actions, "plan", "thresholds, noise and release probabilities; reads no data", PLAN_EXAMPLES)
    _add_parameters(parser)
    parser.add_argument("--selection-only", action="store_true", help="the whole budget for choosing queries")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the release probability, .png or .svg")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="gaussian", help="how queries are chosen (gaussian)")
    parser.add_argument("--accounting", choices=["paper", "exact"], help="of kkmn2009: Theorem 1 (paper), or exact")
    parser.add_argument("--epsilon", type=float, default=2.0, metavar="E", help="ε of the whole release (2)")
    parser.add_argument("--delta", type=float, metavar="D", help="δ (1e-6, or a tenth of 1/population if that is less)")
    parser.add_argument("--population", type=positive_int, metavar="N", help="users the log stands for, as you know it")
    parser.add_argument("--allow-large-delta", action="store_true", help="accept δ ≥ 1/population")
    parser.add_argument("--max-queries-per-user", type=int, default=20, metavar="D", help="d (20)")
    parser.add_argument("--max-clicks-per-user", type=int, default=20, metavar="D", help="d_c (20)")
    parser.add_argument("--max-reformulations-per-user", type=int, default=20, metavar="D", help="d_r (20)")
    parser.add_argument("--count-unit", choices=["users", "impressions"], help="what is counted (the algorithm's)")
    parser.add_argument("--query-noise", choices=["fresh", "reuse"], help="noise of the counts (the algorithm's)")
    parser.add_argument(
        "--shares", default="even", metavar="PRESET", help=f"{', '.join(PRESETS)}, or select,counts,clicks"
    )
    parser.add_argument(
        "--urls", choices=["none", "public", "private"], help="clicks on URLs (none; public with a table)"
    )
    parser.add_argument("--reformulations", action="store_true", help="release which query was typed after which")


def _moment(text: str) -> float:
    """Seconds since 1970, or a date and time in UTC."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError("expected a date such as 2006-03-01, or seconds since 1970") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
