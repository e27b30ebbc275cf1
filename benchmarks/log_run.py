"""A whole private run on a log of AOL's size, against the plain query that counts one random record per user.

Both read the same cold text (or Parquet) in a process of their own; they alternate, and medians are compared. The plain
query is DuckDB's, not private: read, keep clicks, one record per user by the same keyed hash (with the n-th repetition
of a line in it, so that repeats count), count. The naive one leaves the repetition out: it is faster and its records
are not uniform over a user's lines. Also: time per row at a tenth, a third and the full size, a Yandex log, and the share of the noise in all that counting.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

SEARCHBLEND = str(Path(sys.executable).with_name("searchblend"))
PLAIN = """
import sys, duckdb
con = duckdb.connect()
con.execute("SET memory_limit = '2GB'")
con.execute(f"SET temp_directory = '{sys.argv[2]}'")
source = (
    f"read_parquet('{sys.argv[1]}')" if sys.argv[1].endswith(".parquet") else
    f\"\"\"read_csv('{sys.argv[1]}', delim = '\\t', quote = '', escape = '', header = true, auto_detect = false,
         columns = {{'AnonID': 'VARCHAR', 'Query': 'VARCHAR', 'QueryTime': 'VARCHAR', 'ItemRank': 'VARCHAR',
                    'ClickURL': 'VARCHAR'}}, null_padding = true)\"\"\"
)
columns = ("AnonID", "QueryTime", "Query", "ClickURL", "ItemRank") if "csv" in source else ("user", "time", "query", "url", "''")
user, time, query, url, rank = columns
nth = "1" if sys.argv[3] == "naive" else f"row_number() OVER (PARTITION BY {user}, {time}, {query}, {url}, {rank})"
con.execute(f\"\"\"
    CREATE TABLE counted AS SELECT r, count(*) AS n FROM (
        SELECT arg_min({{q: {query}, u: {url}}}, md5_number(concat_ws(chr(31), 'key', {user}, {time}, {query}, {url}, {rank}, nth))) AS r
        FROM (SELECT *, {nth} AS nth FROM {source} WHERE {url} <> '') GROUP BY {user}) GROUP BY r\"\"\")
print(con.execute("SELECT count(*), sum(n) FROM counted").fetchone())
"""


def evict(path: Path) -> None:
    """Drop the file from the page cache, so that both sides read cold text."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(command: list[str]) -> tuple[float, float]:
    """Wall seconds and peak resident memory in GB of a process."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status != 0:
        raise SystemExit(f"failed: {command}")
    return seconds, usage.ru_maxrss / 1e6


def ours(path: Path, folder: Path) -> list[str]:
    """One record of each user, as the plain query counts; what all of their rows take: method_targets.py, speed."""
    command = [SEARCHBLEND, "run", str(path), "-o", str(folder / "release"), "--force", "--temp-directory", str(folder)]
    return [*command, "--records-per-optin", "1", "--delta", "1e-7"]


def plain(path: Path, folder: Path, kind: str) -> list[str]:
    return [sys.executable, "-c", PLAIN, str(path), str(folder), kind]


def compare(path: Path, folder: Path, rounds: int) -> dict[str, float]:
    commands = {
        "plain": plain(path, folder, "same hash"),
        "naive": plain(path, folder, "naive"),
        "searchblend": ours(path, folder),
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    memory = 0.0
    for _ in range(rounds):
        for name, command in commands.items():
            evict(path)
            seconds, peak = timed(command)
            times[name].append(seconds)
            memory = max(memory, peak) if name == "searchblend" else memory
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratios = {
        "ratio": medians["searchblend"] / medians["plain"],
        "naive_ratio": medians["searchblend"] / medians["naive"],
    }
    return {**medians, **ratios, "peak_gb": memory}


def make(profile: str, users: int, kind: str, folder: Path) -> Path:
    name = {"aol": "txt", "yandex": "tsv", "parquet": "parquet"}[kind]
    path = folder / f"{profile}-{users}.{name}"
    if not path.exists():
        command = [SEARCHBLEND, "generate", "--profile", profile, "--users", str(users), "--format", kind]
        subprocess.run([*command, "-o", str(path)], check=True)
    return path


def starting(folder: Path, rounds: int) -> float:
    """How long a run takes that has almost nothing to read."""
    path = make("aol", 2_000, "aol", folder)
    command = [*ours(path, folder), "--opt-in", "0.5", "--epsilon", "8", "--delta", "1e-4"]
    return statistics.median(timed(command)[0] for _ in range(rounds))


def count_lines(path: Path) -> int:
    return int(subprocess.run(["wc", "-l", str(path)], capture_output=True, check=True).stdout.split()[0])


def show(name: str, row: dict[str, float]) -> str:
    """Say a result as soon as it is there."""
    against = ""
    if "plain" in row:
        against = f"plain {row['plain']:6.1f} s   ratio {row['ratio']:.2f} (naive {row['naive_ratio']:.2f})   "
    line = f"{name:50} searchblend {row['searchblend']:6.1f} s   {against}peak {row['peak_gb']:.2f} GB"
    print(line, file=sys.stderr, flush=True)
    return name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=657_426, help="of the AOL log (657426, its full size)")
    parser.add_argument("--yandex-users", type=int, default=1_600_000, help="of the Yandex log; 0 leaves it out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--text-only", action="store_true", help="AOL text in its three sizes, and nothing else")
    parser.add_argument("--folder", type=Path, default=Path("out/bench"), help="where logs are made and kept")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)

    results: dict[str, dict[str, float]] = {}
    growth: dict[str, float] = {}
    beyond: dict[str, float] = {}
    start = starting(options.folder, options.rounds)
    for part in (10, 3, 1):
        path = make("aol", options.users // part, "aol", options.folder)
        rows = count_lines(path)
        found = compare(path, options.folder, options.rounds)
        results[show(f"AOL text, {rows:,} lines, {path.stat().st_size / 1e9:.2f} GB", found)] = found
        growth[f"1/{part}"] = found["searchblend"] / rows * 1e6
        beyond[f"1/{part}"] = (found["searchblend"] - start) / rows * 1e6
    if not options.text_only:
        path = make("aol", options.users, "parquet", options.folder)
        found = compare(path, options.folder, options.rounds)
        results[show(f"AOL Parquet, {path.stat().st_size / 1e9:.2f} GB", found)] = found
    if options.yandex_users and not options.text_only:
        path = make("yandex", options.yandex_users, "yandex", options.folder)
        evict(path)
        seconds, peak = timed(
            [*ours(path, options.folder), "--format", "yandex", "--opt-in", "0.2", "--max-queries", "500"]
        )
        name = f"Yandex text, {count_lines(path):,} lines, {path.stat().st_size / 1e9:.2f} GB"
        found = {"searchblend": seconds, "peak_gb": peak}
        results[show(name, found)] = found
    document = {
        "results": results,
        "start_seconds": start,
        "microseconds_per_row": growth,
        "spread": max(growth.values()) / min(growth.values()),
        "microseconds_per_row_after_start": beyond,
        "spread_after_start": max(beyond.values()) / min(beyond.values()),
    }
    if options.json:
        print(json.dumps(document, indent=2))
        return
    for name, values in (("µs per row", growth), (f"after the {start:.2f} s of starting", beyond)):
        shown = ", ".join(f"{part} {value:.2f}" for part, value in values.items())
        print(f"{name}: {shown} (spread {max(values.values()) / min(values.values()):.2f})")


if __name__ == "__main__":
    main()
