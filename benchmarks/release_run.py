"""A whole click graph release on a log of AOL's size, against the plain query that counts first-d queries.

Both read the same cold text in a process of their own; they alternate, and medians are compared. The plain query is
DuckDB's with its own defaults (most of the machine's memory), not private: read, lower case, the first d different
queries of each user by time, count. The naive one takes the first d lines as they stand, repeats included: less work,
and another answer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

from log_run import SEARCHBLEND, count_lines, evict, make, timed

PLAIN = """
import sys, duckdb
con = duckdb.connect()
con.execute("SET preserve_insertion_order = false")
con.execute(f"SET temp_directory = '{sys.argv[2]}'")
source = f\"\"\"read_csv('{sys.argv[1]}', delim = '\\t', quote = '', escape = '', header = true, auto_detect = false,
    columns = {{'AnonID': 'VARCHAR', 'Query': 'VARCHAR', 'QueryTime': 'VARCHAR', 'ItemRank': 'VARCHAR',
               'ClickURL': 'VARCHAR'}}, null_padding = true)\"\"\"
query = "lower(trim(Query))"
once = f"SELECT AnonID, {query} AS Query, min(QueryTime) AS t FROM {source} WHERE Query <> '-' GROUP BY ALL"
if sys.argv[3] == "naive":
    once = f"SELECT AnonID, Query, QueryTime AS t FROM {source} WHERE Query <> '-'"
con.execute(f\"\"\"
    CREATE TABLE counted AS SELECT Query, count(*) AS n FROM (
        SELECT * FROM ({once}) QUALIFY row_number() OVER (PARTITION BY AnonID ORDER BY t) <= 20) GROUP BY Query\"\"\")
print(con.execute("SELECT count(*), sum(n) FROM counted").fetchone())
"""


def commands(path: Path, folder: Path, more: list[str]) -> dict[str, list[str]]:
    release = [
        SEARCHBLEND,
        "release",
        "run",
        str(path),
        "-o",
        str(folder / "graph"),
        "--force",
        "--users",
        "650000",
    ]
    return {
        "plain": [sys.executable, "-c", PLAIN, str(path), str(folder), "same"],
        "naive": [sys.executable, "-c", PLAIN, str(path), str(folder), "naive"],
        "searchblend": [*release, "--temp-directory", str(folder), *more],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=657_426, help="of the AOL log (657426, its full size)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("out/bench"), help="where logs are made and kept")
    parser.add_argument("--urls", choices=["none", "private"], default="none", help="what is released of clicks (none)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = make("aol", options.users, "aol", options.folder)
    times: dict[str, list[float]] = {}
    memory: dict[str, float] = {}
    for _ in range(options.rounds):
        for name, command in commands(path, options.folder, ["--urls", options.urls]).items():
            evict(path)
            seconds, peak = timed(command)
            times.setdefault(name, []).append(seconds)
            memory[name] = max(memory.get(name, 0.0), peak)
            print(f"{name:12} {seconds:6.1f} s   peak {peak:.2f} GB", file=sys.stderr, flush=True)
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratios = {f"ratio_{name}": medians["searchblend"] / medians[name] for name in ("plain", "naive")}
    if options.json:
        print(json.dumps({"lines": count_lines(path), "seconds": medians, **ratios, "peak_gb": memory}, indent=2))
        return
    print(
        f"click graph of {count_lines(path):,} lines: searchblend {medians['searchblend']:.1f} s, plain "
        f"{medians['plain']:.1f} s, ratio {ratios['ratio_plain']:.2f} (naive {ratios['ratio_naive']:.2f}), "
        f"peak {memory['searchblend']:.2f} GB"
    )


if __name__ == "__main__":
    main()
