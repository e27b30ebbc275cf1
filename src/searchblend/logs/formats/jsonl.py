"""Logs with one JSON object on each line: ``{"user": ..., "query": ..., "url": ...}`` or a column map.

There is no header: every line is somebody's. So the members that count are those that are named, or called like their
role, whatever any line has; a line that lacks one is judged by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from searchblend.logs.formats.column_map import ColumnMap
from searchblend.logs.formats.files import compression_of
from searchblend.logs.formats.layout import JsonLines

_SUFFIXES: Final = (".jsonl", ".ndjson", ".json")


def json_layout(columns: ColumnMap) -> JsonLines:
    return JsonLines(columns.wanted())


def is_named_json(path: Path) -> bool:
    """Whether a file is called ``.jsonl``, ``.ndjson`` or ``.json``, perhaps with ``.gz`` or ``.zst`` after it."""
    name = path.stem if compression_of(path) else path.name
    return name.lower().endswith(_SUFFIXES)
