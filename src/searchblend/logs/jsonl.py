"""Logs with one JSON object on each line: ``{"user": ..., "query": ..., "url": ...}`` or a column map."""

from __future__ import annotations

import json
from pathlib import Path

from searchblend.errors import InputError
from searchblend.logs.column_map import ColumnMap
from searchblend.logs.delimited import first_line
from searchblend.logs.layout import JsonLines


def json_layout(path: Path, start: bytes, columns: ColumnMap) -> JsonLines:
    """The layout from the first objects of a file: a member that none of them has is no column."""
    names: dict[str, None] = {}
    whole, _, _ = start.removeprefix(b"\xef\xbb\xbf").rpartition(b"\n")
    for line in (whole or start).splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            names |= dict.fromkeys(found)
    if not names:
        raise InputError(path, "expected a JSON object on each line", line=1)
    return JsonLines(columns.find(path, list(names)))


def looks_like_json(path: Path, start: bytes) -> bool:
    return first_line(path, start).lstrip().startswith("{")
