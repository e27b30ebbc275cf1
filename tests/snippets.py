"""The documentation's snippets: which there are, and how each is run.

A ``console`` block holds commands after ``$``, a ``python`` block a program; both run in a folder that has the
reader's own files in it. A block that cannot run in a test has a mark in front of it, ``<!-- not run: why -->``; its
commands must still be commands that the program understands.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import time
import unittest.mock
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import searchblend
from searchblend.cli.main import main

ROOT = Path(__file__).parents[1]
_MARK = r"(?:<!-- not run(?: here)?: (?P<why>[^\n]+?) -->\n+)?"
BLOCK = re.compile(rf"^{_MARK}```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = ("console", "python")
OTHER_LANGUAGES = ("", "text", "sql", "toml", "json", "js", "javascript", "html")
"""blocks that are not run: output, files"""
TOOLS = (
    "make",
    "pip",
    "spark-submit",
    "npm",
    "node",
    "curl",
    "psql",
    "cp",
    "export",
    "web-ext",
    "podman",
    "podman-compose",
)
"""other programs that pages may call; only ``cp`` is run by the tests"""
STARTED_IN_SECONDS = 240


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    why_not_run: str | None

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command, without comments; ``.venv/bin/`` in front of a program is left out."""
        lines = [line.removeprefix("$ ") for line in self.text.splitlines() if line.startswith("$ ")]
        found = [shlex.split(line, comments=True) for line in lines]
        return [[words[0].removeprefix(".venv/bin/"), *words[1:]] for words in found]


def blocks(page: str, section: str = "") -> list[Block]:
    """The blocks of a page, or of its section with this heading."""
    text = (ROOT / page).read_text()
    if section:
        text = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    found = BLOCK.finditer(text)
    return [Block(match["language"], match["text"], match["why"]) for match in found]


def pages() -> list[str]:
    """Every page with something to run."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("proofs/*.md")]
    names = sorted(str(path.relative_to(ROOT)) for path in found)
    return [name for name in names if any(block.language in RUN for block in blocks(name))]


def unlisted_names(program: str) -> list[str]:
    """What a program takes from the package without importing it: modules there are by accident, not by promise.

    Another program in the same interpreter may have loaded them, so a run does not show that they are missing.
    """
    tree = ast.parse(program)
    imported = [name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    dotted = [name.name for name in imported if name.name.startswith("searchblend") and name.name != "searchblend"]
    ours = {name.asname or name.name for name in imported if name.name == "searchblend"}
    taken = [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ours
    ]
    return [*dotted, *(name for name in taken if name not in dir(searchblend))]


class Reader:
    """Types what a page says, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._servers: list[subprocess.Popen[str]] = []

    @property
    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "COLUMNS": "120"}

    def type(self, words: list[str]) -> str:
        """Run a command and give back what it printed; a server goes on running until the page ends."""
        if words[:2] == ["searchblend", "serve"] and "--once" not in words:
            self._serve(words)
            return ""
        if words[0] == "searchblend":
            return self._command(words[1:])
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False, timeout=560
        )
        assert done.returncode == 0, f"{shlex.join(words)}: {done.stderr}"
        return done.stdout

    def run(self, program: str) -> str:
        """Run a Python program with nothing defined and give back what it printed.

        What only a new interpreter would miss, a module that another program has loaded, is seen in its source:
        ``unlisted_names``.
        """
        own: dict[str, object] = {"__name__": "__main__"}
        with self._at_the_keyboard() as (printed, _), warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # as Python does unless it is asked
            exec(compile(program, "<snippet>", "exec"), own)
            own.clear()
        return printed.getvalue()

    def _command(self, words: list[str]) -> str:
        with self._at_the_keyboard() as (printed, errors):
            code = main(words)
        assert code == 0, f"searchblend {shlex.join(words)}: {errors.getvalue()}"
        return printed.getvalue()

    @contextlib.contextmanager
    def _at_the_keyboard(self) -> Iterator[tuple[io.StringIO, io.StringIO]]:
        """In this process, which has loaded everything already: what is printed, and the errors."""
        printed, errors = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(self.folder),
            unittest.mock.patch.dict(os.environ, self.environment),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(errors),
        ):
            yield printed, errors

    def _serve(self, words: list[str]) -> None:
        log = self.folder / f"server-{len(self._servers)}.log"
        with log.open("w") as errors:
            server = subprocess.Popen(
                words, cwd=self.folder, env=self.environment, stderr=errors, stdout=errors, text=True
            )
        self._servers.append(server)
        give_up = time.monotonic() + STARTED_IN_SECONDS
        while '"listening"' not in log.read_text() and time.monotonic() < give_up:
            assert server.poll() is None, f"{shlex.join(words)}: {log.read_text()}"
            time.sleep(0.1)
        assert server.poll() is None

    def close(self) -> None:
        for server in self._servers:
            server.terminate()
            server.wait(timeout=240)


@contextlib.contextmanager
def reader(folder: Path) -> Iterator[Reader]:
    found = Reader(folder)
    try:
        yield found
    finally:
        found.close()
