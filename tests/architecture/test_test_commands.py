"""The commands that run the tests: no part hides another, and a test that fails now and then is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import flake
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("failing", ["spark", "rest", "none"])
def test_every_part_runs_and_one_failure_fails_the_whole(tmp_path: Path, failing: str):
    """``pytest`` is exchanged for a program that says which part it was asked for; one of them fails."""
    program = tmp_path / "bin/pytest"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in *"--ignore tests/spark"*) part=rest ;; *) part=spark ;; esac\n'
        f'echo "ran: $part"; test $part != {failing}\n'
    )
    program.chmod(0o755)
    command = ["make", "test", f"VENV={tmp_path}", "--old-file=install", "--old-file=browsers"]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=False, timeout=240)
    assert (done.returncode == 0) is (failing == "none"), done.stderr
    assert {line for line in done.stdout.splitlines() if line.startswith("ran: ")} == {"ran: rest", "ran: spark"}


def test_failures_are_listed_by_test_with_their_runs(tmp_path: Path):
    """A suite that fails in its second run only, in a test whose name has blanks in it."""
    command = (
        f"import sys, pathlib; runs = pathlib.Path({str(tmp_path / 'runs')!r}); runs.open('a').write('x');"
        "bad = runs.read_text() == 'xx'; print('FAILED tests/a.py::test_a[one CR] - assert 1 == 2' if bad else 'good');"
        "sys.exit(bad)"
    )
    words = [sys.executable, flake.__file__, "--runs", "3", "--busy", "1", "--logs", str(tmp_path / "logs"), "--"]
    done = subprocess.run(
        [*words, sys.executable, "-c", command], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 1, done.stderr
    assert "tests/a.py::test_a[one CR]: failed in 1 of 3 runs (2)" in done.stdout
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["run-1.log", "run-2.log", "run-3.log"]


def test_a_run_that_ends_before_its_tests_is_a_failure(tmp_path: Path):
    assert flake.run_once([sys.executable, "-c", "raise SystemExit(2)"], tmp_path / "log") == [flake.NO_TEST]
    assert flake.run_once([sys.executable, "-c", ""], tmp_path / "log") == []


def test_a_test_that_fails_twice_is_named_once():
    said = "FAILED tests/a.py::b - x - y\nERROR tests/a.py::b\nFAILED tests/c.py::d[e - f]\nERROR: not a test\n"
    assert flake.failed_tests(said)[0] == "tests/a.py::b"
    assert len(flake.failed_tests(said)) == 2
