"""Tables that come from outside a log: which URLs a search engine shows for a query, and which queries mean the same.

Small CSV, TSV or Parquet files with a header. They are public, so an error may name the line, but not what stood there.
A released ``clicks.csv`` may be such a table, so cells are read as our CSV writes them.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import duckdb

from searchblend.clickgraph.release.click_log import SUGGESTION
from searchblend.core.csv_cells import read_cell
from searchblend.core.errors import InputError
from searchblend.core.normalization import normalize, normalize_url
from searchblend.core.records import Record
from searchblend.logs.formats.files import refuse_tables

_DELIMITERS: Final = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_MOST_BYTES: Final = 1 << 20
"""of one field; a larger one is a file with a quote that never ends"""


def read_public_records(path: Path) -> list[Record]:
    """Pairs of the columns ``query`` and ``url``, each once, in normal form.

    A URL ``suggestion:`` and a query is a suggestion that the engine shows for the query.
    """
    records: dict[Record, int] = {}
    for line, (query, url) in _rows(path, ("query", "url")):
        record = Record(_query(path, line, "query", query), _target(path, line, url))
        if record in records:
            raise InputError(path, f"the same pair as in line {records[record]}", line=line)
        records[record] = line
    if not records:
        raise InputError(path, "there is no pair after the header")
    return list(records)


def read_synonyms(path: Path) -> dict[str, str]:
    """The columns ``query`` and ``meaning``: what a query is counted as. Both in normal form; no chains."""
    meant: dict[str, str] = {}
    for line, (query, meaning) in _rows(path, ("query", "meaning")):
        string = _query(path, line, "query", query)
        if string in meant:
            raise InputError(path, "this query has a meaning already", line=line, field="query")
        meant[string] = _query(path, line, "meaning", meaning)
    if any(meant.get(meaning, meaning) != meaning for meaning in meant.values()):
        raise InputError(path, "a meaning has another meaning itself: name the last one", field="meaning")
    return meant


def _query(path: Path, line: int, field: str, string: str) -> str:
    form = normalize(string)
    if form is None:
        raise InputError(path, "expected a query", line=line, field=field)
    return form


def _target(path: Path, line: int, string: str) -> str:
    if string.startswith(SUGGESTION):
        return SUGGESTION + _query(path, line, "url", string.removeprefix(SUGGESTION))
    form = normalize_url(string)
    if form is None:
        raise InputError(path, "expected a URL", line=line, field="url")
    return form


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The line and the fields of each row."""
    refuse_tables([path])
    if path.suffix == ".parquet":
        return _parquet_rows(path, columns)
    if path.suffix not in _DELIMITERS:
        raise InputError(path, f"expected a file ending in {', '.join([*_DELIMITERS, '.parquet'])}")
    return _text_rows(path, columns, _DELIMITERS[path.suffix])


def _text_rows(path: Path, columns: Sequence[str], delimiter: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    csv.field_size_limit(_MOST_BYTES)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            header = next(reader, [])
            _check_columns(path, header, columns)
            places = [header.index(column) for column in columns]
            for row in reader:
                if len(row) != len(header):
                    raise InputError(path, f"expected {len(header)} fields, found {len(row)}", line=reader.line_num)
                yield reader.line_num, tuple(read_cell(row[place]) for place in places)
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(path, "expected UTF-8 text with RFC 4180 quotes") from error


def _parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    source = "read_parquet(?, hive_partitioning = false)"
    try:
        with duckdb.connect(":memory:") as connection:
            described = connection.execute(f"DESCRIBE SELECT * FROM {source}", [os.fspath(path)]).fetchall()
            _check_columns(path, [name for name, *_ in described], columns)
            names = ", ".join(columns)
            cursor = connection.execute(f"SELECT {names} FROM {source}", [os.fspath(path)])
            row, line = cursor.fetchone(), 1
            while row is not None:
                if not all(isinstance(value, str) for value in row):
                    raise InputError(path, "expected two strings", line=line)
                yield line, row
                row, line = cursor.fetchone(), line + 1
    except duckdb.Error as error:
        raise InputError(path, "the Parquet file cannot be read: missing, cut off or damaged") from error


def _check_columns(path: Path, header: Sequence[str], columns: Sequence[str]) -> None:
    missing = [column for column in columns if column not in header]
    if missing:
        raise InputError(path, f"no column {' and '.join(missing)}; expected {' and '.join(columns)}", line=1)
