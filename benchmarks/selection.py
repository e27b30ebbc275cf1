"""Which records are heavy, among rows of (user, query): searchblend, OpenDP, PipelineDP, Tumult Analytics, and DuckDB alone.

Everyone gets the same rows, keeps one line of each user and counts users by query. *Plain* is DuckDB's own query with no
privacy at all, which draws the line as searchblend does; DuckDB's own hash is faster, but whoever writes values can make it
collide, and then threads decide. One that takes any line of a user makes no fair draw at all. Each program runs in a process of its own, programs alternate, and medians of
the time after start-up are compared; start-up and peak memory stand beside them. The privacy budget is (4, 1e-5) for adding
or removing a user, which is what the peers' figures mean; ``from `read_log` on`` alone is for replacing one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np

from peer_environments import Environment, Unavailable

OURS = Path(__file__).parent / "peers" / "searchblend_selection.py"
PROGRAMS = {"opendp": "opendp_selection.py", "pipelinedp": "pipelinedp_selection.py", "tumult": "tumult_selection.py"}
SHOWN = {
    "plain": "plain DuckDB count",
    "own_hash": "plain, by DuckDB's own hash",
    "any": "plain, any line of a user",
    "searchblend": "searchblend, `select_values`",
    "read_log": "searchblend, from `read_log` on",
    "opendp": "OpenDP with Polars",
    "pipelinedp": "PipelineDP, keys only",
    "tumult": "Tumult Analytics, keys only",
}
TARGETS = {"of_plain": 1.5, "over_best_peer": 10.0}


def make_rows(rows: int, folder: Path) -> tuple[Path, Path]:
    """Rows as Parquet (texts) and as arrays: a fifth as many users, queries whose frequency falls like 1/rank."""
    path, arrays = folder / f"selection-{rows}.parquet", folder / f"selection-{rows}.npz"
    if not arrays.exists():
        duckdb.sql("SET threads = 1")  # so that the seed decides
        duckdb.sql("SELECT setseed(0.5)").fetchall()
        duckdb.sql(
            f"COPY (SELECT 'u' || (random() * {rows // 5})::BIGINT AS user, "
            f"'words of query ' || exp(random() * ln({rows // 4}))::BIGINT AS query FROM range({rows})) TO '{path}'"
        )
        found = duckdb.sql(
            f"SELECT substr(user, 2)::BIGINT AS u, substr(query, 16)::BIGINT AS k FROM '{path}'"
        ).fetchnumpy()
        np.savez(arrays, users=np.array(found["u"]), keys=np.array(found["k"]))
    return path, arrays


def ours(kind: str, path: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, str(OURS), kind, str(path)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def compare(rows: int, folder: Path, rounds: dict[str, int], timeout: float) -> dict[str, dict]:
    """All programs in turn, each as often as its number of rounds; why a peer has none, if it has none."""
    path, arrays = make_rows(rows, folder)
    found: dict[str, list[dict]] = {}
    absent: dict[str, dict] = {}
    for number in range(max(rounds.values())):
        for name, times in rounds.items():
            if number >= times or name in absent:
                continue
            try:
                if name in PROGRAMS:
                    source = arrays if name == "pipelinedp" else path
                    row = Environment(name).run(PROGRAMS[name], source, timeout=timeout)
                else:
                    row = ours(name, path)
            except Unavailable as reason:
                absent[name] = {"absent": str(reason)}
                print(f"{SHOWN[name]}: NOT MEASURED: {reason}", file=sys.stderr, flush=True)
                continue
            found.setdefault(name, []).append(row)
            print(f"{rows:,} rows   {SHOWN[name]:32} {row['seconds']:8.2f} s", file=sys.stderr, flush=True)
    medians = {
        name: {
            "seconds": statistics.median(row["seconds"] for row in some),
            "start_seconds": statistics.median(row["start_seconds"] for row in some),
            "peak_gb": max(row["peak_gb"] for row in some),
            "kept": some[-1]["kept"],
            "rounds": len(some),
            **({"version": some[-1]["version"]} if "version" in some[-1] else {}),
        }
        for name, some in found.items()
    }
    for row in medians.values():
        row["of_plain"] = row["seconds"] / medians["plain"]["seconds"]
    return {**medians, **absent}


def judged(table: dict[str, dict]) -> dict[str, dict]:
    """The two targets: of the plain count, and against the best peer. The limit of the second is DuckDB's fastest fair
    draw, which counts and adds no noise at all."""
    peers = {name: table[name]["seconds"] for name in PROGRAMS if "seconds" in table.get(name, {})}
    found = {"of_plain": {"value": table["searchblend"]["of_plain"], "at_most": TARGETS["of_plain"]}}
    if peers:
        best = min(peers, key=peers.__getitem__)
        ratio = peers[best] / table["searchblend"]["seconds"]
        limit = peers[best] / table["own_hash"]["seconds"]
        found["over_best_peer"] = {
            "value": ratio,
            "at_least": TARGETS["over_best_peer"],
            "peer": SHOWN[best],
            "limit": limit,
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="1000000,10000000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default="opendp,pipelinedp,tumult")
    parser.add_argument("--largest-for-peers", default="opendp=10000000,pipelinedp=1000000,tumult=1000000")
    parser.add_argument("--timeout", type=float, default=240, help="seconds that a peer may take")
    parser.add_argument("--folder", type=Path, default=Path("out/bench"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    options.folder = options.folder.resolve()  # peers run elsewhere
    limits = {
        name: int(most) for name, _, most in (pair.partition("=") for pair in options.largest_for_peers.split(","))
    }
    document: dict[str, dict] = {}
    for rows in map(int, options.rows.split(",")):
        rounds = dict.fromkeys(("plain", "own_hash", "any", "searchblend", "read_log"), options.rounds)
        for name in (name for name in options.peers.split(",") if name and rows <= limits.get(name, rows)):
            slow = name == "tumult" or rows > 1_000_000
            rounds[name] = 1 if slow else min(options.rounds, 2)
        table = compare(rows, options.folder, rounds, options.timeout)
        left_out = [name for name in options.peers.split(",") if name and name not in table]
        document[str(rows)] = {"table": table, "targets": judged(table), "left_out": left_out}
    if options.json:
        print(json.dumps(document, indent=2))
        return
    for rows_text, part in document.items():
        for name, row in part["table"].items():
            if "seconds" in row:
                print(f"{int(rows_text):>10,} {SHOWN[name]:32} {row['seconds']:8.2f} s {row['of_plain']:8.2f} × plain")
        print(json.dumps(part["targets"]))


if __name__ == "__main__":
    main()
