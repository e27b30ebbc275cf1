"""The one place where a module is imported by its name in a string, which no editor and no type checker can follow.

Two need it: the root package, whose names are loaded when first used, and a method or an algorithm of the user's own,
which is named on a command line. Standard library only.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def attribute_of(module: str, name: str) -> Any:
    """``name`` of a module; ``ImportError`` or ``AttributeError`` if there is none."""
    return getattr(import_module(module), name)
