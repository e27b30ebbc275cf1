"""Every third-party module that we import is declared, and everything declared is used: read from the sources."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from pins import LAB, declared, locked, normal, requirement

from searchblend.cli.main import EXTRA_OF

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "src": {"", "avro", "delta", "device", "http", "iceberg", "ir", "oidc", "plots", "server", "spark"},
    "lab": {""},
    "tests": {"", "plots", "server", "spark", "test", "docs", "build"},
    "benchmarks": {"", "plots", "server", "spark", "test"},
    "scripts": {"", "test", "docs"},
    "vectors": {"", "server"},
}
"""Which extras a folder may import from."""
LOADED_BY_NAME = {
    "httptools": "uvicorn's parser",
    "uvloop": "uvicorn's event loop",
    "s3fs": "fsspec, for s3://",
    "cramjam": "fastavro, for Snappy",
    "flask": "moto's server",
    "flask-cors": "moto's server",
    "pytest-xdist": "make test",
    "coverage": "make coverage",
    "mypy": "make check",
    "codespell": "make check",
    "proselint": "make check",
    "ruff": "make check",
    "zensical": "make docs",
    "hatchling": "the build backend",
    "editables": "hatchling, for `pip install --editable`",
    "atheris": "imported by tests/fuzz where it is installed",
}
ELSEWHERE = {"peers"}
"""benchmarks/peers run in environments of their own."""
TRANSITIVE = {"lz4": "ir-datasets", "py4j": "pyspark", "pyroaring": "pyiceberg", "yaml": "schemathesis"}
OPTIONAL = {"pandas", "polars", "pyarrow", "atheris"}
"""Used where they are installed; no dependency."""


@cache
def our_modules() -> set[str]:
    """Modules of our own that tests, benchmarks and scripts import by their bare names."""
    return {"searchblend", "searchblend_lab", *(path.stem for top in FOLDERS for path in (ROOT / top).rglob("*.py"))}


@cache
def third_party(folder: Path) -> dict[str, set[str]]:
    """Top-level module → files that import it, by statement or by ``import_module("literal")``."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        if ELSEWHERE & set(path.parts):
            continue
        for name in names(ast.parse(path.read_text(encoding="utf-8"))):
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names and top not in our_modules():
                found.setdefault(top, set()).add(str(path.relative_to(ROOT)))
    return found


def names(tree: ast.AST) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module" and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.append(first.value)
    return found


@cache
def installed_modules() -> Mapping[str, list[str]]:
    return packages_distributions()


def distributions_of(module: str) -> set[str]:
    return {normal(name) for name in installed_modules().get(module, [])}


def of_lab() -> set[str]:
    return {requirement(text)[0] for text in declared(LAB)[""]}


def of_extras(extras: set[str]) -> set[str]:
    return {requirement(text)[0] for extra in extras for text in declared().get(extra, [])}


@pytest.mark.parametrize("top", FOLDERS)
def test_what_is_imported_is_declared(top):
    allowed = of_lab() if top == "lab" else of_extras(FOLDERS[top])
    undeclared = {
        module: sorted(files)[:3]
        for module, files in third_party(ROOT / top).items()
        if module not in OPTIONAL and TRANSITIVE.get(module) not in allowed and not distributions_of(module) & allowed
    }
    assert undeclared == {}


def test_what_is_declared_is_used():
    imported = {name for top in FOLDERS for module in third_party(ROOT / top) for name in distributions_of(module)}
    unused = of_extras(set(declared())) - imported - LOADED_BY_NAME.keys()
    assert unused == set()


def test_what_is_declared_is_pinned():
    assert of_extras(set(declared())) <= locked().keys()
    assert of_lab() - {"searchblend"} <= locked().keys()


def test_the_lab_asks_for_the_product_of_its_own_version_and_for_nothing_unused():
    versions = [tomllib.loads((folder / "pyproject.toml").read_text())["project"]["version"] for folder in (ROOT, LAB)]
    assert versions[0] == versions[1]
    assert f"searchblend[server]=={versions[0]}" in declared(LAB)[""]
    assert of_lab() - {"searchblend"} == {
        name for module in third_party(LAB) if module not in OPTIONAL for name in distributions_of(module)
    }


def test_the_extra_that_an_error_names_is_the_one_that_brings_the_module():
    for module, extra in EXTRA_OF.items():
        brought = distributions_of(TRANSITIVE.get(module, module))
        assert brought & of_extras({extra}), module
        assert not brought & of_extras({""}), module


def test_every_module_of_an_extra_is_in_the_table():
    """Or a command would end in a traceback where the extra is not installed."""
    core = of_extras({""})
    needed = {module for module in third_party(ROOT / "src") if not distributions_of(module) & core} - OPTIONAL
    assert needed <= EXTRA_OF.keys()


def test_the_check_sees_imports_of_all_kinds():
    code = "import a.b\nfrom c.d import e\ndef f():\n    import_module('g.h')\n    import_module(name)\n"
    assert sorted(names(ast.parse(code))) == ["a.b", "c.d", "g.h"]
