"""A table or view of an SQLite file, which is not written to, and read in one statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from typing import Final

import pyarrow as pa

from searchblend.core.errors import InputError
from searchblend.files.sqlite import SqliteFile
from searchblend.logs.formats.remote import RemoteFile
from searchblend.logs.tables.stored import MAX_STRING, StoredTable, in_pages
from searchblend.logs.tables.urls import shown_log, sqlite_path, table_in

_FETCHED: Final = 8
"""rows, however long they are"""


class SqliteTable(StoredTable):
    """A row's value has whatever type it likes in SQLite, so all columns are read as text. What is not text (BLOBs, and
    bytes that are not of the encoding) is missing, and so is what is very long."""

    def __init__(self, url: str) -> None:
        self._path, self._table = sqlite_path(url), table_in(url)
        super().__init__("sqlite", RemoteFile(shown_log(url)))

    def open(self) -> pa.Schema:
        if not self._path.is_file():
            raise InputError(self.label, "no such file")
        with self._connected() as file:
            names = file.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", (self._table,))
        if not names:
            raise InputError(self.label, "no such table in this database")
        return pa.schema([(name, pa.string()) for (name,) in names])

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        before = self._stamp()
        with self._connected() as file:
            ((encoding,),) = file.execute("PRAGMA encoding")
            chosen = ", ".join(map(_bytes_of, columns))
            rows = chain.from_iterable(file.pages(f"SELECT {chosen} FROM {_name(self._table)}", _FETCHED))
            for page in in_pages(rows):
                texts = [[_text(one, encoding) for one in column] for column in zip(*page, strict=True)]
                yield pa.record_batch([pa.array(column, pa.string()) for column in texts], list(columns))
        if self._stamp() != before:
            raise InputError(self.label, "was written to while it was read: read a copy of it")

    @contextmanager
    def _connected(self) -> Iterator[SqliteFile]:
        """Batches are asked for by whichever thread of the database reads them."""
        pragmas = ("query_only = ON", "trusted_schema = OFF")
        with closing(SqliteFile(self._path, self._refusal, pragmas=pragmas, read_only=True, any_thread=True)) as file:
            yield file

    def _refusal(self, error: Exception, code: int) -> InputError:
        return InputError(self.label, f"the SQLite database cannot be read: damaged, or not one (code {code})")

    def _stamp(self) -> tuple[int, int]:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size


def _bytes_of(column: str) -> str:
    name = _name(column)
    text = f"CAST(CAST({name} AS TEXT) AS BLOB)"
    return f"CASE WHEN typeof({name}) <> 'blob' AND length({text}) <= {MAX_STRING} THEN {text} END"


def _text(value: bytes | None, encoding: str) -> str | None:
    try:
        return None if value is None else value.decode(encoding)
    except UnicodeDecodeError:
        return None


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
