"""Folders that are tables: which of their files count is said by a log of changes, not by the files that lie there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError

_ADVICE: Final = "its files hold deleted and replaced rows too: export the table to plain Parquet and read that"
_MARKS: Final = {
    "_delta_log": "a Delta Lake table",
    ".hoodie": "a Hudi table",
    ".hoodie_partition_metadata": "part of a Hudi table",
}


def refuse_table(folder: Path) -> None:
    """``InputError`` if a folder is a table of Delta Lake, Hudi or Iceberg."""
    kind = next((kind for mark, kind in _MARKS.items() if (folder / mark).exists()), None)
    if kind is None and _is_iceberg(folder / "metadata"):
        kind = "an Iceberg table"
    if kind is not None:
        raise InputError(folder, f"is {kind}, and {_ADVICE}")


def _is_iceberg(metadata: Path) -> bool:
    return (metadata / "version-hint.text").exists() or any(metadata.glob("*.metadata.json"))
