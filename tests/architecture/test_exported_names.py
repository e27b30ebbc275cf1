"""``__all__`` is what the package exports: no more, no less."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import searchblend

SOURCE = Path(searchblend.__file__)


def type_checking_names() -> dict[str | None, str | None]:
    """Name → module, as Python itself reads the stub."""
    tree = ast.parse(SOURCE.with_suffix(".pyi").read_text())
    return {alias.asname: node.module for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_every_name_of_all_can_be_had():
    for name in searchblend.__all__:
        assert getattr(searchblend, name) is not None


def test_all_lazy_table_and_type_checkers_agree():
    assert len(searchblend.__all__) > 60
    assert searchblend.__all__ == list(type_checking_names())
    assert type_checking_names() == searchblend._MODULE_OF


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no_such_name"):
        searchblend.no_such_name  # noqa: B018


def test_public_functions_and_classes_say_what_they_do():
    silent = [
        name
        for name in searchblend.__all__
        if (inspect.isfunction(value := getattr(searchblend, name)) or inspect.isclass(value)) and not value.__doc__
    ]
    assert silent == []


def test_local_report_loads_no_third_party_module():
    code = (
        "import sys; from searchblend import local_report, Budget, BlenderParams, HeadList, Record;"
        "local_report([Record('q', 'u')], HeadList({'q': ['u']}), BlenderParams(Budget(4.0, 1e-5)));"
        "assert not {'numpy', 'rich', 'duckdb'} & set(sys.modules), 'third-party modules on the device'"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
