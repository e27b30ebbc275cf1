"""``searchblend search``: what a pack answers to what somebody typed."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from typing import Any

from searchblend.cli.tables import new_table, output, say, warn
from searchblend.releases.pack_files import PackFile, read_pack_file
from searchblend.search.pack import PackInfo
from searchblend.search.pack_index import Found, PackIndex


def run(options: argparse.Namespace) -> None:
    read = read_checked(options)
    found = PackIndex(read.pack).search(options.query, options.limit, typos=not options.prefix)
    info = read.pack.info
    if options.json:
        document = {
            "typed": options.query,
            "pack": read.pack.digest,
            "found": [_row(item, info) for item in found],
        }
        print(json.dumps(document, ensure_ascii=False, indent=2))
    elif not found:
        say("Nothing in the pack fits.")
    else:
        _print_table(found, info)


def read_checked(options: argparse.Namespace) -> PackFile:
    """The pack, signed by a pinned key if there are pins. A signature that nobody looked at is worth nothing."""
    if options.pin:
        # Loaded here alone: a plain pack needs no cryptography.
        pinned: PackFile = import_module("searchblend.releases.signed_pack_files").read_pinned(
            options.pack, options.pin
        )
        return pinned
    read = read_pack_file(options.pack)
    if read.signatures:
        warn("the pack is signed, and nobody checked by whom: pass --pin with the public key that you trust")
    return read


def _row(item: Found, info: PackInfo) -> dict[str, Any]:
    entry, unit = item.entry, info.unit
    return {
        "query": entry.query,
        "kind": item.kind,
        "distance": item.distance,
        "probability": entry.probability * unit,
        "lower": entry.lower * unit,
        "urls": [{"url": u.url, "probability": u.probability * unit, "lower": u.lower * unit} for u in entry.urls],
    }


def _print_table(found: list[Found], info: PackInfo) -> None:
    table = new_table("Best first: by the lower bound of the share")
    for name in ("query", "fits", "share", "at least", "URL"):
        table.add_column(name, justify="right" if name in ("share", "at least") else "left", no_wrap=name != "URL")
    for item in found:
        entry, fits = item.entry, item.kind if not item.distance else f"{item.distance} off"
        table.add_row(entry.query, fits, *_shares(entry.probability, entry.lower, info), "")
        for url in entry.urls:
            table.add_row("", "", *_shares(url.probability, url.lower, info), url.url)
    output.print(table)


def _shares(probability: int, lower: int, info: PackInfo) -> tuple[str, str]:
    return f"{100 * probability * info.unit:.3g} %", f"{100 * lower * info.unit:.3g} %"
