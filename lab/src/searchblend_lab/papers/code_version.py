"""A digest of all the code that a module can run: its own file and every file of both packages that it imports."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

import searchblend
import searchblend_lab

_ROOTS: Final = {package.__name__: Path(package.__path__[0]) for package in (searchblend, searchblend_lab)}
_OURS: Final = tuple(f"{package}." for package in _ROOTS)
_LIBRARIES: Final = ("numpy", "scipy")
"""whose arithmetic enters results"""


@cache
def code_version(module: str) -> str:
    digest = hashlib.sha256("\n".join(version(library) for library in _LIBRARIES).encode())
    for name in sorted(import_closure(module)):
        digest.update(name.encode())
        digest.update(_file(name).read_bytes())
    return digest.hexdigest()[:16]


def import_closure(module: str) -> set[str]:
    """This module and those of both packages that it imports, directly or not, also inside functions."""
    closure, waiting = set[str](), [module]
    while waiting:
        name = waiting.pop()
        if name not in closure:
            closure.add(name)
            waiting += _imported(name)
    return closure


@cache
def _imported(module: str) -> tuple[str, ...]:
    imported: list[str] = []
    for node in ast.walk(ast.parse(_file(module).read_bytes())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            # ``from package import module`` names a module, ``from module import name`` does not.
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        imported += (
            name for name in names if name.partition(".")[0] in _ROOTS and "." in name and _file(name).is_file()
        )
    return tuple(imported)


def _file(module: str) -> Path:
    package, *inside = module.split(".")
    path = _ROOTS[package].joinpath(*inside)
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
