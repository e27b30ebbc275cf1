"""The prose of results, from templates: numbers in, sentences out.

A template in ``templates/text`` holds the sentences; code computes what they say. ``{{ x|f(".3f") }}`` formats a number
as Python does. Line breaks of a template are blanks.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_FOLDER: Final = Path(__file__).parent / "templates" / "text"


@cache
def _environment() -> Environment:
    environment = Environment(  # noqa: S701  # Markdown and pages escape it themselves
        loader=FileSystemLoader(_FOLDER), undefined=StrictUndefined
    )
    environment.filters["f"] = format
    environment.globals.update(min=min, max=max, len=len, sum=sum)
    return environment


def prose(template: str, **values: Any) -> str:
    return " ".join(_environment().get_template(f"{template}.txt").render(**values).split())
