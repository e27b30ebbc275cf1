"""Which format a log is in: named by the caller, or detected from the name of each file and its header.

No line of a person decides anything about a file. So formats without a header are never guessed from their lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError, InvalidColumns, InvalidParameter
from searchblend.logs.formats.files import BOM, compression_of, first_lines, other_than_text
from searchblend.logs.formats.gate import csv_fields
from searchblend.logs.formats.layout import (
    NO_HEADER,
    ColumnMap,
    Columns,
    Delimited,
    JsonLines,
    Layout,
    Sessions,
    Source,
)

FORMATS: Final = ("auto", "aol", "yandex", "excite", "tsv", "csv", "jsonl", "parquet")
_AOL_HEADER: Final = ("AnonID", "Query", "QueryTime", "ItemRank", "ClickURL")
AOL: Final = Delimited(
    "aol",
    "\t",
    n_fields=5,
    positions={"user": 0, "query": 1, "time": 2, "rank": 3, "url": 4},
    may_end_after=3,
    no_query="-",
)
"""The AOL log: ten tab-separated files ``user-ct-test-collection-NN.txt``, each with its own header.

A line without a click has its last two fields empty, or ends after the third. A click is a line with a URL, whatever
its rank: some thousands of clicks carry rank 0. A query ``-`` is one that was taken out; it and blank ones are unusable
and counted. URLs are scheme and host only.
"""
EXCITE: Final = Delimited(
    "excite",
    "\t",
    n_fields=3,
    positions={"user": 0, "time": 1, "query": 2},
    header=False,
    may_end_after=2,
)
"""The Excite logs of 1997: user (16 hexadecimal digits), time (YYMMDDhhmmss), query; tabs, no header, no URLs.

The query may be missing or empty (one line in nine); such a line is unusable and counted.
"""
DELIMITERS: Final = {"tsv": "\t", "csv": ","}
PARQUET_MAGIC: Final = b"PAR1"
STRING_OR_NUMBER: Final = re.compile(r"VARCHAR|U?(?:TINY|SMALL|BIG|HUGE)?INT|U?INTEGER|UUID|ENUM.*")
_TIME: Final = re.compile(r"TIMESTAMP.*|DATE|DOUBLE|FLOAT|DECIMAL.*")
_JSON_SUFFIXES: Final = (".jsonl", ".ndjson", ".json")
ColumnTypes = Callable[[Path], Mapping[str, str]]
"""name → type of the columns of a Parquet file; an engine knows them"""


def find_sources(
    files: Sequence[Path],
    format_name: str,
    columns: ColumnMap,
    column_types: ColumnTypes,
    *,
    quoted_line_feeds: bool = False,
) -> list[Source]:
    """The files, those with the same layout together. All must be in one format, and all or none have URLs."""
    if format_name not in FORMATS:
        raise InvalidParameter("format", f"expected one of {', '.join(FORMATS)}")
    sources: list[Source] = []
    for file in files:
        layout = _layout(file, format_name, columns, column_types, quoted_line_feeds=quoted_line_feeds)
        same = next((paths for other, paths in sources if other == layout), None)
        if same is not None:
            same.append(file)
            continue
        sources.append((layout, [file]))
        first = sources[0][0]
        if layout.format != first.format:
            raise InputError(file, f"is in format {layout.format}, other files of this log in {first.format}")
        if layout.has_urls != first.has_urls:
            with_urls, without = ("this file", "others") if layout.has_urls else ("others", "this file")
            raise InputError(file, f"{with_urls} of this log have a column of URLs and {without} have none")
    return sources


def _layout(
    path: Path, format_name: str, columns: ColumnMap, column_types: ColumnTypes, *, quoted_line_feeds: bool
) -> Layout:
    name = "jsonl" if format_name == "auto" and _is_named_json(path) else format_name
    if name == "jsonl":  # no header: the members that count are those that are named, whatever any line has
        return JsonLines(columns.wanted())
    if name in ("yandex", "excite"):
        return _without_columns(name, columns)
    start = first_lines(path)
    if name == "parquet" or (name == "auto" and start.startswith(PARQUET_MAGIC)):
        return columns_layout(path, column_types(path), columns)
    header = _header_line(path, start)
    if name == "aol" or (name == "auto" and _is_aol(header)):
        return _aol_layout(path, header, columns)
    given = None if name == "auto" else name
    return _delimited_layout(path, header, given, columns, quoted_line_feeds=quoted_line_feeds)


def _is_named_json(path: Path) -> bool:
    """Whether a file is called ``.jsonl``, ``.ndjson`` or ``.json``, perhaps with ``.gz`` or the like after it."""
    name = path.stem if compression_of(path) else path.name
    return name.lower().endswith(_JSON_SUFFIXES)


def _is_aol(header: str) -> bool:
    return tuple(header.split("\t")) == _AOL_HEADER


def _aol_layout(path: Path, header: str, columns: ColumnMap) -> Layout:
    if not _is_aol(header):
        raise InputError(path, f"expected the header {' '.join(_AOL_HEADER)}", line=1)
    if columns.named or columns.optin is not None:
        named = columns.find(path, _AOL_HEADER)
        return replace(AOL, positions={role: _AOL_HEADER.index(name) for role, name in named.items()})
    if not columns.urls:
        return replace(AOL, positions={role: at for role, at in AOL.positions.items() if role != "url"})
    return AOL


def _without_columns(name: str, columns: ColumnMap) -> Layout:
    if columns.named or columns.optin is not None or (name == "yandex" and not columns.urls):
        raise InvalidColumns(f"columns: the {name} format has none to choose from")
    return Sessions() if name == "yandex" else EXCITE


def _delimited_layout(
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


def _header_line(path: Path, start: bytes) -> str:
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
        places = [str(position + 1) for position, other in enumerate(names) if other == name]
        if name and len(places) > 1:
            where = f"{', '.join(places[:-1])} and {places[-1]}"
            raise InputError(path, f"columns {where} of the header have the same name", line=1)


def columns_layout(path: Path, types: Mapping[str, str], columns: ColumnMap) -> Columns:
    """The layout of a file, or a table, whose columns have these types (in DuckDB's words)."""
    named = columns.find(path, list(types))
    for role, name in named.items():
        fits = STRING_OR_NUMBER.fullmatch(types[name]) is not None
        fits = fits or (role == "time" and _TIME.fullmatch(types[name]) is not None)
        fits = fits or (role == "optin" and types[name] == "BOOLEAN")
        if not fits:
            raise InvalidColumns(f"{path}: column '{name}' has type {types[name]}; expected strings or whole numbers")
    return Columns(named, types={role: types[name] for role, name in named.items()})
