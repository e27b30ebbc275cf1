"""The console on a year of weekly rounds with 500 queries each: time, statements and bytes of every page.

    python benchmarks/console.py [--database sqlite|postgresql] [--rounds 52] [--queries 500] [--runs 7] [--json]

Each time is the median over runs of one request in this process, from the session's check to the last byte rendered; the
baseline is a page that reads nothing but the session (new task). Bytes are those on the wire, with all files of the page.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from console_history import candidate_list, long_history
from console_person import Person
from databases import fresh_database
from searchblend.store.database_postgres import PostgresStore
from searchblend.store.database_sqlite import SqliteStore
from service_http import http_service

PAGES = {
    "new task (baseline)": ("operator", "/console/new-task"),
    "overview": ("operator", "/console"),
    "task": ("operator", "/console/tasks/{task}"),
    "round": ("viewer", "/console/tasks/{task}/rounds/{last}"),
    "round, live part": ("viewer", "/console/tasks/{task}/rounds/{last}/live?version=11"),
    "review of 500 queries": ("reviewer", "/console/tasks/{list}/rounds/1/review"),
    "trends": ("viewer", "/console/tasks/{task}/trends"),
    "public trends": ("viewer", "/trends/{task}"),
    "local search": ("viewer", "/console/tasks/{task}/search?typed=query"),
    "budget": ("viewer", "/console/budget"),
    "why refused": ("viewer", "/console/refusals"),
}


def measure(http, names: dict[str, str], runs: int) -> dict[str, dict[str, float]]:
    counted: list[str] = []
    for store in (SqliteStore, PostgresStore):
        store.execute = _counting(store.execute, counted)
    people = {role: Person(http, role) for role in ("operator", "viewer", "reviewer")}
    found = {}
    for name, (role, path) in PAGES.items():
        someone, path = people[role], path.format(**names)
        first = _timed(someone, path)
        counted.clear()
        answer = someone.get(path)
        statements = len(counted)
        times = [_timed(someone, path) for _ in range(runs)]
        found[name] = {
            "first_ms": first,
            "median_ms": statistics.median(times),
            "statements": statements,
            "bytes": _weight(someone, answer),
        }
    return found


def _counting(execute, counted: list[str]):
    def wrapped(self, statement, values=()):
        counted.append(statement)
        return execute(self, statement, values)

    return wrapped


def _timed(someone: Person, path: str) -> float:
    started = time.perf_counter()
    answer = someone.get(path)
    assert answer.status_code == 200, answer.text[:300]
    return 1000 * (time.perf_counter() - started)


def _weight(someone: Person, answer) -> int:
    files = set(re.findall(r'(?:src|href)="(/console/static/[^"]+)"', answer.text))
    return int(answer.headers["content-length"]) + sum(int(someone.get(f).headers["content-length"]) for f in files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--rounds", type=int, default=52)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with http_service(fresh_database(options.database, folder), folder) as http:
            store, clock = http.parts.store, http.parts.clock
            task = long_history(store, clock, rounds=options.rounds, queries=options.queries)
            names = {"task": task.task, "last": str(options.rounds), "list": candidate_list(store, clock).task}
            found = measure(http, names, options.runs)
    if options.json:
        targets = {
            "most statements of a page": {"value": max(row["statements"] for row in found.values()), "at_most": 16},
            "heaviest page, kB": {"value": max(row["bytes"] for row in found.values()) / 1000, "at_most": 300},
        }
        print(json.dumps({"database": options.database, "pages": found, "targets": targets}, indent=2))
        return
    print(f"console, {options.rounds} rounds × {options.queries} queries, {options.database}, median of {options.runs}")
    base = found["new task (baseline)"]["median_ms"]
    for name, row in found.items():
        print(
            f"  {name:<22} {row['median_ms']:7.1f} ms ({row['median_ms'] / base:5.1f} × baseline), "
            f"first {row['first_ms']:7.1f} ms, {row['statements']:2d} statements, {row['bytes'] / 1000:6.1f} kB"
        )


if __name__ == "__main__":
    main()
