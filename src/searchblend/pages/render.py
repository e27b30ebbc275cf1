"""Templates to HTML, for result pages, the console and the lab: everything is escaped, and an unknown name is an error.

Texts of a release are foreign: a query may be ``<script>`` and a URL ``javascript:``. They enter a page as escaped
text only, never as a link or an attribute that is followed.
"""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from searchblend.core.visible import visible

_PAGES: Final = Path(__file__).parent / "templates"


@cache
def environment(folder: Path = _PAGES) -> Environment:
    """Templates of a folder; those of result pages can be extended and imported from anywhere."""
    made = Environment(
        loader=FileSystemLoader([folder, _PAGES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(foreign=foreign, code=code)
    return made


def render(template: str, folder: Path = _PAGES, **values: Any) -> str:
    return environment(folder).get_template(template).render(**values) + "\n"


def foreign(text: str) -> Markup:
    """A string of another person's: escaped, invisible characters shown, its writing direction kept to itself."""
    return Markup(f"<bdi>{escape(visible(text))}</bdi>")  # noqa: S704  # escaped here


def code(text: str) -> Markup:
    """Escaped, with `words` in backticks as code."""
    parts = escape(text).split("`")
    return Markup("".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts)))  # noqa: S704
