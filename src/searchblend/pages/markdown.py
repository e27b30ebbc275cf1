"""Documents in Markdown: the templates of ``templates/*.md``, in which everything that is filled in is escaped."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from searchblend.core.visible import visible

_TEMPLATES: Final = Path(__file__).parent / "templates"
_MARKS: Final = re.compile(r"[\\`*_\[\]<>|~$]")


class Markdown(str):
    """A text that is Markdown already."""


def markdown(text: object) -> str:
    """A text of somebody's as it stands in one line of Markdown: no mark of it means anything."""
    return text if isinstance(text, Markdown) else _MARKS.sub(r"\\\g<0>", _line(text))


def code(text: object) -> Markdown:
    """A name as code, where no escape would be heeded: a backtick ends it and a bar ends a cell, so neither stays."""
    return Markdown(f"`{_line(text).translate({ord('`'): chr(39), ord('|'): '/'})}`")


def _line(text: object) -> str:
    return " ".join(visible(str(text)).split())


def render_markdown(template: str, **values: Any) -> str:
    """A document; ``values`` are foreign, so that all of them are escaped and none may stand at a line's beginning."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(  # noqa: S701  # Markdown has marks of its own, which finalize escapes
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        finalize=markdown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters["code"] = code
    return environment
