"""Tab- and comma-separated logs with a header row: ``user, query, url`` or a column map."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from searchblend.errors import InputError, InvalidColumns
from searchblend.logs.layout import ROLES, Layout

DELIMITERS: Final = {"tsv": "\t", "csv": ","}
_REQUIRED: Final = ("user", "query")


def delimited_layout(
    path: Path, start: bytes, format_name: str | None, columns: Mapping[str, str], optin_column: str | None
) -> Layout:
    """The layout of a file from its header line. ``format_name`` None: a tab in the header makes it tab-separated."""
    header = header_line(path, start)
    name = format_name or ("tsv" if "\t" in header else "csv")
    names = _split(header, name)
    _refuse_duplicates(path, names)
    wanted = {role: columns.get(role, role) for role in ROLES if role != "optin"}
    if optin_column is not None:
        wanted["optin"] = optin_column
    required = {*_REQUIRED, *columns, *({"optin"} if optin_column is not None else ())}
    missing = [wanted[role] for role in ROLES if role in required and wanted[role] not in names]
    if missing:
        raise InvalidColumns(_no_such_column(path, missing, names, set(wanted.values())))
    positions = {role: names.index(column) for role, column in wanted.items() if column in names}
    return Layout(name, DELIMITERS[name], len(names), positions, quotes=name == "csv")


def header_line(path: Path, start: bytes) -> str:
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


def _split(header: str, format_name: str) -> list[str]:
    fields = next(csv.reader([header])) if format_name == "csv" else header.split("\t")
    return [name.strip() for name in fields]


def _refuse_duplicates(path: Path, names: Sequence[str]) -> None:
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise InputError(path, f"columns {_positions(names, twice)} of the header have the same name", line=1)


def _positions(names: Sequence[str], name: str) -> str:
    found = [str(position + 1) for position, other in enumerate(names) if other == name]
    return f"{', '.join(found[:-1])} and {found[-1]}"


def _no_such_column(path: Path, missing: Sequence[str], names: Sequence[str], expected: set[str]) -> str:
    """Names the header's columns only if one of them was expected: else the line may not be a header at all."""
    absent = " and ".join(f"'{name}'" for name in missing)
    if expected.isdisjoint(names):
        found = f"its first line has {len(names)} fields and none of the expected names. Is it a header?"
    else:
        found = f"the header has {', '.join(names)}"
    return f"{path}: no column {absent}; {found} Say which is which with --columns user=NAME,query=NAME,url=NAME"
