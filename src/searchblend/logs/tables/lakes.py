"""Tables of Delta Lake and Iceberg on a disk, in their current version: deleted and replaced rows are not read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from searchblend.core.errors import InputError
from searchblend.logs.tables.stored import StoredTable
from searchblend.logs.tables.urls import METADATA

_HINT: Final = "metadata/version-hint.text"
_NUMBER: Final = re.compile(r"v?([0-9]+)[.-]")
"""how the name of a file of metadata begins"""


class DeltaLake(StoredTable):
    """Deletion vectors and renamed columns are heeded by the library's own engine."""

    def __init__(self, folder: Path) -> None:
        super().__init__("delta", folder)

    def open(self) -> pa.Schema:
        from deltalake import DeltaTable

        self._table = DeltaTable(str(self.label))
        self.snapshot = str(self._table.version())
        return pa.RecordBatchReader.from_stream(self._table.scan()).schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from pa.RecordBatchReader.from_stream(self._table.scan(columns=list(columns)))


class Iceberg(StoredTable):
    """A folder, or the file of metadata that a catalog names."""

    def __init__(self, path: Path) -> None:
        super().__init__("iceberg", path)

    def open(self) -> pa.Schema:
        from pyiceberg.io.pyarrow import schema_to_pyarrow
        from pyiceberg.table import StaticTable

        self._table = StaticTable.from_metadata(str(_metadata(Path(str(self.label)).absolute())))
        current = self._table.current_snapshot()
        self.snapshot = None if current is None else str(current.snapshot_id)
        return schema_to_pyarrow(self._table.schema(), include_field_ids=False)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """One data file after the other: the library's own reader would hold many of them at a time."""
        from pyiceberg.io.pyarrow import ArrowScan

        scan = self._table.scan(selected_fields=tuple(columns))
        reader = ArrowScan(scan.table_metadata, scan.io, scan.projection(), scan.row_filter)
        for task in scan.plan_files():
            yield from reader.to_record_batches([task])


def _metadata(path: Path) -> Path:
    """The file that describes the current version.

    A table of Hadoop's kind says which it is. Elsewhere a catalog knows, and the folder shows it only if its files tell
    one history, whose latest one they are.
    """
    if path.name.endswith(METADATA):
        return path
    hint, folder = path / _HINT, path / "metadata"
    if hint.exists():
        return _hinted(folder, hint.read_text().strip())
    versions = [_Metadata(file) for file in folder.glob(f"*{METADATA}")]
    last = max(versions, key=lambda one: one.number, default=None)
    if last is None:
        raise InputError(path, f"expected files of metadata, metadata/*{METADATA}")
    others = [one for one in versions if one is not last]
    if any(one.number == last.number or one.table != last.table or one.updated > last.updated for one in others):
        raise InputError(
            path, f"its catalog alone knows which version is current: name the {METADATA} file that it states"
        )
    return last.path


def _hinted(folder: Path, hint: str) -> Path:
    """Writers set the hint after the file, so a later one may be there."""
    if not hint.isdecimal():
        return folder / (hint if hint.endswith(METADATA) else hint + METADATA)
    version = int(hint)
    while (folder / f"v{version + 1}{METADATA}").exists():
        version += 1
    return folder / f"v{version}{METADATA}"


class _Metadata:
    """One file of metadata."""

    def __init__(self, path: Path) -> None:
        document: dict[str, Any] = json.loads(path.read_bytes())
        number = _NUMBER.match(path.name)
        self.path, self.number = path, int(number[1]) if number else 0
        self.table, self.updated = document.get("table-uuid"), document["last-updated-ms"]
