"""The commands that run the tests: no part hides another, a test that fails now and then is named, none is left out."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import flake
import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
_NOT_IN_QUICK = re.compile(r"^ *(?:from|import) (?:playwright|pyspark)\b", re.MULTILINE)
_SLEEP = re.compile(r"\b(?:sleep|wait_for_timeout)\b")
ATTACKS = (
    "replay",
    "key_swap",
    "header_flood",
    "idle_sockets",
    "forbidden_characters",  # NUL and its kin
    "formulas",
    "poisoned_row",
    "clock_jump",
    "two_curators",
    "frozen_database",
    "restricted_roles",
)
MOMENTS = {
    "test_ledger_kills.py": "work that takes a while, so that kills hit it",
    "test_extension_chromium.py": "somebody looks at a page before it is closed",
}
"""files that sleep outside a loop, and why nothing depends on how long"""


def make(*words: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(["make", *words], cwd=ROOT, env=own, capture_output=True, text=True, check=False, timeout=240)


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
    done = make("test", f"VENV={tmp_path}", "--old-file=ready")
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


def test_quick_needs_neither_browser_nor_database_server_nor_spark():
    """A test that uses PostgreSQL without its mark fails in the folders that conftest.py names (``databases``)."""
    recipe = make("--dry-run", "quick", "--old-file=install").stdout
    (words,) = (shlex.split(line) for line in recipe.splitlines() if "pytest -q" in line)
    folders = [Path(word) for word in words if word.startswith("tests/")]
    assert "not database_server" in words[words.index("-m") + 1]
    named = f"QUICK = {tuple(folder.name for folder in folders)}".replace("'", '"')
    assert named in (TESTS / "conftest.py").read_text()
    texts = {path: path.read_text() for folder in folders for path in (ROOT / folder).rglob("*.py")}
    assert len(texts) > 100
    assert [path.name for path, text in texts.items() if _NOT_IN_QUICK.search(text)] == []


def test_make_slow_plays_every_attack_and_the_long_fuzz():
    assert {f"test_{name}.py" for name in ATTACKS} <= {path.name for path in (TESTS / "attack").glob("*.py")}
    recipe = make("--dry-run", "slow").stdout.splitlines()
    (fuzz,) = (line for line in recipe if "pytest -m slow" in line)
    assert shlex.split(fuzz)[-2:] == ["--ignore", "tests/attack"]
    assert [line for line in recipe if "pytest" in line and line.endswith(" tests/attack") and line != fuzz]


def test_no_test_waits_for_a_moment_in_place_of_a_state():
    """A sleep stands in a loop that looks again, or is as long as chance or the test's own pace says."""
    texts = {path: path.read_text() for path in TESTS.rglob("*.py")}
    sleeping = {path: ast.parse(text) for path, text in texts.items() if _SLEEP.search(text)}
    assert {path.name for path, tree in sleeping.items() if _fixed_sleeps(tree)} == set(MOMENTS)


def test_the_check_sees_a_sleep_outside_a_loop():
    sleeps = "import time\ntime.sleep(1)\nwhile x():\n    time.sleep(1)\ntime.sleep(pace)\n"
    assert [call.lineno for call in _fixed_sleeps(ast.parse(sleeps))] == [2]


def _fixed_sleeps(tree: ast.AST) -> list[ast.Call]:
    """Calls that wait for so many seconds, once; none at all (``sleep(0)``) only lets others have their turn."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.While | ast.For)]
    looked_again = {id(inner) for loop in loops for inner in ast.walk(loop)}
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and _SLEEP.search(ast.unparse(node.func))
        and id(node) not in looked_again
        and any(isinstance(argument, ast.Constant) and argument.value for argument in node.args)
    ]
