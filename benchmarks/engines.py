"""A hybrid run by both engines, and its growth with users and with the size of the head list.

DuckDB in one process against Spark on the same machine: the same log, the same release. Then logs of the same number of
rows with few and many users, and one log with short and long head lists. Each figure is a median of alternated runs of the
whole command, with its peak memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

import duckdb

from log_run import SEARCHBLEND, make, timed

LOOSE = ["--opt-in", "0.5", "--delta", "1e-4"]


def alternate(commands: dict[str, list[str]], rounds: int) -> dict[str, dict[str, float]]:
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(timed(command))
            print(f"{name:28} {times[name][-1][0]:7.2f} s", file=sys.stderr, flush=True)
    return {
        name: {"seconds": statistics.median(s for s, _ in rows), "peak_gb": max(gb for _, gb in rows)}
        for name, rows in times.items()
    }


def run(path: Path, folder: Path, *more: str) -> list[str]:
    return [
        SEARCHBLEND,
        "run",
        str(path),
        "-o",
        str(folder / "release"),
        "--force",
        "--temp-directory",
        str(folder),
        *more,
    ]


def rows_of_users(rows: int, users: int, folder: Path) -> Path:
    path = folder / f"users-{rows}-{users}.parquet"
    if not path.exists():
        duckdb.sql(
            f"COPY (SELECT 'u' || (random() * {users})::BIGINT AS user, "
            f"'words of query ' || exp(random() * ln({rows // 4}))::BIGINT AS query FROM range({rows})) TO '{path}'"
        )
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=20_000, help="of the AOL log that both engines read")
    parser.add_argument("--rows", type=int, default=3_000_000, help="of the logs with few and many users")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("out/bench"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    log = make("aol", options.users, "aol", options.folder)
    engines = alternate(
        {name: run(log, options.folder, *LOOSE, "--engine", name) for name in ("duckdb", "spark")},
        min(options.rounds, 2),
    )
    users = {
        str(n): rows_of_users(options.rows, n, options.folder)
        for n in (options.rows // 100, options.rows // 10, options.rows)
    }
    by_users = alternate({n: run(path, options.folder, *LOOSE) for n, path in users.items()}, options.rounds)
    lists = ("10", "50", "500", "2000")
    path = users[str(options.rows // 10)]
    by_list = alternate({m: run(path, options.folder, *LOOSE, "--max-queries", m) for m in lists}, options.rounds)
    document = {
        "log_bytes": log.stat().st_size,
        "engines": engines,
        "spark_over_duckdb": engines["spark"]["seconds"] / engines["duckdb"]["seconds"],
        "rows": options.rows,
        "by_users": by_users,
        "by_max_queries": by_list,
    }
    if options.json:
        print(json.dumps(document, indent=2))
        return
    print(
        f"Spark takes {document['spark_over_duckdb']:.1f} times as long as DuckDB on {log.stat().st_size / 1e6:.0f} MB"
    )
    for what, table in (("users", by_users), ("queries in the list", by_list)):
        print(", ".join(f"{n} {what}: {row['seconds']:.2f} s" for n, row in table.items()))


if __name__ == "__main__":
    main()
