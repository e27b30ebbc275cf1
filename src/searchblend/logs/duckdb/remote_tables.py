"""Parquet files of a store as DuckDB reads them: by a filesystem of our own, in which every file has a name of ours.

A database would take a star in a file's own name for a pattern, and an address of a store for one of its extensions.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from fsspec import AbstractFileSystem

from searchblend.core.errors import InputError
from searchblend.logs.formats.remote import RemoteFile, opened_remote, size_of_remote

_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class RemoteTables(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """The files that were added, for reading."""

    protocol = "searchblend"
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, RemoteFile] = {}
        self.failure: InputError | None = None
        """what went wrong first: a database says no more than that something did"""

    def add(self, file: RemoteFile) -> str:
        """The name of a file for the database."""
        name = f"{self.protocol}://{len(self._files)}.parquet"
        self._files[name] = file
        return name

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        try:
            return _Opened(self, self._file(path))
        except InputError as error:
            self.note(error)
            raise

    def _file(self, path: str) -> RemoteFile:
        return self._files[path if path in self._files else f"{self.protocol}://{path}"]

    def note(self, error: InputError) -> None:
        self.failure = self.failure or error

    def glob(self, path: str, **_: Any) -> list[str]:
        return [path]

    def unstrip_protocol(self, name: str) -> str:
        return name

    def isfile(self, path: str) -> bool:
        return True

    exists = isfile

    def size(self, path: str) -> int:
        return size_of_remote(self._file(path))

    def modified(self, path: str) -> datetime:
        return _EPOCH


class _Opened:
    """One file in the database's hands."""

    def __init__(self, tables: RemoteTables, file: RemoteFile) -> None:
        self._tables = tables
        self._context = opened_remote(file)
        self._raw = self._context.__enter__()

    def read(self, size: int = -1) -> bytes:
        try:
            block: bytes = self._raw.read(size)
        except InputError as error:
            self._tables.note(error)
            raise
        return block

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._raw.seek(offset, whence))

    def tell(self) -> int:
        return int(self._raw.tell())

    def close(self) -> None:
        self._context.__exit__(None, None, None)
