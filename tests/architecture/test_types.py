"""No function without types; mypy checks that they are right, this that they are there."""

from __future__ import annotations

import ast
from pathlib import Path

TREE = Path(__file__).parents[2]
SOURCES = [path for top in ("src", "lab/src") for path in (TREE / top).rglob("*.py")]


def untyped(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            missing = [a.arg for a in arguments if a.annotation is None and a.arg not in {"self", "cls"}]
            if missing or node.returns is None:
                found.append(f"{node.name}:{node.lineno}")
    return found


def test_every_function_is_typed():
    assert {str(path): names for path in SOURCES if (names := untyped(ast.parse(path.read_text())))} == {}


def test_the_check_sees_an_untyped_function():
    assert untyped(ast.parse("def f(x) -> int: ...")) == ["f:1"]
