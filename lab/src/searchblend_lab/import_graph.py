"""Which modules a module can run: its own file and all that it imports, directly or not, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import searchblend
import searchblend_lab


@dataclass(frozen=True, eq=False)
class ImportGraph:
    """Packages by name, each with its folder; what lies outside of them is not followed."""

    roots: Mapping[str, Path]

    def closure(self, modules: Iterable[str]) -> set[str]:
        """These modules and those of the packages that they import, also inside functions."""
        closure, waiting = set[str](), list(modules)
        while waiting:
            name = waiting.pop()
            if name not in closure:
                closure.add(name)
                waiting += self._imported(name)
        return closure

    def file(self, module: str) -> Path:
        package, *inside = module.split(".")
        path = self.roots[package].joinpath(*inside)
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def module(self, path: Path) -> str:
        """The name of the module in this file."""
        package, root = next((name, root) for name, root in self.roots.items() if path.is_relative_to(root))
        inside = path.relative_to(root).with_suffix("").parts
        return ".".join((package, *(inside[:-1] if inside[-1] == "__init__" else inside)))

    def _imported(self, module: str) -> list[str]:
        return [
            name
            for name in _names(syntax_tree(self.file(module)))
            if "." in name and name.partition(".")[0] in self.roots and self.file(name).is_file()
        ]


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # ``from package import module`` names a module, ``from module import name`` does not.
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.partition(":")[0]  # import_module("searchblend.x.y")
            if all(part.isidentifier() for part in name.split(".")):
                yield name


@lru_cache(maxsize=2048)
def syntax_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


OURS: Final = ImportGraph({package.__name__: Path(package.__path__[0]) for package in (searchblend, searchblend_lab)})
