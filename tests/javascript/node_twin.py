"""The JavaScript core in a Node process that answers like the Python package (extension/tests/twin.js)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

EXTENSION = Path(__file__).parents[2] / "extension"
CORE = EXTENSION / "src" / "core"
OLDEST_NODE = 20


class Refused:
    """What the twin answers when the core refuses; equal to another by the error's name and its reason."""

    def __init__(self, error: str, reason: str | None = None, says: str = "") -> None:
        self.error, self.reason, self.says = error, reason, says

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refused) and (self.error, self.reason) == (other.error, other.reason)

    def __hash__(self) -> int:
        return hash((self.error, self.reason))

    def __repr__(self) -> str:
        return f"Refused({self.error}, {self.reason})"


class BrokenCore(RuntimeError):
    """The core is no program."""


class Twin:
    """Asks many questions in one run of Node; ``core`` exchanges the folder of the core."""

    def __init__(self, core: Path = CORE, *, seconds: int = 300) -> None:
        self._node, self._core, self._seconds = node(), core, seconds

    def ask(self, questions: Iterable[Mapping[str, Any]]) -> list[Any]:
        """One answer for each question; a crash of the core is a failure whatever was asked."""
        lines = "".join(json.dumps(question) + "\n" for question in questions)
        environment = {**os.environ, "SEARCHBLEND_CORE": f"{self._core.as_uri()}/"}
        done = subprocess.run(
            [self._node, "--no-warnings", "tests/twin.js"],
            cwd=EXTENSION,
            env=environment,
            input=lines.encode("ascii"),
            capture_output=True,
            timeout=self._seconds,
            check=False,
        )
        if done.returncode != 0:
            raise BrokenCore(done.stderr.decode()[-2000:])
        return [answer_of(json.loads(line)) for line in done.stdout.decode("utf-8").rstrip("\n").split("\n")]

    def one(self, question: Mapping[str, Any]) -> Any:
        return self.ask([question])[0]


def answer_of(line: Mapping[str, Any]) -> Any:
    assert "crashed" not in line, line["crashed"]
    return Refused(line["refused"], line.get("reason"), line["says"]) if "refused" in line else line.get("answer")


@cache
def node() -> str:
    """Where Node is. Without it nothing of the JavaScript is tested, so its absence is a failure and no skip."""
    found = shutil.which("node")
    assert found, (
        f"node is missing: install Node.js {OLDEST_NODE} or later; the JavaScript core cannot be tested without"
    )
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    major = re.match(r"v(\d+)\.", version)
    assert int(major[1] if major else 0) >= OLDEST_NODE, f"node {version.strip()}: expected {OLDEST_NODE} or later"
    return found
