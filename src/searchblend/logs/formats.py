"""Which format a log is in: told from the first bytes of each file, or said by the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from searchblend.errors import InputError, InvalidColumns, InvalidParameter
from searchblend.logs import aol
from searchblend.logs.column_map import ColumnMap
from searchblend.logs.delimited import delimited_layout, first_line
from searchblend.logs.excite import EXCITE, looks_like_excite
from searchblend.logs.files import first_lines
from searchblend.logs.jsonl import json_layout, looks_like_json
from searchblend.logs.layout import Layout, Source
from searchblend.logs.parquet import MAGIC, columns_layout
from searchblend.logs.yandex import YANDEX, looks_like_yandex

FORMATS: Final = ("auto", "aol", "yandex", "excite", "tsv", "csv", "jsonl", "parquet")
ColumnTypes = Callable[[Path], Mapping[str, str]]
"""name → type of the columns of a Parquet file; an engine knows them"""


def find_sources(
    files: Sequence[Path], format_name: str, columns: ColumnMap, column_types: ColumnTypes
) -> list[Source]:
    """The files, those with the same layout together. All must be in one format, and all or none have URLs."""
    if format_name not in FORMATS:
        raise InvalidParameter("format", f"expected one of {', '.join(FORMATS)}")
    sources: list[Source] = []
    for file in files:
        layout = _layout(file, format_name, columns, column_types)
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


def _layout(path: Path, format_name: str, columns: ColumnMap, column_types: ColumnTypes) -> Layout:
    start = first_lines(path)
    name = _detect(path, start) if format_name == "auto" else format_name
    if name == "parquet":
        return columns_layout(path, column_types(path), columns)
    if name == "jsonl":
        return json_layout(path, start, columns)
    if name == "aol":
        return _aol_layout(path, start, columns)
    if name in ("yandex", "excite"):
        return _without_header(path, start, name, columns)
    return delimited_layout(path, start, None if name == "delimited" else name, columns)


def _detect(path: Path, start: bytes) -> str:
    if start.startswith(MAGIC):
        return "parquet"
    line = first_line(path, start)
    if looks_like_json(path, start):
        return "jsonl"
    if aol.looks_like_aol(line):
        return "aol"
    if looks_like_yandex(line):
        return "yandex"
    return "excite" if looks_like_excite(line) else "delimited"


def _aol_layout(path: Path, start: bytes, columns: ColumnMap) -> Layout:
    if not aol.looks_like_aol(first_line(path, start)):
        raise InputError(path, f"expected the header {' '.join(aol.HEADER)}", line=1)
    if not columns.named and columns.optin is None:
        return aol.AOL
    named = columns.find(path, aol.HEADER)
    return replace(aol.AOL, positions={role: aol.HEADER.index(name) for role, name in named.items()})


def _without_header(path: Path, start: bytes, name: str, columns: ColumnMap) -> Layout:
    if columns.named or columns.optin is not None:
        raise InvalidColumns(f"columns: the {name} format has none to choose from")
    line = first_line(path, start)
    if not (looks_like_yandex(line) if name == "yandex" else looks_like_excite(line)):
        raise InputError(path, f"does not begin with a line of the {name} format", line=1)
    return YANDEX if name == "yandex" else EXCITE
