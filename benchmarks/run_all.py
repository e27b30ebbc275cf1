"""All benchmarks in one run: ratios against named baselines, as docs/results/benchmarks.{json,md,svg,png}.

    python benchmarks/run_all.py [--only NAME,…] [--quick] [--output DIR] [--list]

Each benchmark is a program of its own that prints JSON. Sections that are not run keep what an earlier run found. --quick
uses small sizes, to see that everything works: its figures mean nothing and go to out/bench-quick. The exit code is 1 when
a target was missed that could have been reached.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmark_page import draw, page

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent
Targets = dict[str, dict[str, Any]]


def own_targets(document: dict[str, Any]) -> Targets:
    """Those that a benchmark states itself."""
    found = document.get("targets", {})
    return found if isinstance(found, dict) else {}


def parts_targets(document: dict[str, Any]) -> Targets:
    return {f"{part}: {name}": row for part, inner in document.items() for name, row in inner["targets"].items()}


def local_targets(document: dict[str, Any]) -> Targets:
    row = document["results"]["randomize: plain numpy on PCG64"]
    return {"bulk_of_numpy": {"value": row["ratio"], "at_least": 0.15}}


def log_targets(document: dict[str, Any]) -> Targets:
    ratios = {name: row["ratio"] for name, row in document["results"].items() if "ratio" in row}
    return {f"run_of_plain, {name}": {"value": ratio, "at_most": 1.6} for name, ratio in ratios.items()}


def release_targets(document: dict[str, Any]) -> Targets:
    return {"release_of_plain": {"value": document["ratio_plain"], "at_most": 1.6}}


def service_targets(document: dict[str, Any]) -> Targets:
    found: Targets = {}
    for kind, row in document["medians"].items():
        if kind != "none":
            found[f"single_of_no_storage, {kind}"] = {"value": row["single_ratio"], "at_least": 0.5}
            found[f"batched_of_no_storage, {kind}"] = {"value": row["batch_ratio"], "at_least": 0.1}
    return found


def keyword_targets(document: dict[str, Any]) -> Targets:
    return {"cg_of_iteration": {"value": document["ratio"], "at_most": 0.2}}


def head_list_targets(document: dict[str, Any]) -> Targets:
    return {"list_of_counting": {"value": document["ratio"], "at_most": 0.5}}


def pack_targets(document: dict[str, Any]) -> Targets:
    slowest = max(row["p99_us"] for kind, row in document["lookups"].items() if not kind.startswith("Map"))
    return {
        "cold_load_ms": {"value": document["cold"]["pack"]["median_ms"], "at_most": 50.0},
        "lookup_p99_us": {"value": slowest, "at_most": 1000.0},
    }


@dataclass(frozen=True)
class Benchmark:
    """A program, its arguments at full and at small size, and what it aims at."""

    name: str
    program: str
    full: list[str] = field(default_factory=list)
    quick: list[str] = field(default_factory=list)
    targets: Callable[[dict[str, Any]], Targets] = own_targets


QUICK_FOLDER = ["--folder", "out/bench-quick"]
BENCHMARKS = [
    Benchmark("cold start", "cold_start.py", [], ["--rounds", "3"]),
    Benchmark(
        "selection",
        "selection.py",
        [],
        ["--rows", "50000,100000", "--rounds", "1", "--peers", "opendp,pipelinedp", *QUICK_FOLDER],
        parts_targets,
    ),
    Benchmark("local reports", "local_reports.py", [], ["--clients", "20000", "--rounds", "2"], local_targets),
    Benchmark(
        "local report peers",
        "ldp_peers.py",
        [],
        ["--clients", "20000", "--peer-clients", "4000", "--rounds", "1"],
        parts_targets,
    ),
    Benchmark("head list", "head_list.py", [], ["--records", "100000", "--rounds", "1"], head_list_targets),
    Benchmark(
        "hybrid run",
        "log_run.py",
        ["--yandex-users", "200000"],
        ["--users", "100000", "--yandex-users", "0", "--rounds", "1", "--text-only", *QUICK_FOLDER],
        log_targets,
    ),
    Benchmark(
        "click graph", "release_run.py", [], ["--users", "20000", "--rounds", "1", *QUICK_FOLDER], release_targets
    ),
    Benchmark(
        "engines and growth", "engines.py", [], ["--users", "2000", "--rows", "50000", "--rounds", "1", *QUICK_FOLDER]
    ),
    Benchmark(
        "service",
        "service.py",
        ["--runs", "3", "--seconds", "2"],
        ["--runs", "1", "--seconds", "0.5", "--databases", "sqlite"],
        service_targets,
    ),
    Benchmark("keywords", "keywords.py", ["--rounds", "2"], ["--edges", "20000", "--rounds", "1"], keyword_targets),
    Benchmark(
        "pack lookup", "pack_lookup.py", [], ["--pairs", "500", "--loads", "2", "--lookups", "100"], pack_targets
    ),
    Benchmark("console", "console.py", [], ["--rounds", "3", "--queries", "20", "--runs", "1"]),
    Benchmark("JavaScript", "javascript.py", [], ["--reports", "100", "--rounds", "1"]),
]


def machine() -> dict[str, Any]:
    """What the figures depend on; nothing that names the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": models[0] if models else platform.machine(),
        "memory_gib": round(memory / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {
            name: version(name) for name in ("searchblend", "duckdb", "numpy", "pyspark", "starlette", "uvicorn")
        },
    }


