"""What result pages share: one HTML file that needs nothing else, its tables, and numbers for people.

Style and script are inside, and everything foreign is forbidden by the page's own policy, which allows exactly these
two by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

_SMALL: Final = 1e-3
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


def rows_left_out(total: int, file: str) -> str:
    """Where the rest is, if a table shows only the first rows."""
    return f"The first {MOST_ROWS:,} of {total:,}; {file} has all of them." if total > MOST_ROWS else ""
