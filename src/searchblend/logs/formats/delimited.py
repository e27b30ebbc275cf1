"""Tab- and comma-separated logs with a header row: ``user, query, url`` or a column map.

The header is nobody's line: what a file is may be read from it, and from no line below.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError
from searchblend.logs.formats.column_map import NO_HEADER, ColumnMap
from searchblend.logs.formats.files import BOM, other_than_text
from searchblend.logs.formats.gate import csv_fields
from searchblend.logs.formats.layout import Delimited

DELIMITERS: Final = {"tsv": "\t", "csv": ","}


def delimited_layout(
    path: Path, header: str, format_name: str | None, columns: ColumnMap, *, quoted_line_feeds: bool
) -> Delimited:
    """The layout of a file from its header line. ``format_name`` None: a tab in the header makes it tab-separated."""
    name = format_name or ("tsv" if "\t" in header else "csv")
    names = [field.strip() for field in (_csv_names(path, header) if name == "csv" else header.split("\t"))]
    _refuse_duplicates(path, names)
    positions = {role: names.index(column) for role, column in columns.find(path, names).items()}
    is_csv = name == "csv"
    return Delimited(
        name,
        DELIMITERS[name],
        len(names),
        positions,
        quotes=is_csv,
        quoted_line_feeds=is_csv and quoted_line_feeds,
    )


def _csv_names(path: Path, header: str) -> list[str]:
    fields = csv_fields(header.encode())
    if fields is None:
        raise InputError(path, f"expected a header with quotes around whole names only ({NO_HEADER})", line=1)
    return [field.decode() for field in fields]


def header_line(path: Path, start: bytes) -> str:
    """The first line as text; a file that does not begin with a line of text has no header."""
    line, end, _ = start.removeprefix(BOM).partition(b"\n")
    if not start:
        raise InputError(path, "the file is empty")
    if (other := other_than_text(start)) is not None:
        raise InputError(path, f"is {other}")
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
