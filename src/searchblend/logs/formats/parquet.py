"""Logs in Parquet: columns ``user, query, url`` or a column map; texts or whole numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from searchblend.core.errors import InvalidColumns
from searchblend.logs.formats.column_map import ColumnMap
from searchblend.logs.formats.layout import Columns

MAGIC: Final = b"PAR1"
TEXT_OR_NUMBER: Final = re.compile(r"VARCHAR|U?(?:TINY|SMALL|BIG|HUGE)?INT|U?INTEGER|UUID|ENUM.*")
_TIME: Final = re.compile(r"TIMESTAMP.*|DATE|DOUBLE|FLOAT|DECIMAL.*")


def columns_layout(path: Path, types: Mapping[str, str], columns: ColumnMap) -> Columns:
    """The layout of a file whose columns have these types (in DuckDB's words)."""
    found = columns.find(path, list(types))
    for role, name in found.items():
        fits = TEXT_OR_NUMBER.fullmatch(types[name]) is not None
        fits = fits or (role == "time" and _TIME.fullmatch(types[name]) is not None)
        fits = fits or (role == "optin" and types[name] == "BOOLEAN")
        if not fits:
            raise InvalidColumns(f"{path}: column '{name}' has type {types[name]}; expected texts or whole numbers")
    return Columns(found, types={role: types[name] for role, name in found.items()})
