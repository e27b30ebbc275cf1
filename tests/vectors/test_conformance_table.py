"""The table of conformance names every file of vectors, code that exists, and the tests of both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VECTORS = sorted(path.stem for path in (ROOT / "vectors/v1").glob("*.json"))
MESSAGES = ("head_list", "report_bytes", "sealed_record", "manifest", "pack", "pack_delta", "signed_pack")
TABLE = (ROOT / "docs/reference/protocol.md").read_text().split("## Conformance", 1)[1]
ROWS = [
    [re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")]
    for line in TABLE.splitlines()
    if line.startswith("| `")
]
PYTHON_TESTS = "".join(
    path.read_text() for path in (ROOT / "tests/vectors").glob("test_*.py") if path != Path(__file__)
)
JAVASCRIPT_TESTS = "".join(path.read_text() for path in (ROOT / "extension/tests").glob("*.js"))


def test_every_file_is_in_the_table_once():
    assert sorted(name for vectors, _, _ in ROWS for name in vectors) == VECTORS


@pytest.mark.parametrize("message", MESSAGES)
def test_every_message_has_good_and_bad_vectors(message):
    assert {message, f"bad_{message}"} <= set(VECTORS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][0])
def test_the_code_exists_and_the_vectors_are_replayed(row):
    vectors, python, javascript = row
    assert all((ROOT / "src/searchblend" / path).exists() for path in python)
    assert all(list((ROOT / "extension/src").rglob(name)) for name in javascript)
    for name in vectors:
        assert f'"{name}"' in PYTHON_TESTS or f"{name}.json" in PYTHON_TESTS, f"{name}: no Python test replays it"
        if javascript:
            assert f'"{name}"' in JAVASCRIPT_TESTS, f"{name}: no JavaScript test replays it"
