"""Run the test suite again and again beside busy processes, and list what failed, by test.

    python scripts/flake.py [--runs 5] [--busy 4] [COMMAND ...]

COMMAND is ``make test`` unless given. A test that fails in some runs only depends on the clock, on an order or on
noise. What each run said is kept in build/flake. Exit code 1 if a run failed.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from pins import ROOT

LOGS = ROOT / "build/flake"
NO_TEST = "(no test: see the log)"
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py.*?)(?: - .*)?$", re.MULTILINE)


def failed_tests(said: str) -> list[str]:
    """The tests that pytest's summary names, each once."""
    return sorted(set(_FAILED.findall(said)))


@contextlib.contextmanager
def busy(n: int) -> Iterator[None]:
    """So many processes that do nothing but compute."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_once(command: list[str], log: Path) -> list[str]:
    """What failed in one run."""
    with log.open("w") as output:
        code = subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    return failed_tests(log.read_text()) or ([NO_TEST] if code else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--busy", type=int, default=4)
    parser.add_argument("--logs", type=Path, default=LOGS, help="where to keep what each run says")
    parser.add_argument("command", nargs="*", default=["make", "test"])
    options = parser.parse_args()
    options.logs.mkdir(parents=True, exist_ok=True)
    failures: dict[str, list[int]] = defaultdict(list)
    with busy(options.busy):
        for run in range(1, options.runs + 1):
            started, log = time.monotonic(), options.logs / f"run-{run}.log"
            found = run_once(options.command, log)
            print(
                f"run {run} of {options.runs}: {len(found)} failed, {time.monotonic() - started:.0f} s: {log}",
                flush=True,
            )
            for test in found:
                failures[test].append(run)
    for test, runs in sorted(failures.items()):
        print(f"{test}: failed in {len(runs)} of {options.runs} runs ({', '.join(map(str, runs))})")
    if not failures:
        print(f"{options.runs} runs beside {options.busy} busy processes without a failure")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
