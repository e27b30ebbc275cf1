"""The JavaScript core in a Node process that answers like the Python package (extension/tests/twin.js)."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import threading
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


class NodeProcess:
    """A running extension/tests/twin.js, which answers for any folder of a core."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [node(), "--no-warnings", "tests/twin.js"],
            cwd=EXTENSION,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )

    def ask(self, line: bytes, seconds: float) -> bytes:
        """The answer to a line, which Node reads to its end before it writes.

        Raises:
            subprocess.TimeoutExpired: There was none in time; the process is ended.
            BrokenCore: The process has ended itself.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, end)
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(line)
                self._process.stdin.flush()
            answer = self._process.stdout.readline()
        finally:
            timer.cancel()
        if answer.endswith(b"\n"):
            return answer
        self._process.wait()
        if late.is_set():
            raise subprocess.TimeoutExpired(self._process.args, seconds)
        self._errors.seek(0)
        raise BrokenCore(self._errors.read().decode()[-2000:])

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()


class Nodes:
    """The one process of Node that all twins ask, started when it is first needed and after an end."""

    def __init__(self) -> None:
        self._process: NodeProcess | None = None

    def running(self) -> NodeProcess:
        if self._process is None or not self._process.is_running:
            self.close()
            self._process = NodeProcess()
        return self._process

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None


NODES = Nodes()


class Twin:
    """Asks many questions at once; ``core`` exchanges the folder of the core."""

    def __init__(self, core: Path = CORE, *, seconds: int = 300) -> None:
        self._core, self._seconds = core, seconds

    def ask(self, questions: Iterable[Mapping[str, Any]]) -> list[Any]:
        """One answer for each question; a crash of the core is a failure whatever was asked."""
        asked = {"core": f"{self._core.as_uri()}/", "questions": list(questions)}
        said = json.loads(NODES.running().ask(f"{json.dumps(asked)}\n".encode("ascii"), self._seconds))
        if "broken" in said:
            raise BrokenCore(said["broken"])
        return [answer_of(one) for one in said["answers"]]

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
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True, timeout=240).stdout
    major = re.match(r"v(\d+)\.", version)
    assert int(major[1] if major else 0) >= OLDEST_NODE, f"node {version.strip()}: expected {OLDEST_NODE} or later"
    return found
