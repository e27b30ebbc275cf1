"""Local randomization and aggregation of reports, as ratios against named baselines in one run.

The machine may be noisy, so baseline and searchblend alternate and medians are compared. A ratio of 0.2 means: a
fifth of the baseline's speed. The baseline's generator (PCG64) is fast and *unsafe*: it shows the price of bytes from
the operating system, integer thresholds and exactly uniform lies.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np

from searchblend.blender.paper.estimate_client import count_reports
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList


def plain_numpy(cells: np.ndarray, widths: np.ndarray, t: float, t_q: np.ndarray, generator) -> np.ndarray:
    """The same two stages the plain way: floating-point coins and bounded integers from PCG64."""
    first = np.cumsum(widths) - widths
    query_of = np.repeat(np.arange(len(widths)), widths)
    query = query_of[cells]
    url = cells - first[query]
    lie_query = generator.random(len(cells)) >= t
    lie_url = ~lie_query & (generator.random(len(cells)) >= t_q[query])
    said_query, said_url = query.copy(), url.copy()
    other = generator.integers(0, len(widths) - 1, lie_query.sum())
    said_query[lie_query] = other + (other >= query[lie_query])
    said_url[lie_query] = generator.integers(0, widths[said_query[lie_query]])
    other = generator.integers(0, widths[query[lie_url]] - 1)
    said_url[lie_url] = other + (other >= url[lie_url])
    return first[said_query] + said_url


def alternate(rounds: int, baseline: Callable[[], object], ours: Callable[[], object]) -> dict[str, float]:
    times: dict[str, list[float]] = {"baseline": [], "searchblend": []}
    for _ in range(rounds):
        for name, job in (("baseline", baseline), ("searchblend", ours)):
            started = time.perf_counter()
            job()
            times[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {**medians, "ratio": medians["baseline"] / medians["searchblend"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    head = HeadList({f"query {i}": [f"url {j}" for j in range(1 + i % 4)] for i in range(50)})
    params = BlenderParams(Budget(4.0, 1e-5))
    probabilities = ReportProbabilities.of(head, params)
    widths, t_q = np.array(head.n_urls), np.array(probabilities.keep_url)
    generator = np.random.Generator(np.random.PCG64(1))
    cells = generator.integers(0, head.n_cells, options.clients)
    reporter = BulkReporter(probabilities)
    reports = reporter.report(cells)

    results = {
        "randomize: plain numpy on PCG64": alternate(
            options.rounds,
            lambda: plain_numpy(cells, widths, probabilities.keep_query, t_q, generator),
            lambda: reporter.report(cells),
        ),
        "aggregate: np.bincount": alternate(
            options.rounds,
            lambda: np.bincount(reports, minlength=head.n_cells),
            lambda: count_reports(reports, head),
        ),
    }
    if options.json:
        print(json.dumps({"clients": options.clients, "cells": head.n_cells, "results": results}, indent=2))
        return
    print(f"{options.clients:,} clients, {head.n_cells} cells, median of {options.rounds} alternated rounds")
    for name, row in results.items():
        print(
            f"  {name:34} baseline {1e3 * row['baseline']:7.1f} ms   searchblend {1e3 * row['searchblend']:7.1f} ms"
            f"   speed ratio {row['ratio']:.2f}"
        )


if __name__ == "__main__":
    main()
