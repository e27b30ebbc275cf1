"""CSV for people: one writer, whose strings no spreadsheet takes for a formula.

A spreadsheet computes a cell that begins with ``= + - @``, whoever wrote it: ``=cmd|...`` as a query that many people
typed would run on the machine of whoever opens the table. So a string gets an apostrophe wherever a cell of it could
begin as a formula, which is at its start and after whatever some program splits at (``, ; |``, a tab, a line break),
also behind blanks, invisible signs and quotes. ``read_cell`` takes exactly these apostrophes away: every run of
blanks and quotes between such a place and such a sign begins with one more than it had. Numbers are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Final

# The signs themselves, all that compatibility (NFKC) makes of them, U+2212, and what some programs skip at the start.
_FORMULA: Final = "=+@\u2212\ufb29\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u207a-\u207c\u208a-\u208c\\-\t\r\n"
_SPLITS: Final = ",;|\t\r\n"
# Blanks, controls and format signs, without those above: what may stand before a formula without being seen.
_UNSEEN: Final = (
    "\\x00-\\x08\\x0b\\x0c\\x0e-\\x20\\x7f-\\xa0\\xad\u0600-\u0605\u061c\u06dd\u070f\u1680\u180e"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff9-\ufffb\"'"
)
_CELL: Final = f"(?:^|(?<=[{_SPLITS}]))"
_FOLLOWS: Final = f"(?=[{_UNSEEN}]*[{_FORMULA}])"
_SPLIT: Final = re.compile(f"[{_SPLITS}]")
_AT_THE_START: Final = re.compile(_FOLLOWS)
_ANYWHERE: Final = re.compile(_CELL + _FOLLOWS)
_WRITTEN: Final = re.compile(f"{_CELL}'{_FOLLOWS}")
_ENDS: Final = re.compile(f"[{_UNSEEN}]")


def write_cell(string: str) -> str:
    """The string with an apostrophe wherever a formula could begin; ``read_cell`` gives it back."""
    if _SPLIT.search(string):
        return _ANYWHERE.sub("'", string)
    return f"'{string}" if _AT_THE_START.match(string) else string  # nearly all, and several times as fast


def read_cell(string: str) -> str:
    """The string that ``write_cell`` was given. What it never writes, such as a bare formula, stays as it is."""
    return _WRITTEN.sub("", string)


def write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]], delimiter: str = ",") -> str:
    """A header and a line for each row (RFC 4180, lines end in LF); nothing is a field without quotes."""
    lines = [delimiter.join(_field(name) for name in columns)]
    lines += [delimiter.join(_field(row.get(name)) for name in columns) for row in rows]
    return "\n".join(lines) + "\n"


def _field(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) and isinstance(value, Real):
        return str(value)
    string = write_cell(str(value))
    return '"' + string.replace('"', '""') + '"' if _is_quoted(string) else string


def _is_quoted(string: str) -> bool:
    """Also what other delimiters would split, so that most programs show one cell."""
    return not string or '"' in string or bool(_SPLIT.search(string) or _ENDS.match(string) or _ENDS.match(string[-1]))
