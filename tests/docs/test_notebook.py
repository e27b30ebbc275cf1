"""The notebook of the documentation runs from top to bottom.

Its code cells are executed in their order in one namespace of this process, and what a cell ends with is shown as a
notebook would show it. No kernel is started: that needs packages which nothing else here needs.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs/tutorial/notebook.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> object:
    """Execute a cell; the value of its last expression, if it ends with one."""
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)
    return eval(compile(last, str(NOTEBOOK), "eval"), names) if last else None


def test_the_notebook_goes_from_a_table_to_a_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell for cell in cells if cell["outputs"] or cell["execution_count"]] == []  # committed without outputs
    names: dict[str, Any] = {}
    shown = []
    for cell in cells:
        value: Any = run_cell(cell["source"], names)
        if hasattr(value, "_repr_png_"):
            shown.append(value._repr_png_())
        elif hasattr(value, "_repr_html_"):
            shown.append(value._repr_html_())
    assert [type(one) for one in shown] == [bytes, str, bytes, str]  # plan, release, plot, ledger
    assert names["graph"].columns()["query"] == ["weather", "news", "maps", "train times"]
    assert all(check.holds for check in names["checks"])
    assert names["answers"] == ["weather.example"]
    assert "would exceed the cap" in names["refused"]
    names["ledger"].close()
