"""The arguments of ``searchblend search`` and ``searchblend pack``."""

from __future__ import annotations

import argparse
from pathlib import Path

from searchblend.cli.arguments import Commands, add_command, positive_int

SEARCH_EXAMPLES = """\
examples:
  searchblend search answers.sbpack weather            the URLs of a query, and queries that begin or are spelled alike
  searchblend search answers.sbpack wea --prefix       only what begins so
  searchblend search answers.sbpack wether --limit 3 --json
  searchblend search answers.sbpack weather --pin 04…     only if this key has signed the file
"""
PACK_EXAMPLES = """\
examples:
  searchblend pack build out -o answers.sbpack                   from the folder of `searchblend run log.tsv -o out`
  searchblend pack build out -o answers.sbpack --key signing.pem
  searchblend pack inspect answers.sbpack
  searchblend pack diff old.sbpack new.sbpack -o update.sbdelta
  searchblend pack apply old.sbpack update.sbdelta -o new.sbpack
  searchblend pack page answers.sbpack -o search.html            one page that searches offline
"""


def add_search(commands: Commands) -> None:
    parser = add_command(commands, "search", "local search in a pack, without a network", SEARCH_EXAMPLES)
    parser.add_argument("pack", type=Path, metavar="PACK", help="a pack, plain or signed")
    parser.add_argument("query", metavar="QUERY", help="what somebody typed")
    parser.add_argument("--prefix", action="store_true", help="only the query and what begins so: no typing errors")
    parser.add_argument("--limit", type=positive_int, default=10, metavar="N", help="queries at the most (10)")
    _add_pin(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


def add_pack(commands: Commands) -> None:
    parser = add_command(commands, "pack", "make, look at and compare local-search packs", PACK_EXAMPLES)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_build(actions)
    inspect = add_command(actions, "inspect", "check all of a pack or a delta, and say what is in it", PACK_EXAMPLES)
    inspect.add_argument("pack", type=Path, metavar="FILE", help="a pack, plain or signed, or a delta")
    _add_pin(inspect)
    diff = add_command(actions, "diff", "the delta that leads from one pack to a later one", PACK_EXAMPLES)
    diff.add_argument("base", type=Path, metavar="A", help="the pack that a device has")
    diff.add_argument("pack", type=Path, metavar="B", help="the pack that it should get")
    _add_output(diff, "the delta")
    apply = add_command(actions, "apply", "the pack that a delta leads to", PACK_EXAMPLES)
    apply.add_argument("base", type=Path, metavar="A", help="the pack that the delta starts from")
    apply.add_argument("delta", type=Path, metavar="DELTA", help="a delta of `pack diff` or of a service")
    _add_output(apply, "the pack")
    page = add_command(actions, "page", "one HTML page that answers from a pack, offline", PACK_EXAMPLES)
    page.add_argument("pack", type=Path, metavar="PACK", help="a pack, plain or signed")
    page.add_argument("--title", default="Local search", help="shown on the page (Local search)")
    _add_output(page, "the page")
    for action in (inspect, diff, apply, page):
        action.add_argument("--json", action="store_true", help="print one JSON document")


def _add_build(actions: Commands) -> None:
    build = add_command(actions, "build", "the pack of a release: its certain answers in one file", PACK_EXAMPLES)
    build.add_argument("release", type=Path, metavar="RELEASE", help="a folder of `searchblend run`, or a result.json")
    _add_output(build, "the pack")
    build.add_argument(
        "--key", type=Path, action="append", default=[], metavar="PEM", help="sign with this P-256 key; may be repeated"
    )
    build.add_argument("--task", metavar="HEX", help="the task that it belongs to, 32 hexadecimal digits")
    build.add_argument("--round", type=positive_int, metavar="N", help="the round of the task")
    build.add_argument("--json", action="store_true", help="print one JSON document")


def _add_output(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help=f"where {what} goes")
    parser.add_argument("--force", action="store_true", help="replace FILE")


def _add_pin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pin", action="append", default=[], metavar="POINT", help="a public key that must have signed it, in hex"
    )
