"""What result pages share: templates, one HTML file that needs nothing else, its tables, and numbers for people.

Style and script are inside, and everything foreign is forbidden by the page's own policy, which allows exactly these
two by their hashes. Strings of a release are foreign: a query may be ``<script>`` and a URL ``javascript:``. They enter
a page as escaped text only, never as a link or an attribute that is followed; an unknown name in a template is an
error. The console and the lab render with the same environment. Documents in Markdown (``templates/*.md``) have one of
their own, in which everything that is filled in is escaped, too.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from searchblend.core.visible import visible

_PAGES: Final = Path(__file__).parent / "templates"
_SMALL: Final = 1e-3
_STRESSED: Final = re.compile(r"\*([^\s*](?:[^*]*[^\s*])?)\*")
_MARKS: Final = re.compile(r"[\\`*_\[\]<>|~$]")
MOST_ROWS: Final = 1_000
"""Of one table: a page is for reading, the tables beside it are for programs."""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: its heading, and whether its cells are numbers."""

    heading: str
    number: bool = False


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and the number to sort it by."""

    shown: str
    value: float | None = None
    tone: str = ""
    """``yes`` or ``no`` for a verdict."""


@dataclass(frozen=True)
class PageTable:
    """A table of a page."""

    label: str
    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Cell]]
    name: str = ""
    """Its id in the page, if it can be searched."""
    more: str = ""
    """Where the rows are that it does not show."""


class Assets(NamedTuple):
    """Style and script of a page, and the policy that allows them and nothing else."""

    style: str
    script: str
    policy: str


@cache
def page_assets() -> Assets:
    style, script = asset("page.css"), asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{script_hash(style)}'; script-src '{script_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return Assets(style, script, policy)


@cache
def asset(name: str) -> str:
    return files("searchblend.pages").joinpath(name).read_text(encoding="utf-8")


def script_hash(string: str) -> str:
    """How a content security policy names a style or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(string.encode()).digest()).decode()}"


@cache
def environment(folder: Path = _PAGES) -> Environment:
    """Templates of a folder; those of result pages can be extended and imported from anywhere."""
    environment_ = Environment(
        loader=FileSystemLoader([folder, _PAGES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment_.filters.update(foreign=foreign, code=code)
    return environment_


def render(template: str, folder: Path = _PAGES, **values: Any) -> str:
    return environment(folder).get_template(template).render(**values) + "\n"


def foreign(string: str) -> Markup:
    """A string of another person's: escaped, invisible characters shown, its writing direction kept to itself."""
    return Markup(f"<bdi>{escape(visible(string))}</bdi>")  # noqa: S704  # escaped here


def code(string: str) -> Markup:
    """Escaped, with `words` in backticks as code, and *words* in asterisks stressed."""
    parts = str(escape(string)).split("`")
    marked = (f"<code>{part}</code>" if i % 2 else _STRESSED.sub(r"<em>\1</em>", part) for i, part in enumerate(parts))
    return Markup("".join(marked))  # noqa: S704  # escaped here


def small_number(value: float) -> str:
    """A δ for people: 10⁻⁵ and not 1e-05."""
    if not 0 < value < _SMALL:
        return f"{value:g}"
    factor, _, power = f"{value:.2e}".partition("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    short = f"{float(factor):g}"
    return f"10{raised}" if short == "1" else f"{short}·10{raised}"


def rows_left_out(total: int, file: str) -> str:
    """Where the rest is, if a table shows only the first rows."""
    return f"The first {MOST_ROWS:,} of {total:,}; {file} has all of them." if total > MOST_ROWS else ""


class Markdown(str):
    """A text that is Markdown already."""


def markdown(text: object) -> str:
    """A foreign string as it stands in one line of Markdown: no mark of it means anything."""
    return text if isinstance(text, Markdown) else _MARKS.sub(r"\\\g<0>", _line(text))


def markdown_code(text: object) -> Markdown:
    """A name as code, where no escape would be heeded: a backtick ends it and a bar ends a cell, so neither stays."""
    return Markdown(f"`{_line(text).translate({ord('`'): chr(39), ord('|'): '/'})}`")


def _line(text: object) -> str:
    return " ".join(visible(str(text)).split())


def render_markdown(template: str, **values: Any) -> str:
    """A document; ``values`` are foreign, so that all of them are escaped and none may stand at a line's beginning."""
    return _markdown_environment().get_template(template).render(**values)


@cache
def _markdown_environment() -> Environment:
    environment = Environment(  # noqa: S701  # Markdown has marks of its own, which finalize escapes
        loader=FileSystemLoader(_PAGES),
        undefined=StrictUndefined,
        finalize=markdown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters["code"] = markdown_code
    return environment
