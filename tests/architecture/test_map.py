"""ARCHITECTURE.md against the tree: every file that it names is there, and every answer to "Where is …?" is true."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "searchblend"
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
ANSWERS = re.findall(r"^\| (.+?) \| `([\w/]+\.py)` \| `(\w+)` \|$", PAGE, re.MULTILINE)


def names_in(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def test_every_file_that_is_named_exists():
    files = {path.name for path in SOURCE.rglob("*.py")}
    named = set(re.findall(r"`([\w/.-]+\.py)`", PAGE))
    assert len(named) > 30
    missing = {
        name
        for name in named
        if not (SOURCE / name).exists() and not (ROOT / name).exists() and not ("/" not in name and name in files)
    }
    assert not missing - {"run_all.py"}


@pytest.mark.parametrize(("question", "file", "name"), ANSWERS, ids=[question for question, _, _ in ANSWERS])
def test_where_is_answered_truly(question, file, name):
    assert name in names_in(SOURCE / file)


def test_the_questions_of_a_newcomer_are_all_there():
    questions = " ".join(question for question, _, _ in ANSWERS)
    for asked in ("malformed line", "noise drawn in the service", "arrow declared", "pack built", "ε debited"):
        assert asked in questions
