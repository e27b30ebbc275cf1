"""Real logs that an evaluation compares on: which files, how they are read, and what the runs are told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from searchblend.core.errors import InvalidParameter, UsageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.logs.formats.files import expand
from searchblend.logs.options import ReadOptions
from searchblend.logs.read import OnProgress, open_log

EPSILONS: Final = (1.0, 2.0, 4.0)
OPTIN: Final = 0.05
DELTA: Final = 1e-5
"""where it is below 1/users, as in ``searchblend run``; of a larger log a tenth of 1/users"""


@dataclass(frozen=True)
class RealLog:
    """One log, measured once. Knows everything that a run needs, as plain values."""

    label: str
    reading: str
    """the ``ReadOptions`` as JSON"""
    content: str
    """digest of the files: another content is another log"""
    users: int
    lines: int
    epsilons: tuple[float, ...]
    delta: float
    optin: float | None
    """``None`` if a column says who opts in"""

    @property
    def options(self) -> ReadOptions:
        return ReadOptions(**json.loads(self.reading))


def measure_logs(
    names: Sequence[str],
    reading: ReadOptions,
    *,
    epsilons: Sequence[float] = EPSILONS,
    delta: float | None = None,
    optin: float | None = OPTIN,
    on_progress: OnProgress | None = None,
) -> tuple[RealLog, ...]:
    """Read each log once: an unreadable one is refused before anything is computed."""
    for epsilon in epsilons:
        BlenderParams(Budget(epsilon, delta or DELTA))  # refuses what no method takes
    if "-" in names:
        raise UsageError("--logs: expected files; standard input can be read once, and every run reads its log anew")
    labels = [Path(name).name for name in names]
    measured = []
    for name, label in zip(names, labels, strict=True):
        options = replace(reading, paths=name, key=None)
        files = expand(name)
        with open_log(replace(options, draws=1, rows=False, key=bytes(16)), on_progress=on_progress) as log:
            users, lines = log.summary.users, log.summary.lines
        settled = delta or (DELTA if DELTA * users < 1 else 0.1 / users)
        if settled * users >= 1:
            raise InvalidParameter("delta", f"{settled:g} is not below 1/users of {label}: choose a smaller --delta")
        content = hashlib.sha256("".join(map(_digest, files)).encode()).hexdigest()[:16]
        shown = label if labels.count(label) == 1 else name
        words = json.dumps(asdict(options), default=str, sort_keys=True)
        measured.append(RealLog(shown, words, content, users, lines, tuple(epsilons), settled, optin))
    return tuple(measured)


def _digest(file: object) -> str:
    if not isinstance(file, Path):
        return str(file)
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
