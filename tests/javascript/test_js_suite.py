"""Runs the core's own tests on Node's test runner: all vectors, good and bad, RFC vectors and the entry points."""

from __future__ import annotations

import subprocess

import pytest
from node_twin import EXTENSION, BrokenCore, Twin, node


def test_the_core_passes_its_tests():
    tests = sorted(str(path.relative_to(EXTENSION)) for path in EXTENSION.glob("tests/core_*.test.js"))
    assert len(tests) >= 3
    done = subprocess.run(
        [node(), "--no-warnings", "--test", "--test-reporter=tap", *tests],
        cwd=EXTENSION,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    assert "\n# fail 0" in done.stdout
    assert "\n# skipped 0" in done.stdout


def test_no_line_is_longer_than_a_formatted_one():
    """`make check` holds types and format; the formatter leaves long comments and strings alone."""
    for path in [*EXTENSION.glob("src/**/*.js"), *EXTENSION.glob("tests/**/*.js")]:
        assert max(map(len, path.read_text().splitlines())) <= 120, path


def test_without_node_there_is_a_failure(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AssertionError, match="node is missing"):
        node.__wrapped__()


def test_a_core_that_is_no_program_is_no_refusal(tmp_path):
    with pytest.raises(BrokenCore):
        Twin(tmp_path).one({"do": "normalize", "text": "a"})
