"""Fuzz everything that reads what others wrote, for a bounded time: FUZZ_SECONDS, 600 unless told.

    python tests/fuzz/run_fuzz.py [--seconds 600] [--only log,report] [--engine atheris|mutations] [--json]

Each target gets an equal share of the time in a process of its own, with the coverage-guided fuzzer atheris where it is
installed, else with our own mutations. Inputs that found new code stay in out/fuzz/TARGET and are tried first next
time; an input that broke a property is kept in out/fuzz/findings, and the exit code is 1. Run one again with --input.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
OUT = ROOT / "out" / "fuzz"
SLOWEST = 60
"""Seconds that a single input may take."""
LARGEST = 65_536
WEIGHTS = {"log": 5, "compressed_log": 3, "command": 3, "file_of_command": 4, "tables": 2}
"""Shares of the time of targets that take many milliseconds an input; 1 for the others. Watching their coverage would
make them slower still, so that they always get our own mutations."""
Target = Callable[[bytes], None]

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "fuzz")]


def all_modules() -> tuple[ModuleType, ...]:
    import fuzz_commands
    import fuzz_logs
    import fuzz_messages
    import fuzz_packs
    import fuzz_texts

    return fuzz_messages, fuzz_packs, fuzz_texts, fuzz_logs, fuzz_commands


def all_targets() -> dict[str, Target]:
    return {name: job for module in all_modules() for name, job in module.TARGETS.items()}


def all_seeds() -> dict[str, list[bytes]]:
    """Inputs to begin with, by target; keys, releases and logs are made for them."""
    seeds = {name: inputs for module in all_modules() for name, inputs in module.seeds().items()}
    assert set(seeds) == set(all_targets())
    return seeds


def child(name: str, seconds: float, engine: str) -> None:
    """Fuzz one target in this process; a finding ends it with an exit code that is not 0."""
    corpus = OUT / name
    corpus.mkdir(parents=True, exist_ok=True)
    if engine == "mutations":
        mutate(all_targets()[name], all_seeds()[name], name, seconds)
        return
    import atheris

    with atheris.instrument_imports(include=["searchblend"]):
        targets, seeds = all_targets(), all_seeds()
    for number, seed in enumerate(seeds[name]):
        (corpus / f"seed-{number}").write_bytes(seed)
    (OUT / "findings").mkdir(exist_ok=True)
    flags = [
        f"-max_total_time={max(1, round(seconds))}",
        f"-timeout={SLOWEST}",
        f"-max_len={LARGEST}",
        "-rss_limit_mb=6000",
    ]
    flags += [f"-artifact_prefix={OUT / 'findings' / name}-", "-print_final_stats=1", "-verbosity=0", "-detect_leaks=0"]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], targets[name])
    atheris.Fuzz()


def mutate(target: Target, seeds: list[bytes], name: str, seconds: float) -> None:
    from fuzz_mutations import mutated

    chance, inputs, until = random.Random(time.time_ns()), list(seeds), time.monotonic() + seconds
    number = 0
    while time.monotonic() < until:
        data = inputs[number] if number < len(inputs) else mutated(inputs, chance)[:LARGEST]
        faulthandler.dump_traceback_later(SLOWEST, exit=True)
        try:
            target(data)
        except BaseException:
            (OUT / "findings").mkdir(exist_ok=True)
            (OUT / "findings" / f"{name}-{number}").write_bytes(data)
            raise
        faulthandler.cancel_dump_traceback_later()
        number += 1
    print(f"stat::number_of_executed_units: {number}", file=sys.stderr)


def fuzz(name: str, seconds: float, engine: str) -> dict[str, object]:
    """One target in a process of its own: how many inputs, and what it said if it ended badly."""
    command = [sys.executable, __file__, "--child", name, "--seconds", str(seconds), "--engine", engine]
    started = time.monotonic()
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False, cwd=ROOT
    )
    executed = re.search(r"number_of_executed_units:\s*(\d+)", done.stdout)
    covered = re.findall(r"cov: (\d+)", done.stdout)
    row: dict[str, object] = {
        "target": name,
        "inputs": int(executed[1]) if executed else 0,
        "seconds": round(time.monotonic() - started, 1),
        "coverage": int(covered[-1]) if covered else None,
        "found": done.returncode != 0,
    }
    if done.returncode:
        row["said"] = "\n".join([line for line in done.stdout.splitlines() if not line.startswith("INFO")][-30:])
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("FUZZ_SECONDS", "600")))
    parser.add_argument("--only", help="targets, separated by commas")
    guided = "atheris" if find_spec("atheris") else "mutations"
    parser.add_argument("--engine", choices=["atheris", "mutations"], default=guided)
    parser.add_argument("--input", type=Path, help="try this file alone, on the one target of --only")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if options.child:
        child(options.child, options.seconds, options.engine)
        return 0
    targets = all_targets()
    names = options.only.split(",") if options.only else list(targets)
    if unknown := set(names) - set(targets):
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(targets)}")
    if options.input:
        targets[names[0]](options.input.read_bytes())
        return 0
    rows = []
    whole = sum(WEIGHTS.get(name, 1) for name in names)
    for name in names:
        engine = "mutations" if name in WEIGHTS else options.engine
        rows.append(fuzz(name, options.seconds * WEIGHTS.get(name, 1) / whole, engine))
        print(
            f"{name:16} {rows[-1]['inputs']:>9,} inputs   {'FOUND' if rows[-1]['found'] else 'nothing'}",
            file=sys.stderr,
            flush=True,
        )
        if rows[-1]["found"]:
            print(rows[-1]["said"], file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps({"engine": options.engine, "targets": rows}, indent=2))
    return int(any(row["found"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
