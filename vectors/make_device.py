"""Write the vectors of what a device reads and draws: good head-list messages, and reports of every mechanism.

``subset_report.json`` is to method ``best`` what ``local_report.json`` is to the printed method: records and a tape of
random bytes in, the parts of a report out, and nothing of the tape left over.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, TWO_STAGE, ReportDesign, subset_report
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Tape
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.wire.head_list import encode_head_list
from searchblend.wire.report import ReportShape, encode_report

HERE = Path(__file__).parent / "v1"
TASK = bytes(range(16))
HEAD = HeadList({"google": ["a", "b", "c"], "yahoo": ["a"], "ebay": ["x", "y"], "⋆": ["*"]})
BARE = HeadList({"google": ["a", "b"], "no result listed": [], "ebay": ["x"]})
NO_URLS = HeadList({"google": [], "yahoo": [], "ebay": []})
ONE = HeadList({"google": ["a"]})
RECORDS = [Record("yahoo", "a"), Record("google", "z"), Record("unlisted", "u")]


def budget(epsilon: float, delta: float = 1e-6, *, cells: int = 1, for_queries: float = 0.85) -> BlenderParams:
    return BlenderParams(Budget(epsilon, delta), records_per_client=cells, query_budget_fraction=for_queries)


PRINTED = [
    ("printed", HEAD, None, budget(4.0, 1e-5)),
    ("printed, three cells", HEAD, None, budget(2.0, cells=3)),
    ("printed, a query without URLs (k_q = 1)", BARE, None, budget(1.0)),
    ("printed, no URLs at all", NO_URLS, None, budget(1.0, for_queries=1.0)),
    ("printed, one query", ONE, None, budget(0.5, 1e-9)),
]
BEST = [
    ("two-stage, exact", HEAD, ReportDesign(0, 1, 1, TWO_STAGE), budget(2.0)),
    ("two-stage, exact, two parts", HEAD, ReportDesign(0, 1, 1, TWO_STAGE), budget(2.0, cells=2)),
    ("two-stage, exact, k_q = 1", BARE, ReportDesign(0, 1, 1, TWO_STAGE), budget(1.0)),
    ("sets with a sink, about cells", HEAD, ReportDesign(0, 1, 3, SINK_SETS), budget(1.0)),
    ("sets with a sink, about queries", HEAD, ReportDesign(20, 2, 1, SINK_SETS), budget(1.0)),
    ("sets with a sink, both, three parts", HEAD, ReportDesign(10, 1, 3, SINK_SETS), budget(3.0, cells=3)),
    ("sets with a sink, k_q = 1", BARE, ReportDesign(5, 1, 2, SINK_SETS), budget(1.0)),
    ("sets with a sink, no URLs", NO_URLS, ReportDesign(20, 1, 1, SINK_SETS), budget(1.0, for_queries=1.0)),
    ("plain sets, about cells", HEAD, ReportDesign(0, 1, 4, PLAIN_SETS), budget(0.5)),
    ("plain sets, both, two parts", HEAD, ReportDesign(10, 2, 3, PLAIN_SETS), budget(1.0, cells=2)),
    ("plain sets, about queries", HEAD, ReportDesign(20, 2, 1, PLAIN_SETS), budget(6.0)),
]
HOLDERS = [
    ("three records", RECORDS),
    ("a listed record", [Record("google", "b")]),
    ("a listed query, another URL", [Record("ebay", "elsewhere")]),
    ("nothing that is listed", [Record("unlisted", "u")]),
    ("a silent device", [Record(WILDCARD, WILDCARD)]),
]
DRAWS = 4


class Recording(Tape):
    """A tape that knows how much of it was used."""

    def used(self) -> bytes:
        return self._content[: self._position]


def tape(label: str, n_bytes: int = 4096) -> bytes:
    blocks = (hashlib.sha256(f"{label}/{i}".encode()).digest() for i in range(n_bytes // 32 + 1))
    return b"".join(blocks)[:n_bytes]


def texts(record: Record) -> list[str | None]:
    return [part if isinstance(part, str) else None for part in record]


def head_lists() -> list[dict[str, Any]]:
    cases = []
    for name, head, design, params in [*PRINTED, *BEST]:
        shape = ReportShape.of(TASK, 7, head, params, design)
        cases.append(
            {
                "name": name,
                "document": encode_head_list(head, params, design),
                "digest": head.digest,
                "n_queries": head.n_queries,
                "n_urls": list(head.n_urls),
                "n_cells": head.n_cells,
                "cells": [texts(cell) for cell in head.cells()],
                "report_bytes": shape.size,
            }
        )
    return cases


def reports() -> list[dict[str, Any]]:
    cases = []
    for name, head, design, params in BEST:
        shape = ReportShape.of(TASK, 7, head, params, design)
        for who, records in HOLDERS:
            for n in range(DRAWS):
                source = Recording(tape(f"{name}/{who}/{n}"))
                parts = subset_report(records, head, design, params, randomness=source)
                drawn = source.used()
                message = encode_report(parts, shape, randomness=source)
                cases.append(
                    {
                        "name": f"{name}: {who}, {n}",
                        "task": TASK.hex(),
                        "round": 7,
                        "head_list": encode_head_list(head, params, design),
                        "records": [texts(record) for record in records],
                        "tape": drawn.hex(),
                        "parts": [[part.about_queries, list(part.items)] for part in parts],
                        "nonce": source.used()[len(drawn) :].hex(),
                        "message": message.hex(),
                    }
                )
    return cases


def main() -> None:
    for name, cases in (("head_list", head_lists()), ("subset_report", reports())):
        text = json.dumps({"version": 1, "cases": cases}, ensure_ascii=False, indent=1)
        (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
