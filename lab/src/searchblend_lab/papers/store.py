"""Finished cells on disk, so that an interrupted evaluation goes on where it stopped."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from searchblend.core.errors import OutputError


class CellStore:
    """A SQLite file of results by key. Only the process that collects results writes it."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("CREATE TABLE IF NOT EXISTS cell (key TEXT PRIMARY KEY, result TEXT NOT NULL)")
        except (OSError, sqlite3.Error) as error:
            raise OutputError(f"{path}: cannot keep results there: {error}") from error
        self._path = path

    def get(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The results that are there."""
        rows = (
            self._connection.execute("SELECT key, result FROM cell WHERE key = ?", (key,)).fetchone() for key in keys
        )
        return {row[0]: json.loads(row[1]) for row in rows if row}

    def put(self, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep these; all of them or, if the disk is full, none."""
        rows = [(key, json.dumps(result)) for key, result in results.items()]
        try:
            with self._connection:
                self._connection.executemany("INSERT OR REPLACE INTO cell VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            raise OutputError(f"{self._path}: cannot keep results there: {error}") from error

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
