"""Keyword generation on a million click edges: conjugate gradients against the iteration of Fuxman et al. 2008.

Both solve the same walk on the same graph (α = .001); they alternate and medians are compared. Errors are the largest
over all queries, against a solution with a certified error below 1e-9. A time ratio of 0.1 means: a tenth of the
iteration's time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np
from scipy import sparse

from searchblend.clickgraph.use.absorbing_walk import WalkSettings, absorption

THRESHOLDS = (0.5, 0.7, 0.9, 0.95)


def topical_graph(queries: int, urls: int, topics: int, edges: int, n_seeds: int, seed: int):
    """Clicks mostly within topics, on popular URLs first, and the most popular URLs of one topic as seeds."""
    generator = np.random.Generator(np.random.PCG64(seed))
    topic_of_query, topic_of_url = generator.integers(0, topics, queries), generator.integers(0, topics, urls)
    by_topic = np.argsort(topic_of_url, kind="stable")
    size = np.bincount(topic_of_url, minlength=topics)
    first = np.cumsum(size) - size
    drawn = edges + edges // 20  # some pairs come twice
    query = (queries * generator.random(drawn) ** 1.5).astype(np.int64)
    topic = np.where(generator.random(drawn) < 0.92, topic_of_query[query], generator.integers(0, topics, drawn))
    url = by_topic[first[topic] + (size[topic] * generator.random(drawn) ** 3).astype(np.int64)]
    pairs = generator.permutation(np.unique(query * urls + url))[:edges]
    counts = 9.0 + generator.geometric(0.1, len(pairs))
    clicks = sparse.csr_array((counts, (pairs // urls, pairs % urls)), shape=(queries, urls))
    return clicks, by_topic[first[0] : first[0] + n_seeds], topic_of_query == 0


def run(rounds: int, clicks, seeds: np.ndarray, on_topic: np.ndarray) -> dict[str, dict[str, float]]:
    exact = absorption(clicks, [seeds], WalkSettings(max_error=1e-9, rtol=1e-12)).probability[:, 0]
    methods = {"arw2008": WalkSettings(method="arw2008"), "cg": WalkSettings()}
    times: dict[str, list[float]] = {name: [] for name in methods}
    rows: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for name, settings in methods.items():
            started = time.perf_counter()
            found = absorption(clicks, [seeds], settings)
            times[name].append(time.perf_counter() - started)
            probability = found.probability[:, 0]
            rows[name] = {
                "iterations": found.iterations,
                "max_error": float(np.abs(probability - exact).max()),
                **({"certified": found.error_bound} if found.error_bound is not None else {}),
                **{f"keywords_{t}": int((probability >= t).sum()) for t in THRESHOLDS},
                "on_topic_0.5": float(on_topic[probability >= THRESHOLDS[0]].mean()),
            }
    for name, row in rows.items():
        row["seconds"] = statistics.median(times[name])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    clicks, seeds, on_topic = topical_graph(options.edges // 5, 3 * options.edges // 10, 200, options.edges, 30, 1)
    rows = run(options.rounds, clicks, seeds, on_topic)
    ratio = rows["cg"]["seconds"] / rows["arw2008"]["seconds"]
    if options.json:
        print(
            json.dumps({"edges": int(clicks.nnz), "rounds": options.rounds, "ratio": ratio, "results": rows}, indent=2)
        )
        return
    print(f"{clicks.nnz:,} edges, {len(seeds)} seeds, median of {options.rounds} alternated rounds")
    for name, row in rows.items():
        counts = " / ".join(f"{row[f'keywords_{t}']:.0f}" for t in THRESHOLDS)
        print(
            f"  {name:8} {row['iterations']:6.0f} iterations {row['seconds']:8.2f} s   max error {row['max_error']:.1e}"
            f"   queries >= .5/.7/.9/.95: {counts} (on topic at .5: {row['on_topic_0.5']:.2f})"
        )
    print(f"  time ratio cg / arw2008: {ratio:.3f}")


if __name__ == "__main__":
    main()
