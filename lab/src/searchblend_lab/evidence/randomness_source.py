"""Where noise comes from: the operating system, and nothing else, in everything that makes a release or a report.

Read from the source: no seedable generator is reachable from ``service``, ``device`` and ``releases``. At run time: the
real commands work while every seedable generator is poisoned; with equal seeds two runs still differ; and when the
operating system's bytes are replaced by a fixed stream, two runs are equal: no other source enters.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from searchblend_lab.evidence.evidence import Effort, Finding, Verdict, judged
from searchblend_lab.evidence.source_tree import PRODUCT, generators_in, module_paths, reachable

_SECONDS: Final = 300
POISON: Final = """
import os, random, sys
import numpy
refused = "a seedable generator was used by the program"
def check(frame):
    if frame.f_globals.get("__name__", "").startswith("searchblend"):
        print(refused, file=sys.stderr)
        os._exit(97)
def poisoned(module, name):
    original = getattr(module, name)
    def call(*arguments, **options):
        check(sys._getframe(1))
        return original(*arguments, **options)
    setattr(module, name, call)
def poisoned_class(owner, name):
    original = getattr(owner, name)
    class Poisoned(original):
        def __new__(cls, *arguments, **options):
            check(sys._getframe(1))
            return original.__new__(cls, *arguments, **options)
    setattr(owner, name, Poisoned)
for name in ("seed", "random", "randint", "randrange", "choice", "choices", "shuffle", "sample", "uniform", "gauss",
             "getrandbits", "expovariate", "normalvariate"):
    poisoned(random, name)
poisoned_class(random, "Random")
for name in ("Generator", "RandomState", "PCG64", "MT19937", "Philox", "SFC64"):
    poisoned_class(numpy.random, name)
for name in ("default_rng", "seed", "rand", "randn", "randint", "random", "choice", "shuffle", "permutation", "normal",
             "laplace", "geometric", "uniform", "binomial", "poisson"):
    poisoned(numpy.random, name)
"""
"""Makes every seedable generator end the program when the package calls it."""
SEEDED: Final = """
import random
import numpy
random.seed(1)
numpy.random.seed(1)
"""
FIXED_SYSTEM: Final = """
import hashlib, os
class Stream:
    def __init__(self):
        self.position = 0
    def __call__(self, n):
        self.position += 1
        return hashlib.shake_256(b"audit %d" % self.position).digest(n)
os.urandom = Stream()
"""
"""Replaces the operating system's bytes: only ever inside a process of the audit, whose output is thrown away."""
MAIN: Final = "import sys\nfrom searchblend.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"
FORKED: Final = """
import os
from searchblend.core.randomness import SystemRandomness
SystemRandomness().take(16)
reading, writing = os.pipe()
for child in range(2):
    if os.fork() == 0:
        os.write(writing, SystemRandomness().take(16).hex().encode())
        os._exit(0)
for child in range(2):
    os.wait()
print(os.read(reading, 64).decode())
"""


