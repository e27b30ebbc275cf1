"""A release as its files: from a folder, or as a ledger keeps it. Everything that people do with one works on it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from searchblend.blender.result import Result
from searchblend.core.csv_cells import read_cell
from searchblend.core.errors import InputError, InvalidParameter, MessageError
from searchblend.core.outlet import Where
from searchblend.core.privacy import StatedGuarantee
from searchblend.core.statement import FileEntry, Statement
from searchblend.core.tables import ROWS_SHOWN, ReleasedTables, chosen, html_table, short_promise
from searchblend.wire.click_graph import STATEMENT_KIND, TABLES, Table, attribute_tables
from searchblend.wire.click_graph_statement import params_of_statement
from searchblend.wire.release import RESULT, STATEMENT, decode_result, decode_statement, read_statement
from searchblend.wire.values import VALUES, VALUES_KIND

_FILES_OF: Final[Mapping[str, Mapping[str, str]]] = {
    "blender": {"queries": "trends.csv", "records": "records.csv"},
    STATEMENT_KIND: {name: table.csv for name, table in TABLES.items()},
    VALUES_KIND: {"values": VALUES},
}
"""kind of release → its tables and their files, the first one first"""
_STRINGS: Final = frozenset({"query", "url", "kind", "next_query", "value"})
_SHOWN: Final = ("query", "value", "probability", "count", "low", "high", "lo95", "hi95")
_WHOLE: Final = frozenset({"count", "count_clamped"})


@dataclass(frozen=True, repr=False)
class SavedRelease(ReleasedTables[str]):
    """A release of any kind as its files, which it keeps byte for byte: what a folder or a ledger holds.

    Example:
        ``sb.read_release("out").to_pandas("records")``
    """

    statement: Statement
    files: Mapping[str, bytes]
    """by name, with ``statement.json``"""
    guarantee: StatedGuarantee

    @classmethod
    def of_files(cls, files: Mapping[str, bytes]) -> SavedRelease:
        """The release that these files are; they come from a ledger, which has checked them."""
        statement = decode_statement(json.loads(files[STATEMENT]))
        return cls(statement, dict(files), statement.promise)

    @property
    def tables(self) -> list[str]:
        """The names that ``columns`` takes."""
        return list(self.table_files)

    @property
    def table_files(self) -> Mapping[str, str]:
        """The CSV file of each table."""
        further = {name: table.csv for name, table in self._by_attribute.items()}
        return {**_FILES_OF[self.statement.kind], **further}

    @property
    def _by_attribute(self) -> Mapping[str, Table]:
        """The tables by attribute of a click graph."""
        if self.statement.kind != STATEMENT_KIND or not self.statement.parameters.get("attributes"):
            return {}
        return attribute_tables(params_of_statement(self.statement.parameters))

    def columns(self, table: str | None = None) -> dict[str, list[str | int | float | None]]:
        """One table, or the first, with the columns of its CSV file."""
        name = chosen(table, *self.tables)
        lines = csv.reader(io.StringIO(self.files[self.table_files[name]].decode(), newline=""))
        header = next(lines)
        if name in self._by_attribute:
            strings = {column.name for column in self._by_attribute[name].key}
            read = [
                [read_cell(cell) if column in strings else int(cell) for column, cell in zip(header, row, strict=True)]
                for row in lines
            ]
            return {column: [row[place] for row in read] for place, column in enumerate(header)}
        rows = [[_value(column, cell, header) for column, cell in zip(header, row, strict=True)] for row in lines]
        return {column: [row[place] for row in rows] for place, column in enumerate(header)}

    def result(self) -> Result:
        """All that a blend released, in rows; ``InvalidParameter`` for a release of another kind."""
        if RESULT not in self.files:
            raise InvalidParameter("release", f"expected a blend, found {self.statement.kind}")
        return decode_result(self.files[RESULT])

    def __repr__(self) -> str:
        return f"SavedRelease({self.statement.kind}, {len(self.files)} files, {short_promise(self.guarantee)})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        columns = self.columns()
        header = [name for name in _SHOWN if name in columns]
        places = [place for place, name in enumerate(columns[header[0]]) if name is not None]
        rows = ([_shown(columns[name][place]) for name in header] for place in places[:ROWS_SHOWN])
        return html_table(f"Released {self.tables[0]}", header, rows, len(places), self.guarantee)


def _value(column: str, cell: str, header: list[str]) -> str | int | float | None:
    """⋆ is None, and tables that have it say so in ``kind``; an unknown number is None."""
    if column in _STRINGS:
        return None if not cell and "kind" in header else read_cell(cell)
    if not cell:
        return None
    return int(cell) if column in _WHOLE else float(cell)


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def folder_and_statement(where: Where) -> tuple[Path, Statement]:
    """The folder of a release, of whatever kind, and its statement."""
    folder = Path(where)
    if not folder.is_dir():
        raise InputError(folder, "expected the folder of a release")
    return folder, read_statement(folder / STATEMENT)


def read_release(folder: Where) -> SavedRelease:
    """The release in a folder that ``save`` or a command wrote; every file must have the SHA-256 that is stated.

    Args:
        folder: of a release of any kind

    Example:
        ``sb.read_release("out").plot()``
    """
    place, statement = folder_and_statement(folder)
    if statement.kind not in _FILES_OF:
        raise InputError(place / STATEMENT, f"expected one of {', '.join(_FILES_OF)}", field="release.kind")
    if statement.notice is not None:
        raise InputError(place / STATEMENT, "it comes from an evaluation and is not private", field="notice")
    files = {STATEMENT: _read(place / STATEMENT)}
    for name, entry in statement.files.items():
        if Path(name).name != name:
            raise InputError(place / STATEMENT, "expected plain file names", field="files")
        files[name] = _read(place / name)
        if FileEntry.of(files[name]).sha256 != entry.sha256:
            raise InputError(place / name, f"is not the file that {STATEMENT} describes (SHA-256 differs)")
    try:
        return SavedRelease(statement, files, statement.promise)
    except MessageError as error:
        raise InputError(place / STATEMENT, str(error)) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error
