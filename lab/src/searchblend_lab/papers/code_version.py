"""A digest of all the code that a module can run, and of the libraries whose arithmetic enters results."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from typing import Final

from searchblend_lab.import_graph import OURS, ImportGraph

_LIBRARIES: Final = ("numpy", "scipy")


@cache
def code_version(module: str, graph: ImportGraph = OURS) -> str:
    digest = hashlib.sha256("\n".join(version(library) for library in _LIBRARIES).encode())
    for name in sorted(graph.closure([module])):
        digest.update(name.encode())
        digest.update(graph.file(name).read_bytes())
    return digest.hexdigest()[:16]
