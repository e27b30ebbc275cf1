"""Single reports of a device in JavaScript (Node) beside the same in Python, as ratios in one run.

Both make one report after the other for one person each, as devices do: the draw alone, and with the bytes of the
report. They alternate, and medians are compared. A ratio of 2 means: JavaScript makes twice as many in a second. Python
computes the thresholds of the list anew for every report, JavaScript once for a list: most of the difference is that.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, TWO_STAGE, ReportDesign, subset_report
from searchblend.blender.paper.local_report import local_report
from searchblend.core.normalization import normalize
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList, Record
from searchblend.wire.report import ReportShape, cells_as_parts, encode_report

HEAD = HeadList({f"query {i}": [f"url {j}" for j in range(1 + i % 4)] for i in range(50)})
PARAMS = BlenderParams(Budget(4.0, 1e-5))
DESIGNS: dict[str, ReportDesign | None] = {
    "printed two stages": None,
    "two stages, exact": ReportDesign(0, 1, 1, TWO_STAGE),
    "sets with a sink": ReportDesign(10, 2, 3, SINK_SETS),
    "plain sets": ReportDesign(10, 2, 3, PLAIN_SETS),
}


class Node:
    """One Node process that times what it is asked to do."""

    def __init__(self) -> None:
        program = shutil.which("node")
        if program is None:
            sys.exit("javascript: node is missing; install Node.js 20 or later")
        script = Path(__file__).with_name("javascript_reports.mjs")
        self._process = subprocess.Popen(
            [program, "--no-warnings", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, job: dict[str, Any]) -> float:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(job) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            sys.exit("javascript: node ended without an answer")
        return float(line)

    def close(self) -> None:
        self._process.communicate()


def python_seconds(records: list[Record], design: ReportDesign | None, *, encode: bool) -> float:
    shape = ReportShape.of(bytes(16), 1, HEAD, PARAMS, design)
    started = time.perf_counter()
    for record in records:
        if design:
            parts = subset_report([record], HEAD, design, PARAMS)
        else:
            parts = cells_as_parts(local_report([record], HEAD, PARAMS))
        if encode:
            encode_report(parts, shape)
    return time.perf_counter() - started


def normalize_seconds(texts: list[str]) -> float:
    started = time.perf_counter()
    for text in texts:
        normalize(text)
    return time.perf_counter() - started


def alternate(
    rounds: int, count: int, python: Callable[[], float], javascript: Callable[[], float]
) -> dict[str, float]:
    times: dict[str, list[float]] = {"python": [], "javascript": []}
    javascript()  # the compiler of Node warms up
    for _ in range(rounds):
        times["python"].append(python())
        times["javascript"].append(javascript())
    per_second = {f"{name}_per_second": count / statistics.median(values) for name, values in times.items()}
    return {**per_second, "ratio": per_second["javascript_per_second"] / per_second["python_per_second"]}


def measure(reports: int, rounds: int) -> dict[str, dict[str, float]]:
    cells = [cell for cell in HEAD.cells() if isinstance(cell.query, str)]
    records = [cells[i % len(cells)] for i in range(reports)]
    job = {"queries": HEAD.as_json(), "epsilon": PARAMS.budget.epsilon, "delta": PARAMS.budget.delta}
    job["records"] = [[query, url if isinstance(url, str) else None] for query, url in records]
    texts = [
        f"  Weather Forecast {i % 97} ÉTÉ " if i % 2 else f"weather forecast {i % 97}" for i in range(10 * reports)
    ]
    node, results = Node(), {}
    try:
        for name, design in DESIGNS.items():
            values = list(astuple(design)) if design else None
            for encode in (False, True):
                results[f"{name}, bytes" if encode else name] = alternate(
                    rounds,
                    reports,
                    lambda d=design, e=encode: python_seconds(records, d, encode=e),
                    lambda v=values, e=encode: node.seconds({**job, "design": v, "encode": e}),
                )
        results["normal forms"] = alternate(
            rounds, len(texts), lambda: normalize_seconds(texts), lambda: node.seconds({"texts": texts})
        )
    finally:
        node.close()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = measure(options.reports, options.rounds)
    if options.json:
        print(json.dumps({"reports": options.reports, "rounds": options.rounds, "results": results}))
        return
    print(f"{'one after the other':<28}{'Python/s':>12}{'JavaScript/s':>14}{'ratio':>8}")
    for name, row in results.items():
        print(f"{name:<28}{row['python_per_second']:>12,.0f}{row['javascript_per_second']:>14,.0f}{row['ratio']:>8.1f}")


if __name__ == "__main__":
    main()
