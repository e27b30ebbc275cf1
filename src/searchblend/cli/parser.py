"""The arguments of every command. Light on purpose: ``--help`` must be instant."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from pathlib import Path

from searchblend.cli.arguments import Commands, add_command, add_reading, add_release_options, positive_int, share
from searchblend.cli.device_parser import add_device
from searchblend.cli.graph_parser import add_graph
from searchblend.cli.pack_parser import add_pack, add_search
from searchblend.cli.plugins import LAB_COMMANDS, add_lab_command, lab_arguments
from searchblend.cli.release_parser import add_release
from searchblend.cli.serve_parser import add_serve

RUN_EXAMPLES = """\
examples:
  searchblend run searches.tsv -o out                       the defaults: ε = 4, δ = 1e-5, 5 % opt-in, 50 queries
  searchblend run log.csv.gz -o out --columns user=AnonID,query=Query,url=ClickURL
  searchblend run searches.tsv -o out --opt-in-column consent --epsilon 2 --delta 1e-6
  searchblend run 'aol/user-ct-*.gz' -o out --memory 2GB    the ten files of AOL's collection
  searchblend run searches.tsv --dry-run                    what it would promise; reads nothing
  searchblend run searches.tsv --evaluate --json            compare with the truth (NOT PRIVATE)
"""
STATS_EXAMPLES = """\
examples:
  searchblend stats searches.tsv                      size, users, queries, URLs, records, malformed lines
  searchblend stats 'aol/user-ct-*.gz' --json         ten files as one log
  searchblend stats train.gz --format yandex --memory 2GB
"""
PLAN_EXAMPLES = """\
examples:
  searchblend plan                                              the AOL profile with the defaults
  searchblend plan --users 2000000 --opt-in 0.01 --epsilon 2 --delta 1e-7
  searchblend plan --profile yandex --max-queries 500 --plot plan.png
  searchblend plan --profile out/result.json --epsilon 1        like an earlier release, with another budget
"""
DEMO_EXAMPLES = """\
examples:
  searchblend demo                   make a log, run on it, show the table, leave the files in out/demo
  searchblend demo --json            the same as one JSON document
  searchblend demo --epsilon 2       with less budget
"""
GENERATE_EXAMPLES = """\
examples:
  searchblend generate --profile aol --users 657426 -o aol.txt        the size of the AOL log: 36 M lines, 2.4 GB
  searchblend generate --profile aol --users 20000 -o logs/           the ten files of the collection, small
  searchblend generate --profile yandex --users 100000 -o train.gz    sessions, queries and clicks by number
  searchblend generate --profile aol --users 20000 --format parquet -o log.parquet
"""
PAGE_EXAMPLES = """\
examples:
  searchblend page out                               one file for people, printed: redirect it
  searchblend page release/ -o release.html          of a click graph; nothing is spent, nothing else is read
"""
LEDGER_EXAMPLES = """\
examples:
  searchblend ledger show budget.ledger                     debits, totals by summing and by loss distributions, the cap
  searchblend ledger show budget.ledger --population search --window 2026-W46 --delta 1e-6
  searchblend ledger check budget.ledger                    the hash chain and every stored file
  searchblend ledger export budget.ledger > rows.jsonl      the rows with their hashes, for somebody else to verify
  searchblend ledger cap budget.ledger --lifetime 20,1e-4 --per-window 4,1e-5
