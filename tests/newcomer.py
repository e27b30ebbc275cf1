"""A reader who starts with README's install lines and an empty folder, in an environment of their own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from made_once import made_once
from snippets import ROOT, Block, Reader, blocks

BUILT_HERE = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
"""pip takes what the package needs from the tests' environment, which requirements.lock describes: no download"""


class Newcomer(Reader):
    """Types commands into a shell that has nothing of the tests' but what README's install lines bring."""

    def __init__(self, folder: Path, programs: Path) -> None:
        super().__init__(folder)
        self.programs = programs

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        return {**kept, **BUILT_HERE, "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}

    def type(self, words: list[str]) -> str:
        """Run a command; pip in the checkout, as README says, all others in the newcomer's folder."""
        place = ROOT if words[0] == "pip" else self.folder
        done = subprocess.run(
            words, cwd=place, env=self.environment, capture_output=True, text=True, check=False, timeout=560
        )
        assert done.returncode == 0, f"{shlex.join(words)}: {done.stderr}"
        return done.stdout

    def run(self, program: str) -> str:
        return self.type(["python", "-c", program])


def newcomer(factory: pytest.TempPathFactory, folder: Path) -> Newcomer:
    """A newcomer with an empty folder, for whom README's first section came out as it says."""
    place = made_once(factory, "newcomer", lambda made: _follow_the_readme(made, factory.mktemp("environment")))
    return Newcomer(folder, Path((place / "programs").read_text()))


def _follow_the_readme(folder: Path, environment: Path) -> None:
    """Make an environment that sees the locked packages, and type what README's first section says."""
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
    somebody = Newcomer(folder, environment / "bin")
    for words in commands(blocks("README.md", "Start")):
        somebody.type(words)
    (folder / "programs").write_text(str(environment / "bin"))


def commands(found: list[Block]) -> list[list[str]]:
    return [words for block in found if block.language == "console" for words in block.commands]
