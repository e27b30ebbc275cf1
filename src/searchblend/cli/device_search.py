"""``searchblend device search``: answers from the pack on this computer."""

from __future__ import annotations

import argparse
import json

from searchblend.cli.tables import new_table, output, say
from searchblend.device.agent import DeviceAgent
from searchblend.device.device_errors import DeviceError
from searchblend.search.index import SearchIndex


def print_found(agent: DeviceAgent, options: argparse.Namespace) -> None:
    pack = agent.pack()
    if pack is None:
        raise DeviceError("there is no pack yet; `searchblend device sync` fetches one when the task has published it")
    found = SearchIndex(pack).search(options.query, options.limit)
    unit = pack.info.unit
    if options.json:
        rows = [
            {
                "query": item.entry.query,
                "kind": item.kind,
                "probability": item.entry.probability * unit,
                "urls": [url.url for url in item.entry.urls],
            }
            for item in found
        ]
        output.file.write(json.dumps({"round": pack.info.round, "found": rows}, ensure_ascii=False, indent=2) + "\n")
        return
    if not found:
        say("Nothing in the pack fits.")
        return
    table = new_table(f"From the pack of round {pack.info.round}, best first")
    for name in ("query", "fits", "share", "URL"):
        table.add_column(name, justify="right" if name == "share" else "left")
    for item in found:
        first = item.entry.urls[0].url if item.entry.urls else "–"
        table.add_row(item.entry.query, item.kind, f"{100 * item.entry.probability * unit:.3g} %", first)
    output.print(table)
