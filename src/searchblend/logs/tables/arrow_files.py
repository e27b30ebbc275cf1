"""Files of ORC, Avro and Arrow, of a disk or a store. They are opened anew for each reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from searchblend.logs.formats.files import open_raw, size_of
from searchblend.logs.tables.stored import StoredTable, in_pages, text_or_none

_ARROW_FILE: Final = b"ARROW1"
"""begins a file; without it, Arrow's bytes are a stream"""
_AVRO_UNITS: Final = {
    f"long {prefix}timestamp-{unit}": factor
    for prefix in ("", "local-")
    for unit, factor in (("millis", 1000), ("micros", 1))
}
"""kind of a point in time → its unit in microseconds"""
_Batches = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


class ArrowFile(StoredTable):
    """One file of a format in ``ARROW_SUFFIXES``."""

    def open(self) -> pa.Schema:
        self.bytes = size_of(self.label)
        with open_raw(self.label) as raw, self.in_our_words():
            schema, _ = _OPENED[self.format](raw)
            return schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with open_raw(self.label) as raw, self.in_our_words():
            _, batches = _OPENED[self.format](raw)
            yield from batches(columns)

    def problem(self, error: Exception) -> str:
        return f"the {self.format} file cannot be read: cut off or damaged ({type(error).__name__})"


def _orc(raw: Any) -> tuple[pa.Schema, _Batches]:
    from pyarrow.orc import ORCFile

    file = ORCFile(pa.PythonFile(raw, mode="r"))
    return file.schema, lambda columns: (
        file.read_stripe(number, columns=list(columns)) for number in range(file.nstripes)
    )


def _arrow(raw: Any) -> tuple[pa.Schema, _Batches]:
    is_file = raw.read(len(_ARROW_FILE)) == _ARROW_FILE
    raw.seek(0)
    source = pa.PythonFile(raw, mode="r")
    if not is_file:
        stream = pa.ipc.open_stream(source)
        return stream.schema, lambda columns: iter(stream)
    file = pa.ipc.open_file(source)
    return file.schema, lambda columns: map(file.get_batch, range(file.num_record_batches))


def _avro(raw: Any) -> tuple[pa.Schema, _Batches]:
    import fastavro

    records: Any = fastavro.reader(raw, handle_unicode_errors="surrogateescape")
    written = records.writer_schema
    fields: list[Any] = written.get("fields", []) if isinstance(written, dict) else []
    schema = pa.schema([(field["name"], _avro_type(field["type"])) for field in fields])
    kinds = {field["name"]: _avro_kind(field["type"]) for field in fields}
    _as_stored(written)

    def batches(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        chosen = pa.schema([schema.field(name) for name in columns])
        rows = ([_avro_value(row[one.name], one.type) for one in chosen] for row in records)
        for page in in_pages(rows):
            values = zip(chosen, zip(*page, strict=True), strict=True)
            yield pa.record_batch([_avro_column(column, one.type, kinds[one.name]) for one, column in values], chosen)

    return schema, batches


def _as_stored(schema: Any) -> None:
    """Takes what a value means out of a schema, so that the library gives numbers and strings as they were written: it
    has not all times and no other spelling of a UUID, and would give up the file for one row's value."""
    if isinstance(schema, dict):
        schema.pop("logicalType", None)
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _as_stored(part)


def _avro_kind(kind: Any) -> str:
    """A type and what its values mean, in a word; of what may be missing, that of the others."""
    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        return _avro_kind(others[0]) if len(others) == 1 else "union"
    if isinstance(kind, dict):
        logical = kind.get("logicalType")
        return f"{kind['type']} {logical}" if logical else str(kind["type"])
    return str(kind)


def _avro_type(kind: Any) -> pa.DataType:
    """Of what a log has no use for, binary, which no role takes."""
    known = {"string": pa.string(), "enum": pa.string(), "string uuid": pa.string()}
    known |= {
        "int": pa.int64(),
        "long": pa.int64(),
        "boolean": pa.bool_(),
        "float": pa.float64(),
        "double": pa.float64(),
        "int date": pa.date32(),
    }
    return known.get(_avro_kind(kind), pa.timestamp("us") if _avro_kind(kind) in _AVRO_UNITS else pa.binary())


def _avro_column(values: Sequence[Any], type: pa.DataType, kind: str) -> pa.Array:
    if kind in _AVRO_UNITS:
        moments = [None if value is None else _in_reach(value * _AVRO_UNITS[kind]) for value in values]
        return pa.array(moments, pa.int64()).cast(type)
    if type == pa.date32():
        return pa.array(values, pa.int32()).cast(type)
    return pa.array(values, type)


def _in_reach(moment: int) -> int | None:
    """Microseconds, if there are so many."""
    return moment if abs(moment) < 1 << 63 else None


def _avro_value(value: Any, type: pa.DataType) -> Any:
    if type == pa.binary():
        return None
    return value if type != pa.string() or value is None else text_or_none(str(value))


_OPENED: Final[dict[str, Callable[[Any], tuple[pa.Schema, _Batches]]]] = {"orc": _orc, "avro": _avro, "arrow": _arrow}
