"""The prose of results: every template is used once, with exactly the values that it names."""

from __future__ import annotations

import ast
from pathlib import Path

from jinja2 import meta

from searchblend_lab.papers import prose as module
from searchblend_lab.papers.prose import prose

PAPERS = Path(module.__file__).parent


def calls() -> dict[str, set[str | None]]:
    """template → names of the values that code gives it"""
    found: dict[str, set[str | None]] = {}
    for path in PAPERS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "prose":
                (template,) = node.args
                assert isinstance(template, ast.Constant)
                assert template.value not in found, "one template, one call"
                found[template.value] = {keyword.arg for keyword in node.keywords}
    return found


def test_every_template_gets_the_values_that_it_names():
    environment = module._environment()
    named = {
        path.stem: meta.find_undeclared_variables(environment.parse(path.read_text())) - set(environment.globals)
        for path in (PAPERS / "templates" / "text").glob("*.txt")
    }
    assert len(named) > 25
    assert named == calls()


def test_line_breaks_are_blanks_and_numbers_are_formatted_as_python_does():
    failed = [("it falls", "3 of 4", "too few runs"), ("it rises", "1 of 2", "")]
    assert prose("claims", verdicts=[1, 2, 3], failed=failed, fitted=[]) == (
        "1 of 3 claims hold for method paper on the synthetic logs. Does not hold: “it falls” (3 of 4); too few runs. "
        "Does not hold: “it rises” (1 of 2)."
    )
    assert prose("claims", verdicts=[1], failed=[], fitted=["it fits"]) == (
        "1 of 1 claims hold for method paper on the synthetic logs, 1 of them because a parameter of the synthetic "
        "users was fitted to it."
    )
    assert " in 12.5 % of these honest runs." in prose("groups", sentences=[], covered=[0.9], alarms=[0.25, 0.0])
