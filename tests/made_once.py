"""Folders that take seconds to make and that tests only read: one for all processes of a test session."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder of this name, which the first who asks for it makes; the others wait.

    Workers of pytest-xdist have temporary folders beside each other. What was not finished is made again, in a folder
    of its own, so that every process that asks sees why it fails.
    """
    base = factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (common / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (common / name).exists():
            folder = factory.mktemp(name)
            make(folder)
            folder.rename(common / name)
    return common / name


def documentation(factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The site as ``make docs`` builds it, and what Zensical said."""
    folder = made_once(factory, "documentation", _build_documentation)
    return folder / "site", (folder / "output").read_text()


def _build_documentation(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/documentation/build_site.py"), str(folder / "site")],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    (folder / "output").write_text(done.stdout + done.stderr)