"""


def build_parser(of_lab: Iterable[str] = tuple(LAB_COMMANDS)) -> argparse.ArgumentParser:
    """The arguments of all commands; of the lab's commands only those of ``of_lab`` get more than their name."""
    parser = argparse.ArgumentParser(
        prog="searchblend",
        description="The head of a search log, computed privately.",
        epilog="Start with: searchblend demo. Each command explains itself with --help.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_demo(commands)
    _add_run(commands)
    _add_plan(commands)
    _add_page(commands)
    _add_stats(commands)
    _add_generate(commands)
    _add_ledger(commands)
    add_release(commands, partial(_add_log, memory="2500MB"))  # who searched for what takes more room than draws
    add_graph(commands)
    add_search(commands)
    add_pack(commands)
    evaluate = add_lab_command(commands, "evaluate")
    add_serve(commands)
    audit = add_lab_command(commands, "audit")
    add_device(commands)
    for name in of_lab:
        lab_arguments(name)({"evaluate": evaluate, "audit": audit}[name])
    return parser


def _add_demo(commands: Commands) -> None:
    parser = add_command(commands, "demo", "a private run on a made-up log, start to finish", DEMO_EXAMPLES)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/demo"), help="where files go (out/demo)")
    parser.add_argument("--users", type=positive_int, default=50_000, help="people in the made-up log (50000)")
    parser.add_argument("--opt-in", type=share, default=0.2, metavar="SHARE", help="share that opts in (0.2)")
    _add_budget(parser)
    _add_method(parser)
    parser.add_argument("--seed", type=int, default=1, help="of the made-up log; the noise is never seeded (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


def _add_run(commands: Commands) -> None:
    parser = add_command(commands, "run", "the private head of your own log", RUN_EXAMPLES)
    _add_log(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder for the released files")
    parser.add_argument("--force", action="store_true", help="replace an earlier release in DIR")
    parser.add_argument("--html", action="store_true", help="also a page for people in DIR: index.html, one file")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--opt-in", type=share, default=0.05, metavar="SHARE", help="random share that opts in (0.05)")
    group.add_argument("--opt-in-column", metavar="NAME", help="a column with 1/true/yes for opt-in users")
    _add_budget(parser)
    parser.add_argument("--max-queries", type=int, default=50, metavar="M", help="queries in the head list (50)")
    parser.add_argument(
        "--head-fraction", type=float, default=0.95, metavar="F", help="opt-in users that make the list (0.95)"
    )
    parser.add_argument(
        "--query-budget-fraction", type=float, default=0.85, metavar="F", help="share of a client's ε for the query"
    )
    parser.add_argument("--records-per-client", type=int, default=1, metavar="N", help="cells per report (1)")
    parser.add_argument("--records-per-optin", type=int, default=1, metavar="N", help="records of an opt-in user (1)")
    _add_method(parser)
    parser.add_argument("--wide-list", action="store_true", help="list queries without a listed URL too (method best)")
    parser.add_argument("--explain", action="store_true", help="say which mechanisms were chosen and why")
    parser.add_argument("--no-project", action="store_true", help="leave out the projection onto the simplex")
    add_release_options(parser, population="--population")
    parser.add_argument("--dry-run", action="store_true", help="say what would be promised; read nothing")
    parser.add_argument("--evaluate", action="store_true", help="compare with the truth; every output is NOT PRIVATE")
    parser.add_argument("--seed", type=int, help="repeatable noise, only with --evaluate")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON document")


def _add_ledger(commands: Commands) -> None:
    parser = add_command(commands, "ledger", "what was released about whom, and what it cost", LEDGER_EXAMPLES)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = add_command(actions, "show", "the debits, their totals and what is left of the cap", LEDGER_EXAMPLES)
    check = add_command(actions, "check", "verify the hash chain and every stored file", LEDGER_EXAMPLES)
    export = add_command(actions, "export", "the rows with their hashes, one JSON document a line", LEDGER_EXAMPLES)
    cap = add_command(actions, "cap", "put a cap on record; makes the ledger if there is none", LEDGER_EXAMPLES)
    for action in (show, check, export, cap):
        action.add_argument("ledger", metavar="LEDGER", help="the ledger's file, or the database of a service")
    for action in (show, export):
        action.add_argument("--population", metavar="NAME", help="only releases about these people")
        action.add_argument("--window", metavar="NAME", help="only this window")
    show.add_argument("--delta", type=share, metavar="D", help="total δ (the cap's, else the debits' own + 1e-6)")
    check.add_argument("--head", metavar="HASH", help="a hash noted earlier: it must still be in the chain")
    for action in (show, check, export):
        action.add_argument("--json", action="store_true", help="print one JSON document")
    cap.add_argument("--per-window", type=_epsilon_delta, metavar="E,D", help="ε and δ of each window")
    cap.add_argument("--lifetime", type=_epsilon_delta, metavar="E,D", help="ε and δ of all windows together")
    cap.add_argument("--planned", action="store_true", help="releases are fixed in advance: the smaller total counts")


def _add_plan(commands: Commands) -> None:
    parser = add_command(commands, "plan", "what a run would give, without reading any data", PLAN_EXAMPLES)
    parser.add_argument("--profile", default="aol", metavar="PROFILE", help="aol, yandex, or an earlier result.json")
    parser.add_argument("--users", type=positive_int, metavar="N", help="people in both groups (the profile's)")
    parser.add_argument("--opt-in", type=share, metavar="SHARE", help="share that opts in (the profile's)")
    _add_budget(parser)
    parser.add_argument("--max-queries", type=positive_int, metavar="M", help="queries in the list (the profile's)")
    parser.add_argument("--runs", type=positive_int, default=8, metavar="N", help="simulated runs per figure (8)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the forecast over ε, .png or .svg")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


def _add_page(commands: Commands) -> None:
    parser = add_command(commands, "page", "a release as one web page, from its folder", PAGE_EXAMPLES)
    parser.add_argument("folder", type=Path, metavar="DIR", help="what `run` or `release run` wrote")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where the page goes (standard output)")
    parser.add_argument("--force", action="store_true", help="replace FILE")
    parser.add_argument("--json", action="store_true", help="print file, bytes and SHA-256 as JSON; needs -o")


def _add_generate(commands: Commands) -> None:
    parser = add_command(commands, "generate", "a made-up log with the shape of a real one", GENERATE_EXAMPLES)
    parser.add_argument("--profile", choices=["aol", "yandex"], required=True, help="whose published figures to follow")
    parser.add_argument("--users", type=positive_int, required=True, metavar="N", help="made-up people")
    parser.add_argument("--format", choices=["aol", "yandex", "tsv", "parquet"], help="how to write it (the profile's)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same bytes (1)")
    parser.add_argument("--workers", type=positive_int, metavar="W", help="processes (as many as there are cores)")
    parser.add_argument(
        "-o", "--output", required=True, metavar="PATH", help="file, .gz if it ends so; DIR/ for the ten AOL files"
    )
    parser.add_argument("--force", action="store_true", help="replace what is at PATH")
    parser.add_argument("--json", action="store_true", help="print what was made as one JSON document")


def _add_stats(commands: Commands) -> None:
    parser = add_command(commands, "stats", "what a log holds, counted exactly (not private)", STATS_EXAMPLES)
    _add_log(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


def _add_log(parser: argparse.ArgumentParser, *, memory: str = "2GB") -> None:
    """What every command that reads a log understands."""
    parser.add_argument("log", metavar="LOG", help="a file, glob or directory; plain, .gz or .zst")
    add_reading(parser)
    parser.add_argument("--host-only", action="store_true", help="cut URLs down to their host")
    parser.add_argument("--strict", action="store_true", help="stop at the first malformed line")
    parser.add_argument("--engine", choices=["duckdb", "spark"], default="duckdb", help="duckdb here, or a cluster")
    parser.add_argument("--master", metavar="URL", help="the Spark master, with --engine spark")
    parser.add_argument("--memory", default=memory, metavar="SIZE", help=f"of the database; the rest spills ({memory})")
    parser.add_argument("--threads", type=positive_int, metavar="N", help="of the database (all cores)")
    parser.add_argument("--temp-directory", type=Path, metavar="DIR", help="where the database spills")


def _add_method(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method", choices=["best", "paper"], default="best", help="best (default), or the algorithm as printed"
    )


def _add_budget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epsilon", type=float, default=4.0, metavar="E", help="ε of each person (4)")
    parser.add_argument("--delta", type=float, default=1e-5, metavar="D", help="δ of each person (1e-5)")


class _Version(argparse.Action):
    """Prints the version; looking it up takes time that only those who ask for it should wait."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        metadata = import_module("importlib.metadata")
        print(f"searchblend {metadata.version('searchblend')}")  # parser.exit would write on stderr
        parser.exit()


def _epsilon_delta(text: str) -> tuple[float, float]:
    epsilon, comma, delta = text.partition(",")
    try:
        pair = float(epsilon), float(delta)
    except ValueError:
        pair = math.nan, math.nan
    if not comma or not (0 < pair[0] < math.inf and 0 < pair[1] < 1):
        raise argparse.ArgumentTypeError("expected ε,δ, for example 4,1e-5")
    return pair
