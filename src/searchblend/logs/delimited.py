"""Tab- and comma-separated logs with a header row: ``user, query, url`` or a column map."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from searchblend.errors import InputError
from searchblend.logs.column_map import ColumnMap
from searchblend.logs.layout import Delimited

DELIMITERS: Final = {"tsv": "\t", "csv": ","}


def delimited_layout(path: Path, start: bytes, format_name: str | None, columns: ColumnMap) -> Delimited:
    """The layout of a file from its header line. ``format_name`` None: a tab in the header makes it tab-separated."""
    header = first_line(path, start)
    name = format_name or ("tsv" if "\t" in header else "csv")
    fields = next(csv.reader([header])) if name == "csv" else header.split("\t")
    names = [field.strip() for field in fields]
    _refuse_duplicates(path, names)
    positions = {role: names.index(column) for role, column in columns.find(path, names).items()}
    return Delimited(name, DELIMITERS[name], len(names), positions, quotes=name == "csv")


def first_line(path: Path, start: bytes) -> str:
    """The first line as text; a file that does not begin with a line of text is no log."""
    line, end, _ = start.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    try:
        text = line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if not text.replace("\t", "").isprintable() or (not end and len(line) > 1 << 15):
        raise InputError(path, "does not begin with a line of text", line=1)
    if not text.strip():
        raise InputError(path, "expected a header, found a blank line", line=1)
    return text


def _refuse_duplicates(path: Path, names: Sequence[str]) -> None:
    for name in names:
        found = [str(position + 1) for position, other in enumerate(names) if other == name]
        if name and len(found) > 1:
            where = f"{', '.join(found[:-1])} and {found[-1]}"
            raise InputError(path, f"columns {where} of the header have the same name", line=1)
