"""One HTML file that needs nothing else: style and script inside, everything foreign forbidden by its own policy.

Texts of a release are foreign too: a query may be ``<script>`` and a URL ``javascript:``. They enter a page as escaped
text only, never as a link or an attribute that is followed; the policy allows the one script below by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

from searchblend.core.visible import visible

"""its name in the folder of a release"""
_SMALL: Final = 1e-3
MOST_ROWS: Final = 1_000
"""of one table; a page is for reading, the tables beside it are for programs"""


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
    """``yes`` or ``no`` for a verdict"""


def html_page(title: str, body: Iterable[str]) -> str:
    """The whole file. ``body`` is markup; its texts are escaped already."""
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{script_hash(style)}'; script-src '{script_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"{''.join(body)}<script>{script}</script>\n</body>\n</html>\n"
    )


@cache
def _asset(name: str) -> str:
    return files("searchblend.pages").joinpath(name).read_text(encoding="utf-8")


def script_hash(text: str) -> str:
    """How a content security policy names a style or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def small_number(value: float) -> str:
    """A δ for people: 10⁻⁵ and not 1e-05."""
    if not 0 < value < _SMALL:
        return f"{value:g}"
    factor, _, power = f"{value:.2e}".partition("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    short = f"{float(factor):g}"
    return f"10{raised}" if short == "1" else f"{short}·10{raised}"


def foreign(text: str) -> str:
    """A string of somebody else's: escaped, without signs that are not seen, its writing direction kept to itself."""
    return f"<bdi>{escape(visible(text))}</bdi>"


def paragraphs(*texts: str) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts if text)


def bullets(texts: Iterable[str], kind: str = "") -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul{f' class={kind}' if kind else ''}>{items}</ul>" if items else ""


def cards(entries: Sequence[tuple[str, str]]) -> str:
    """A few figures that say most."""
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in entries)
    return f'<dl class="cards">{items}</dl>'


def searchable_table(name: str, label: str, columns: Sequence[TableColumn], rows: Sequence[Sequence[Cell]]) -> str:
    """A table that can be searched and sorted; ``name`` is its id in the page."""
    return (
        f'<div class="search" data-table="{name}" hidden><label for="{name}-search">Search {escape(label)}</label>'
        f'<input id="{name}-search" type="search" autocomplete="off" spellcheck="false"><output></output></div>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f"{_table(columns, rows, name=name)}</div>"
    )


def plain_table(caption: str, columns: Sequence[TableColumn], rows: Sequence[Sequence[Cell]]) -> str:
    """A short table that scrolls sideways where it must."""
    label = escape(caption or "table")
    return (
        f'<div class="wide panel" tabindex="0" role="region" aria-label="{label}">'
        f"{_table(columns, rows, caption=caption)}</div>"
    )


def _table(columns: Sequence[TableColumn], rows: Sequence[Sequence[Cell]], *, name: str = "", caption: str = "") -> str:
    head = "".join(
        f'<th scope="col"{" class=number" if column.number else ""}>{_code(column.heading)}</th>' for column in columns
    )
    body = "".join(
        f"<tr>{''.join(_cell(column, cell) for column, cell in zip(columns, row, strict=True))}</tr>\n" for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table{f' id={name}' if name else ''}>{title}<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"


def _cell(column: TableColumn, cell: Cell) -> str:
    kinds = " ".join(kind for kind in ("number" if column.number else "text", cell.tone) if kind)
    value = "" if cell.value is None else f' data-value="{cell.value:.6g}"'
    return f'<td class="{kinds}"{value}>{foreign(cell.shown)}</td>'


def code_text(text: str) -> str:
    """Escaped, with `words` in backticks as code."""
    return _code(text)


def _code(text: str) -> str:
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