def program(*parts: str, arguments: Sequence[str] = (), cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Python with this code, in a process of its own."""
    return subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", "\n".join(parts), *arguments],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )


# --- the source ------------------------------------------------------------------------------------------------------


def import_graph(effort: Effort) -> list[Finding]:
    """No seedable generator in what ``service``, ``device`` and ``releases`` import, and no import of ``synthetic``."""
    return [import_graph_of(folder) for folder in ("service", "device", "releases")]


def import_graph_of(folder: str, root: Path = PRODUCT) -> Finding:
    starts = module_paths(folder, root)
    if not starts:
        return Finding(f"imports of {folder}", Verdict.NOT_AUDITED, f"NOT AUDITED: there is no folder {folder}")
    modules = reachable(starts, root)
    uses = [use for path in sorted(modules) for use in generators_in(path, root)]
    synthetic = [path for path in modules if path.relative_to(root).parts[0] == "synthetic"]
    seeded = [use for path in module_paths("synthetic") for use in generators_in(path)]
    found = "; ".join(map(str, uses[:3])) + (f"; reaches {synthetic[0].relative_to(root)}" if synthetic else "")
    detail = f"{len(modules)} modules reached" + (f": {found}" if found else "; no seedable generator, none in SQL")
    verdict = judged(holds=not uses and not synthetic, has_power=bool(seeded))
    return Finding(f"imports of {folder}", verdict, detail)


# --- the running programs --------------------------------------------------------------------------------------------


def commands(effort: Effort) -> list[Finding]:
    """``searchblend run`` in both methods and ``searchblend release run``, as processes."""
    with tempfile.TemporaryDirectory(prefix="searchblend-audit-") as name:
        folder = Path(name)
        _write_log(folder / "log.tsv")
        return [_command(what, arguments, folder) for what, arguments in _COMMANDS.items()]


_HALF: Final = ("--opt-in", "0.5", "--epsilon", "2", "--delta", "0.01", "--allow-large-delta")
"""δ is large because the log is small: what is audited is where the noise comes from"""
_COMMANDS: Final[Mapping[str, Sequence[str]]] = {
    "run --method best": ["run", "log.tsv", "--method", "best", *_HALF],
    "run --method paper": ["run", "log.tsv", "--method", "paper", *_HALF],
    "release run": ["release", "run", "log.tsv", "--epsilon", "2", "--delta", "1e-4", "--urls", "private"],
}


def _write_log(path: Path) -> None:
    lines = ["user\tquery\turl\ttime"]
    lines += [f"p{i}\tq{(i * i) % 12}\thttps://u{i % 3}.example/\t{1000 + i}" for i in range(900)]
    path.write_text("\n".join(lines) + "\n")


def _command(what: str, arguments: Sequence[str], folder: Path) -> Finding:
    poisoned = program(POISON, MAIN, arguments=[*arguments, "-o", "poisoned", "--force", "--json"], cwd=folder)
    if poisoned.returncode:
        detail = f"ends with {poisoned.returncode}: {poisoned.stderr.strip()[-160:]}"
        return Finding(f"searchblend {what}", Verdict.REFUTED, detail)
    seeded = [_digest(what, arguments, folder, SEEDED) for _ in range(2)]
    fixed = [_digest(what, arguments, folder, FIXED_SYSTEM) for _ in range(2)]
    fresh, only = seeded[0] != seeded[1], fixed[0] == fixed[1]
    detail = (
        f"works with every seedable generator poisoned; two runs with equal seeds differ: {fresh}; with the system's "
        f"bytes fixed two runs are equal: {only}"
    )
    return Finding(f"searchblend {what}", judged(holds=fresh and only), detail, trials=5)


def _digest(what: str, arguments: Sequence[str], folder: Path, before: str) -> str:
    """A digest of all numbers of a release, without when it was made."""
    done = program(before, MAIN, arguments=[*arguments, "-o", "out", "--force", "--json"], cwd=folder)
    if done.returncode:
        raise AssertionError(f"{what} ends with {done.returncode}: {done.stderr.strip()[-160:]}")
    return hashlib.sha256(json.dumps(_numbers(json.loads(done.stdout))).encode()).hexdigest()


def _numbers(document: Any) -> list[float]:
    """All numbers of a document in order; strings, such as dates, are left out."""
    if isinstance(document, dict):
        return [number for value in document.values() for number in _numbers(value)]
    if isinstance(document, list):
        return [number for value in document for number in _numbers(value)]
    return [document] if isinstance(document, float | int) and not isinstance(document, bool) else []


def forks(effort: Effort) -> list[Finding]:
    """Two children of one process draw different words: no state is copied by ``fork``."""
    done = program(FORKED)
    words = {done.stdout[:32], done.stdout[32:64]}
    holds = done.returncode == 0 and len(words) == 2 and all(len(word.strip()) == 32 for word in words)
    return [Finding("randomness after a fork", judged(holds=holds), "two children of one process draw different words")]
