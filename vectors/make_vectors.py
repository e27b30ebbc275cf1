"""Write ``vectors/v1``: inputs and outputs that every implementation of the protocol must reproduce.

The files are part of the protocol. A difference in them is a change of the protocol, so the tests replay what
is committed; this script is only for adding cases on purpose. Integers beyond 2^53 are written as decimal
strings, since JSON numbers lose them in JavaScript.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from searchblend.blender.estimates import Estimates
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.paper.blend import blend_probabilities, project_onto_simplex
from searchblend.blender.paper.estimate_client import estimate_client_probabilities
from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities
from searchblend.blender.paper.local_report import local_report
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Tape
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.wire.head_list import encode_head_list

HERE = Path(__file__).parent / "v1"

HEADS: dict[str, HeadList] = {
    "empty": HeadList({}),
    "one query, one url": HeadList({"q": ["u"]}),
    "one query without urls": HeadList({"q": []}),
    "query only": HeadList({"google": [], "yahoo": [], "mapquest": []}),
    "unequal": HeadList({"google": ["a", "b", "c"], "yahoo": ["a"], "ebay": ["x", "y"], "⋆": ["*"]}),
    "fifty": HeadList({f"query {i}": [f"u{j}" for j in range(1 + i % 4)] for i in range(50)}),
}
PARAMS: dict[str, BlenderParams] = {
    "defaults": BlenderParams(Budget(4.0, 1e-5)),
    "low": BlenderParams(Budget(0.1, 1e-7), query_budget_fraction=0.5),
    "high": BlenderParams(Budget(20.0, 1e-9), query_budget_fraction=0.9),
    "two cells": BlenderParams(Budget(4.0, 1e-5), records_per_client=2),
    "query only": BlenderParams(Budget(1.0, 1e-6), query_budget_fraction=1.0),
}


def parameters(params: BlenderParams) -> dict[str, Any]:
    return {
        "epsilon": params.budget.epsilon,
        "delta": params.budget.delta,
        "query_budget_fraction": params.query_budget_fraction,
        "records_per_client": params.records_per_client,
    }


def tape(label: str, n_bytes: int) -> bytes:
    """SHA-256 in counter mode: any language can make it, though the vectors hold the bytes themselves."""
    blocks = (hashlib.sha256(f"{label}/{i}".encode()).digest() for i in range(n_bytes // 32 + 1))
    return b"".join(blocks)[:n_bytes]


def report_probabilities() -> list[dict[str, Any]]:
    cases = []
    for head_name, head in HEADS.items():
        for params_name, params in PARAMS.items():
            if params.query_budget_fraction == 1 and head.has_urls:
                continue
            probabilities = ReportProbabilities.of(head, params)
            cases.append(
                {
                    "name": f"{head_name}; {params_name}",
                    "params": parameters(params),
                    "queries": head.as_json(),
                    "keep_query_below": str(probabilities.keep_query_below),
                    "keep_record_below": [str(below) for below in probabilities.keep_record_below],
                }
            )
    return cases


def local_reports() -> list[dict[str, Any]]:
    cases = []
    records = {
        "known": [("google", "b")],
        "unknown url": [("google", "nowhere")],
        "unknown query": [("nobody knows", "a")],
        "star as a text": [("⋆", "*")],
        "several": [("google", "a"), ("ebay", "y"), ("query 7", "u0"), ("yahoo", "a")],
    }
    for head_name in ("empty", "query only", "unequal", "fifty"):
        for params_name in ("defaults", "low", "two cells"):
            for record_name, pairs in records.items():
                for repetition in range(4):
                    name = f"{head_name}; {params_name}; {record_name}; {repetition}"
                    bytes_ = tape(name, 128)
                    if repetition == 3:
                        # All ones: every uniform choice that can reject does so once, then the tape decides.
                        bytes_ = b"\xff" * 16 + bytes_
                    source = Tape(bytes_)
                    report = local_report(
                        [Record(*pair) for pair in pairs], HEADS[head_name], PARAMS[params_name], randomness=source
                    )
                    used = len(bytes_) - source.left
                    cases.append(
                        {
                            "name": name,
                            "params": parameters(PARAMS[params_name]),
                            "queries": HEADS[head_name].as_json(),
                            "records": [list(pair) for pair in pairs],
                            "tape": bytes_[:used].hex(),
                            "report": list(report),
                        }
                    )
    return cases


def client_estimates() -> list[dict[str, Any]]:
    cases = []
    for head_name in ("one query, one url", "query only", "unequal", "fifty"):
        for params_name in ("defaults", "low", "two cells"):
            head, params = HEADS[head_name], PARAMS[params_name]
            counts = np.frombuffer(tape(head_name, 2 * head.n_cells), dtype="<u2").astype(np.int64)
            estimates = estimate_client_probabilities(counts, head, params)
            cases.append(
                {
                    "name": f"{head_name}; {params_name}",
                    "params": parameters(params),
                    "queries": head.as_json(),
                    "report_counts": counts.tolist(),
                    "cell_probability": estimates.records.probability.tolist(),
                    "cell_variance": estimates.records.variance.tolist(),
                    "query_probability": estimates.queries.probability.tolist(),
                    "query_variance": estimates.queries.variance.tolist(),
                }
            )
    return cases


def optin_estimates() -> list[dict[str, Any]]:
    cases = []
    for head_name, has_urls in (("query only", False), ("unequal", True)):
        for max_queries in (2, 50):
            head = HEADS[head_name]
            params = BlenderParams(Budget(2.0, 1e-5), max_head_queries=max_queries)
            holders = {cell: 3 + 2 * i for i, cell in enumerate(head.cells())}
            users = [
                [Record(cell.query, "elsewhere") if has_urls and cell.url is WILDCARD else cell]
                for cell, n in holders.items()
                if cell.query is not WILDCARD
                for _ in range(n)
            ]
            users += [[Record("elsewhere", "x" if has_urls else WILDCARD)]] * 40
            noise_bytes = tape(f"optin {head_name}", 8 * head.n_cells)
            group = InMemoryGroup.from_users(users, randomness=Tape(bytes(8 * len(users))))
            final, estimates = estimate_optin_probabilities(group, head, params, randomness=Tape(noise_bytes))
            cases.append(
                {
                    "name": f"{head_name}; M = {max_queries}",
                    "epsilon": 2.0,
                    "max_head_queries": max_queries,
                    "candidates": head.as_json(),
                    "records": [[_text(cell.query), _text(cell.url)] for [cell] in users],
                    "tape": noise_bytes.hex(),
                    "queries": final.as_json(),
                    "cell_probability": _numbers(estimates.records.probability),
                    "cell_variance": _numbers(estimates.records.variance),
                    "query_probability": _numbers(estimates.queries.probability),
                    "query_variance": _numbers(estimates.queries.variance),
                }
            )
    return cases


def blends() -> list[dict[str, Any]]:
    nan = float("nan")
    cases = {
        "plain": ([0.02, 0.98], [1e-6, 4e-6], [0.03, 0.97], [3e-6, 4e-6]),
        "opt-in users silent": ([nan, 0.9], [nan, 1e-4], [0.05, 0.95], [1e-5, 1e-5]),
        "both certain": ([0.2, 0.8], [0.0, 0.0], [0.4, 0.6], [0.0, 0.0]),
        "negative and above one": ([-0.01, 1.02, 0.1], [1e-5, 1e-5, 1e-5], [-0.02, 1.01, 0.2], [1e-5, 1e-4, 1e-6]),
    }
    rows = []
    for name, arrays in cases.items():
        p_o, v_o, p_c, v_c = (np.array(array) for array in arrays)
        blended = blend_probabilities(Estimates(p_o, v_o), Estimates(p_c, v_c))
        rows.append(
            {
                "name": name,
                "optin": {"probability": _numbers(p_o), "variance": _numbers(v_o)},
                "client": {"probability": _numbers(p_c), "variance": _numbers(v_c)},
                "optin_weight": blended.optin_weight.tolist(),
                "raw_probability": blended.raw.probability.tolist(),
                "variance": blended.raw.variance.tolist(),
                "probability": blended.probability.tolist(),
            }
        )
    return rows


def projections() -> list[dict[str, Any]]:
    inputs = {
        "already on it": [0.25, 0.75],
        "one value": [7.0],
        "all negative": [-1.0, -2.0, -3.0],
        "too large": [1.0, 1.0],
        "ties": [0.4, 0.4, 0.4, -0.2],
        "head and rest": [0.021, -0.001, 0.004, 0.0, 0.98],
    }
    return [
        {"name": name, "in": values, "out": project_onto_simplex(np.array(values)).tolist()}
        for name, values in inputs.items()
    ]


def bad_head_lists() -> list[dict[str, Any]]:
    good = encode_head_list(HEADS["unequal"], PARAMS["defaults"])

    def but(**changes: Any) -> dict[str, Any]:
        return {**good, **changes}

    twice = [["q", ["u"]], ["q", ["v"]]]
    documents: list[tuple[str, Any, str]] = [
        ("not an object", [], "object"),
        ("another format", but(format="something"), "format"),
        ("a later version", but(version=2), "version"),
        ("a version that is true", but(version=True), "version"),
        ("an unknown method", but(method="other"), "method"),
        ("from an evaluation", but(notice="NOT PRIVATE"), "notice"),
        ("a changed list", but(queries=good["queries"][:-1]), "digest"),
        ("a reordered list", but(queries=good["queries"][::-1]), "digest"),
        ("queries not a list", but(queries={}), "queries"),
        ("a pair without urls", but(queries=[["q"]]), "queries[0]"),
        ("a number for a query", but(queries=[[1, []]]), "query"),
        ("a query twice", but(queries=twice), "query"),
        ("a url twice", but(queries=[["q", ["u", "u"]]]), "URLs"),
        ("epsilon zero", but(epsilon=0), "epsilon"),
        ("epsilon a text", but(epsilon="4"), "epsilon"),
        ("epsilon missing", {k: v for k, v in good.items() if k != "epsilon"}, "epsilon"),
        ("delta one", but(delta=1), "delta"),
        ("delta true", but(delta=True), "delta"),
        ("fraction zero", but(query_budget_fraction=0), "query_budget_fraction"),
        ("no cell to report", but(records_per_client=0), "records_per_client"),
        ("half a cell", but(records_per_client=0.5), "records_per_client"),
    ]
    return [
        {"name": name, "document": document, "refused_by": "decode_head_list", "says": says}
        for name, document, says in documents
    ]


def bad_report_probabilities() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "params": parameters(params),
            "queries": HEADS["unequal"].as_json(),
            "refused_by": "ReportProbabilities",
            "says": says,
        }
        for name, params, says in (
            ("no budget left for the URLs", PARAMS["query only"], "query_budget_fraction"),
            ("a budget below 64 bits", BlenderParams(Budget(1e-20, 1e-30)), "epsilon"),
        )
    ]


def bad_reports() -> list[dict[str, Any]]:
    head = HEADS["unequal"]
    return [
        {"name": name, "queries": head.as_json(), "cells": cells, "refused_by": "count_reports"}
        for name, cells in (("beyond the last cell", [0, head.n_cells]), ("negative", [-1, 0]))
    ]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _numbers(values: Any) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def main() -> None:
    files = {
        "report_probabilities": report_probabilities(),
        "local_report": local_reports(),
        "estimate_client": client_estimates(),
        "estimate_optin": optin_estimates(),
        "blend": blends(),
        "projection": projections(),
        "bad_head_list": bad_head_lists(),
        "bad_report_probabilities": bad_report_probabilities(),
        "bad_report": bad_reports(),
    }
    for name, cases in files.items():
        text = json.dumps({"version": 1, "cases": cases}, ensure_ascii=False, indent=1)
        (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
