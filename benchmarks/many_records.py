"""Method best over many records of each opt-in user against one random record, on a log: the same people and budget.

Truth is the mean over all people of the log of each person's own share. The log is read once for each split of the
people; noise, reports and lists are drawn anew in every run. Needs a log that may be evaluated: nothing here is private.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from searchblend.blender.estimates import NORMAL_95
from searchblend.blender.groups import UserGroup
from searchblend.blender.pipeline import run_blender
from searchblend.blender.release import BlenderRelease
from searchblend.core.errors import EmptyHeadList
from searchblend.core.params import MANY_RECORDS, BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.logs.read import read_log

CANDIDATES = 50_000
"""queries among which the true top is sought: those that most people's drawn record is of"""
UNITS = 100_000
"""for the truth: own shares to five digits"""


@dataclass(frozen=True)
class Score:
    """One release against the truth."""

    errors: dict[str, float]
    """by listed query"""
    top: float
    """L1 over the true top; a query that is not listed counts as estimated 0"""
    inside: int
    urls: int


def true_shares(groups: tuple[UserGroup, UserGroup]) -> dict[str, float]:
    """Each common query's mean own share over everybody."""
    counts: dict[str, int] = defaultdict(int)
    for group in groups:
        for n, records in group.tally().at_least(1).items():
            for record in records:
                counts[str(record.query)] += n
    common = sorted(counts, key=lambda query: -counts[query])[:CANDIDATES]
    head = HeadList((query, ()) for query in common)
    cells = sum(np.asarray(group.own_shares(head, UNITS).cells) for group in groups)
    everybody = UNITS * sum(group.n_users for group in groups)
    return {query: float(n) / everybody for query, n in zip(common, cells[:-1], strict=True)}


def score(release: BlenderRelease, truth: dict[str, float], top: list[str]) -> Score:
    estimated = dict(zip(release.head.queries, release.queries.probability.tolist(), strict=False))
    raw = release.queries.raw
    inside = sum(
        abs(value - truth.get(query, 0.0)) <= NORMAL_95 * math.sqrt(variance)
        for query, value, variance in zip(
            release.head.queries, raw.probability.tolist(), raw.variance.tolist(), strict=False
        )
    )
    return Score(
        {query: abs(value - truth.get(query, 0.0)) for query, value in estimated.items()},
        sum(abs(estimated.get(query, 0.0) - truth[query]) for query in top),
        inside,
        release.head.n_cells - 1 - len(release.head),
    )


def compare(log: Path, options: argparse.Namespace) -> list[dict[str, float]]:
    rows = []
    for reading in range(options.splits):
        with read_log(log, rows=True, format=options.format, urls=not options.no_urls) as read:
            groups = read.split(optin_fraction=options.opt_in)
            truth = true_shares(groups)
            top = sorted(truth, key=lambda query: -truth[query])[: options.top]
            for epsilon in options.epsilon:
                for run in range(options.runs):
                    rows.append({"split": reading, "run": run, **compare_once(groups, epsilon, truth, top, options)})
                    print(json.dumps(rows[-1]), flush=True)
    return rows


def compare_once(
    groups: tuple[UserGroup, UserGroup],
    epsilon: float,
    truth: dict[str, float],
    top: list[str],
    options: argparse.Namespace,
) -> dict[str, float]:
    row: dict[str, float] = {"epsilon": epsilon}
    scores = {}
    for name, records in (("one", 1), ("many", MANY_RECORDS)):
        params = BlenderParams(
            Budget(epsilon, options.delta), max_head_queries=options.max_queries, records_per_optin=records
        )
        try:
            found = score(run_blender(*groups, params), truth, top)
        except EmptyHeadList:
            found = Score({}, sum(truth[query] for query in top), 0, 0)
        scores[name] = found
        row |= {
            f"{name}_queries": len(found.errors),
            f"{name}_urls": found.urls,
            f"{name}_top": found.top,
            f"{name}_inside": found.inside,
        }
    both = scores["one"].errors.keys() & scores["many"].errors.keys()
    row |= {f"{name}_l1": sum(found.errors[query] for query in both) for name, found in scores.items()}
    return row


def summarize(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """Ratios of means, many over one, by ε."""
    summary = []
    for epsilon in sorted({row["epsilon"] for row in rows}):
        mine = [row for row in rows if row["epsilon"] == epsilon]
        mean = {name: float(np.mean([row[name] for row in mine])) for name in mine[0]}
        entry = {"epsilon": epsilon, "one_queries": mean["one_queries"], "many_queries": mean["many_queries"]}
        entry |= {"one_urls": mean["one_urls"], "many_urls": mean["many_urls"]}
        for name in ("l1", "top"):
            one, many = (np.array([row[f"{kind}_{name}"] for row in mine]) for kind in ("one", "many"))
            ratio = float(many.mean() / one.mean()) if one.mean() else math.nan
            entry[f"{name}_ratio"] = ratio
            entry[f"{name}_se"] = float((many - ratio * one).std(ddof=1) / math.sqrt(len(mine)) / one.mean())
        for kind in ("one", "many"):
            entry[f"{kind}_coverage"] = mean[f"{kind}_inside"] / max(mean[f"{kind}_queries"], 1)
        summary.append(entry)
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, help="log to evaluate")
    parser.add_argument("--format", default="auto")
    parser.add_argument("--no-urls", action="store_true")
    parser.add_argument("--opt-in", type=float, default=0.05)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--max-queries", type=int, default=2000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 2.0, 4.0, 6.0])
    parser.add_argument("--top", type=int, default=200, help="the true top over which L1 is taken (200)")
    parser.add_argument("--splits", type=int, default=1, help="how often the people are split anew (1)")
    parser.add_argument("--runs", type=int, default=5, help="runs for each split and ε (5)")
    parser.add_argument("-o", "--output", type=Path, help="JSON file of all runs and their summary")
    options = parser.parse_args()
    rows = compare(options.log, options)
    summary = summarize(rows)
    for entry in summary:
        print(json.dumps({name: round(value, 4) for name, value in entry.items()}))
    if options.output:
        options.output.write_text(json.dumps({"summary": summary, "runs": rows}, indent=1))


if __name__ == "__main__":
    main()
