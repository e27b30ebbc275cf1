"""How long ``searchblend --help`` takes beyond ``python -c pass``: medians of alternated processes, and their memory."""

from __future__ import annotations

import argparse
import json
import statistics
import sys

from log_run import SEARCHBLEND, timed

TARGET = 0.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "searchblend --help": [SEARCHBLEND, "--help"],
        "searchblend run --help": [SEARCHBLEND, "run", "--help"],
        "searchblend --version": [SEARCHBLEND, "--version"],
    }
    rows: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            rows[name].append(timed(command))
    table = {
        name: {"seconds": statistics.median(s for s, _ in some), "peak_gb": max(gb for _, gb in some)}
        for name, some in rows.items()
    }
    beyond = table["searchblend --help"]["seconds"] - table["python -c pass"]["seconds"]
    if options.json:
        target = {"help_beyond_python": {"value": beyond, "at_most": TARGET}}
        print(json.dumps({"table": table, "targets": target}, indent=2))
        return
    for name, row in table.items():
        print(f"{name:24} {1e3 * row['seconds']:6.0f} ms {1e3 * row['peak_gb']:6.0f} MB")
    print(f"--help takes {1e3 * beyond:.0f} ms beyond python itself (target {1e3 * TARGET:.0f})")


if __name__ == "__main__":
    main()
