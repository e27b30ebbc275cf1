"""Whoever closes our output gets the files and the exit code all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CLOSED = {"out": ">&-", "all": "<&- >&- 2>&-"}


def ended(closed: str, *arguments: object) -> tuple[int, str]:
    """The exit code, and what was said on stderr."""
    command = [sys.executable, "-m", "searchblend.cli", *map(str, arguments)]
    done = subprocess.run(["sh", "-c", f'exec "$@" {CLOSED[closed]}', "sh", *command], capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.thorough
def test_a_run_that_is_paid_for_is_delivered_to_a_closed_output(tmp_path: Path):
    log, out, ledger = (tmp_path / name for name in ("log.tsv", "out", "ledger"))
    log.write_text("user\tquery\turl\n" + "".join(f"{i}\tweather\thttp://a.example\n" for i in range(300)))
    options = ("--opt-in", "0.5", "--delta", "1e-4", "--ledger", ledger, "--release-id", "b")
    code, said = ended("out", "run", log, "-o", out, *options)
    assert (code, "Traceback" in said) == (0, False)
    assert {"result.json", "statement.json"} <= {path.name for path in out.iterdir()}


@pytest.mark.parametrize("closed", CLOSED)
def test_misuse_ends_as_ever_with_a_closed_output(closed: str):
    code, said = ended(closed, "stats", "--no-such-option")
    assert (code, "Traceback" in said) == (2, False)
    assert ("searchblend: error: " in said) is (closed == "out")
