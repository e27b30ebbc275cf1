"""Local randomization and aggregation: searchblend, pure-ldp, multi-freq-ldpy, OpenDP, and numpy alone; accuracy beside speed.

k-ary randomized response over the same k values by everyone (a head list of k − 1 queries without URLs has k cells), and
subset selection where a peer has it. Rates are reports a second, medians of rounds. The error is the mean squared error of
the raw estimates times the number of clients, over what theory says of it: 1 is right, multi-freq-ldpy's forced clipping
makes it less on rare values. *Plain numpy* uses floating-point coins of PCG64: fast, and unsafe.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

from peer_environments import Environment, Unavailable
from searchblend.blender.best.subset_report_bulk import simulate_subsets
from searchblend.blender.paper.estimate_client import count_reports
from searchblend.blender.paper.local_report import randomize
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import PlainSubsetSelection

SETTINGS = ((51, 4.0), (501, 1.0))
TARGETS = {"over_best_peer": 5.0, "of_numpy": 0.15}
Row = dict[str, float]


def theory(p: float, q: float, shares: np.ndarray) -> float:
    """n times the mean variance of the raw estimates, the values given: holders support theirs with p, others with q."""
    return float(np.mean(shares * p * (1 - p) + (1 - shares) * q * (1 - q)) / (p - q) ** 2)


def timed(job: Callable[[], object]) -> tuple[float, object]:
    started = time.perf_counter()
    result = job()
    return time.perf_counter() - started, result


def summary(n: int, said: list[float], counted: list[float], errors: list[float]) -> Row:
    return {
        "clients": n,
        "privatise_per_second": n / statistics.median(said),
        "aggregate_per_second": n / statistics.median(counted) if counted else None,
        "error_over_theory": statistics.fmean(errors),
    }


def plain_numpy(values: np.ndarray, k: int, keep: float, generator) -> np.ndarray:
    lies = generator.random(len(values)) >= keep
    other = generator.integers(0, k - 1, lies.sum())
    said = values.copy()
    said[lies] = other + (other >= values[lies])
    return said


def ours(values: np.ndarray, k: int, epsilon: float, rounds: int) -> dict[str, Row]:
    """Bulk, one at a time, and plain numpy; the last one alternates with the first."""
    head = HeadList({f"query {i}": [] for i in range(k - 1)})
    params = BlenderParams(Budget(epsilon, 1e-9), query_budget_fraction=1.0)
    probabilities = ReportProbabilities.exact(head, params)
    keep, n = probabilities.keep_query, len(values)
    lie = (1 - keep) / (k - 1)
    shares = np.bincount(values, minlength=k) / n
    expected = theory(keep, lie, shares)
    reporter, generator = BulkReporter(probabilities), np.random.Generator(np.random.PCG64(1))
    jobs = {
        "searchblend, bulk": (lambda: reporter.report(values), lambda said: count_reports(said, head)),
        "plain numpy": (
            lambda: plain_numpy(values, k, keep, generator),
            lambda said: np.bincount(said, minlength=k),
        ),
    }
    times: dict[str, tuple[list[float], list[float], list[float]]] = {name: ([], [], []) for name in jobs}
    for _ in range(rounds):
        for name, (say, count) in jobs.items():
            seconds, said = timed(say)
            counting, counts = timed(lambda count=count, said=said: count(said))
            estimates = (np.asarray(counts) / n - lie) / (keep - lie)
            for place, value in enumerate((seconds, counting, n * np.mean((estimates - shares) ** 2) / expected)):
                times[name][place].append(float(value))
    found = {name: summary(n, *some) for name, some in times.items()}
    few, source = min(n, 20_000), SystemRandomness()
    said_one, reports = timed(lambda: [randomize(v, 0, probabilities, source)[0] for v in values[:few].tolist()])
    held = np.bincount(values[:few], minlength=k) / few
    estimates = (np.bincount(np.array(reports), minlength=k) / few - lie) / (keep - lie)
    error = few * float(np.mean((estimates - held) ** 2)) / theory(keep, lie, held)
    found["searchblend, one by one"] = summary(few, [said_one], [], [error])
    return found


def our_subsets(values: np.ndarray, k: int, epsilon: float, rounds: int) -> Row:
    """Subset selection, randomized and counted in one pass."""
    size = max(1, round(k / (math.exp(epsilon) + 1)))
    mechanism = PlainSubsetSelection.of(Fraction(epsilon), k - 1, size)
    n, holders = len(values), np.bincount(values, minlength=k)
    shares = holders[: k - 1] / n
    e = size * math.exp(epsilon)
    p = e / (e + k - size)
    q = p * (size - 1) / (k - 1) + (1 - p) * size / (k - 1)
    times, errors = [], []
    for _ in range(rounds):
        seconds, counts = timed(lambda: simulate_subsets(holders, mechanism, SystemRandomness()))
        estimates = (counts.items / n - q) / (p - q)
        times.append(seconds)
        errors.append(n * float(np.mean((estimates - shares) ** 2)) / theory(p, q, shares))
    return summary(n, times, [], errors)


def peer(name: str, program: str, values: np.ndarray, k: int, epsilon: float, rounds: int, *more: str) -> Row:
    """A peer on fewer clients: rates are what is compared."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    lie, n = (1 - keep) / (k - 1), len(values)
    shares = np.bincount(values, minlength=k) / n
    size = max(1, round(k / (math.exp(epsilon) + 1)))
    if "subsets" in more:
        e = size * math.exp(epsilon)
        keep = e / (e + k - size)
        lie = keep * (size - 1) / (k - 1) + (1 - keep) * size / (k - 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.npy"
        np.save(path, values)
        found = Environment(name).run(program, path, k, epsilon, rounds, *more, timeout=240)
    rows = found["rows"]
    errors = [
        n * float(np.mean((np.array(row["estimates"]) - shares) ** 2)) / theory(keep, lie, shares) for row in rows
    ]
    said, counted = [row["privatise"] for row in rows], [row["aggregate"] for row in rows]
    return {**summary(n, said, counted, errors), "version": found["version"]}


def compare(k: int, epsilon: float, clients: int, peer_clients: int, rounds: int) -> dict[str, dict]:
    generator = np.random.Generator(np.random.PCG64(7))
    weights = 1 / np.arange(1, k + 1)
    values = generator.choice(k, clients, p=weights / weights.sum())
    few = values[:peer_clients]
    table: dict[str, dict] = {**ours(values, k, epsilon, rounds)}
    table["searchblend, subsets"] = our_subsets(values[: clients // 4], k, epsilon, rounds)
    calls = {
        "pure-ldp": ("pure-ldp", "pure_ldp_reports.py", few),
        "multi-freq-ldpy": ("multi-freq-ldpy", "multi_freq_reports.py", few, "k-RR"),
        "multi-freq-ldpy, subsets": ("multi-freq-ldpy", "multi_freq_reports.py", few[: len(few) // 4], "subsets"),
        "OpenDP": ("opendp", "opendp_reports.py", few[: len(few) // 10]),
    }
    for shown, (name, program, some, *more) in calls.items():
        try:
            table[shown] = peer(name, program, some, k, epsilon, min(rounds, 3), *more)
        except Unavailable as reason:
            table[shown] = {"absent": str(reason)}
            print(f"{shown}: NOT MEASURED: {reason}", file=sys.stderr, flush=True)
    return table


def judged(table: dict[str, dict]) -> dict[str, dict]:
    bulk = table["searchblend, bulk"]["privatise_per_second"]
    rates = {name: table[name].get("privatise_per_second", 0.0) for name in ("pure-ldp", "multi-freq-ldpy", "OpenDP")}
    best = max(rates, key=rates.__getitem__)
    found = {
        "of_numpy": {"value": bulk / table["plain numpy"]["privatise_per_second"], "at_least": TARGETS["of_numpy"]}
    }
    if rates[best]:
        found["over_best_peer"] = {"value": bulk / rates[best], "at_least": TARGETS["over_best_peer"], "peer": best}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=1_000_000)
    parser.add_argument("--peer-clients", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    document = {}
    for k, epsilon in SETTINGS:
        table = compare(k, epsilon, options.clients, options.peer_clients, options.rounds)
        document[f"k={k}, ε={epsilon:g}"] = {"table": table, "targets": judged(table)}
    if options.json:
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return
    for setting, part in document.items():
        print(setting)
        for name, row in part["table"].items():
            if "absent" not in row:
                print(
                    f"  {name:28} {row['privatise_per_second']:14,.0f}/s   error/theory {row['error_over_theory']:.2f}"
                )
        print(f"  {json.dumps(part['targets'])}")


if __name__ == "__main__":
    main()
