"""Finished cells on disk, so that an interrupted evaluation goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from searchblend.core.errors import OutputError
from searchblend.files.sqlite import SqliteFile


class CellStore:
    """A SQLite file of results by key. Only the process that collects results writes it."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot_keep(path, error) from error
        self._file = SqliteFile(path, lambda error, _: _cannot_keep(path, error), pragmas=["journal_mode = WAL"])
        self._file.execute("CREATE TABLE IF NOT EXISTS cell (key TEXT PRIMARY KEY, result TEXT NOT NULL)")

    def get(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The results that are there."""
        rows = (row for key in keys for row in self._file.execute("SELECT key, result FROM cell WHERE key = ?", (key,)))
        return {key: json.loads(result) for key, result in rows}

    def put(self, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep these; all of them or, if the disk is full, none."""
        rows = [(key, json.dumps(result)) for key, result in results.items()]
        with self._file.transaction():
            self._file.execute_many("INSERT OR REPLACE INTO cell VALUES (?, ?)", rows)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _cannot_keep(path: Path, error: Exception) -> OutputError:
    return OutputError(f"{path}: cannot keep results there: {error}")
