"""``searchblend search``: what a pack answers to what was typed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from searchblend.cli.arguments import positive_int
from searchblend.cli.printing import new_table, print_json, print_line, print_table, warn
from searchblend.core.documents import JsonObject
from searchblend.search.pack import PackInfo
from searchblend.search.pack_index import Match, PackIndex

if TYPE_CHECKING:
    from searchblend.releases.pack_files import PackFile

EXAMPLES = """\
examples:
  searchblend search answers.sbpack weather            the URLs of a query, and queries that begin or are spelled alike
  searchblend search answers.sbpack wea --prefix       only what begins so
  searchblend search answers.sbpack wether --limit 3 --json
  searchblend search answers.sbpack weather --pin 04…     only if this key has signed the file
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pack", type=Path, metavar="PACK", help="a pack, plain or signed")
    parser.add_argument("query", metavar="QUERY", help="the query as typed")
    parser.add_argument("--prefix", action="store_true", help="only the query and what begins so: no typing errors")
    parser.add_argument("--limit", type=positive_int, default=10, metavar="N", help="queries at the most (10)")
    add_pin(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


def add_pin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pin", action="append", default=[], metavar="POINT", help="a public key that must have signed it, in hex"
    )


def run(options: argparse.Namespace) -> None:
    read = read_checked(options)
    matches = PackIndex(read.pack).search(options.query, options.limit, typos=not options.prefix)
    info = read.pack.info
    if options.json:
        document = {
            "typed": options.query,
            "pack": read.pack.digest,
            "found": [_row(item, info) for item in matches],
        }
        print_json(document)
    elif not matches:
        print_line("Nothing in the pack fits.")
    else:
        _show_matches(matches, info)


def read_checked(options: argparse.Namespace) -> PackFile:
    """The pack, signed by a pinned key if there are pins. A signature that was not checked is worth nothing."""
    from searchblend.releases.pack_files import read_pack_file, read_pinned

    if options.pin:
        return read_pinned(options.pack, options.pin)
    read = read_pack_file(options.pack)
    if read.signatures:
        warn("the pack is signed, and it was not checked by whom: pass --pin with the public key that you trust")
    return read


def _row(item: Match, info: PackInfo) -> JsonObject:
    entry, unit = item.entry, info.unit
    return {
        "query": entry.query,
        "kind": item.kind,
        "distance": item.distance,
        "probability": entry.probability * unit,
        "lower": entry.lower * unit,
        "urls": [{"url": u.url, "probability": u.probability * unit, "lower": u.lower * unit} for u in entry.urls],
    }


def _show_matches(matches: list[Match], info: PackInfo) -> None:
    columns = ("query", "fits", "share", "at least", "URL")
    table = new_table("Best first: by the lower bound of the share", columns, words=("query", "fits", "URL"))
    for item in matches:
        entry, fits = item.entry, item.kind if not item.distance else f"{item.distance} off"
        table.add_row(entry.query, fits, *_shares(entry.probability, entry.lower, info), "")
        for url in entry.urls:
            table.add_row("", "", *_shares(url.probability, url.lower, info), url.url)
    print_table(table)


def _shares(probability: int, lower: int, info: PackInfo) -> tuple[str, str]:
    return f"{100 * probability * info.unit:.3g} %", f"{100 * lower * info.unit:.3g} %"