def run(benchmark: Benchmark, *, quick: bool) -> dict[str, Any]:
    """One benchmark: its JSON, targets, seconds and the largest memory of any of its processes."""
    command = [sys.executable, str(HERE / benchmark.program), *(benchmark.quick if quick else benchmark.full), "--json"]
    print(f"== {benchmark.name}: {benchmark.program}", file=sys.stderr, flush=True)
    load, started = os.getloadavg()[0], time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    shown = " ".join(["python", f"benchmarks/{benchmark.program}", *(benchmark.quick if quick else benchmark.full)])
    section: dict[str, Any] = {
        "command": shown,
        "quick": quick,
        "seconds": round(time.perf_counter() - started, 1),
        "peak_gb": usage.ru_maxrss / 1e6,
        "load_before": load,
    }
    started_at = re.search(r"^\{", printed, re.MULTILINE)  # a log that is made first says so before
    try:
        document = json.loads(printed[started_at.start() :] if started_at else "")
    except ValueError:
        section["failed"] = f"exit code {process.returncode}, no JSON"
        print(f"{benchmark.name}: FAILED: {section['failed']}", file=sys.stderr, flush=True)
        return section
    return {**section, "result": document, "targets": {k: judged(v) for k, v in benchmark.targets(document).items()}}


def judged(row: dict[str, Any]) -> dict[str, Any]:
    """Met or not; excused where the limit, measured in the same run, misses the target as well and is not far off."""
    good = row["value"] <= row["at_most"] if "at_most" in row else row["value"] >= row["at_least"]
    out_of_reach = row.get("limit", math.inf) < row.get("at_least", 0.0)
    return {**row, "met": good, "excused": not good and out_of_reach and row["value"] >= row["limit"] / 2}


def missed(document: dict[str, Any]) -> list[str]:
    found = [f"{name}: {what}" for name, s in document["sections"].items() if (what := s.get("failed"))]
    for name, section in document["sections"].items():
        found += [
            f"{name}: {target}"
            for target, row in section.get("targets", {}).items()
            if not (row["met"] or row.get("excused"))
        ]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of benchmarks, separated by commas")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it work?")
    parser.add_argument("--output", type=Path, help="folder for the results (docs/results)")
    parser.add_argument("--list", action="store_true", help="names and programs, nothing is run")
    parser.add_argument("--page", action="store_true", help="write page and plots from the JSON that is there")
    options = parser.parse_args()
    there = [one for one in BENCHMARKS if (HERE / one.program).exists()]
    if options.list:
        for one in there:
            print(f"{one.name:22} {one.program}")
        return 0
    wanted = [name.strip() for name in options.only.split(",")] if options.only else None
    if wanted and (unknown := [name for name in wanted if not any(one.name == name for one in there)]):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(one.name for one in there)}")
    folder = options.output or ROOT / ("out/bench-quick" if options.quick else "docs/results")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "benchmarks.json"
    document = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"sections": {}}
    started = time.perf_counter()
    for one in [] if options.page else [one for one in there if wanted is None or one.name in wanted]:
        document["sections"][one.name] = run(one, quick=options.quick) | {"alone": wanted is not None}
        document["machine"] = machine()
        path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if not options.page and wanted is None:
        document["seconds"] = round(time.perf_counter() - started)
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "benchmarks.md").write_text(page(document), encoding="utf-8")
    draw(document, folder)
    for line in (found := missed(document)):
        print(f"MISSED {line}", file=sys.stderr)
    print(f"{folder / 'benchmarks.md'}: {len(document['sections'])} benchmarks, {len(found)} targets missed")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
