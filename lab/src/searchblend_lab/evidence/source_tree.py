"""What a module reaches by imports, and which generators of random numbers it uses: read from the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import searchblend
from searchblend_lab.import_graph import ImportGraph, syntax_tree

PACKAGE: Final = "searchblend"
PRODUCT: Final = Path(searchblend.__path__[0])
"""the package that is audited"""
GENERATORS: Final = frozenset({"random", "numpy.random", "scipy.stats", "torch", "randomgen"})
SAFE: Final = frozenset({"SystemRandom"})
"""names of ``random`` that ask the operating system"""
_IN_SQL: Final = re.compile(
    r"\b(random|setseed|randn?|gen_random_uuid|uuid|uniform)\s*\(|\bTABLESAMPLE\b|\bUSING SAMPLE\b"
)
_SQL: Final = re.compile(r"\b(SELECT|INSERT|CREATE|FROM|WHERE|ORDER BY)\b")


@dataclass(frozen=True)
class Use:
    """A seedable generator in the source."""

    module: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} ({self.what})"


def module_paths(folder: str, root: Path = PRODUCT) -> list[Path]:
    """The modules of one folder of the package, those of its subfolders too."""
    return sorted(path for path in (root / folder).rglob("*.py"))


def reachable(starts: Iterable[Path], root: Path = PRODUCT) -> set[Path]:
    """The modules of the package that these import, directly or not."""
    graph = ImportGraph({PACKAGE: root})
    return {graph.file(name) for name in graph.closure(map(graph.module, starts))}


def generators_in(path: Path, root: Path = PRODUCT) -> list[Use]:
    """Every import or use of a generator that can be seeded, also in SQL."""
    name = str(path.relative_to(root))
    tree = syntax_tree(path)
    return [Use(name, line, what) for line, what in [*_in_imports(tree), *_in_attributes(tree), *_in_texts(tree)]]


def _in_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in GENERATORS - {"random"}:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module in GENERATORS:
            for alias in node.names:
                if alias.name not in SAFE:
                    yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.ImportFrom) and node.module in ("numpy", "scipy"):
            for alias in node.names:
                if f"{node.module}.{alias.name}" in GENERATORS:
                    yield node.lineno, f"{node.module}.{alias.name}"


def _in_attributes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        owner = aliases.get(node.value.id, "")
        if owner == "random" and node.attr not in SAFE:
            yield node.lineno, f"random.{node.attr}"
        elif f"{owner}.{node.attr}" in GENERATORS:
            yield node.lineno, f"{owner}.{node.attr}"


def _aliases(tree: ast.Module) -> dict[str, str]:
    return {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }


def _in_texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if _SQL.search(node.value) and (found := _IN_SQL.search(node.value)) is not None:
            yield node.lineno, f"SQL: {found[0]}"
