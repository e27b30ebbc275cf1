"""Files of ORC, Avro and Arrow, of a disk or a store. They are opened anew for each reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from searchblend.logs.formats.files import open_raw, size_of
from searchblend.logs.tables.stored import StoredTable, in_pages, text_or_none

_ARROW_FILE: Final = b"ARROW1"
"""begins a file; without it, Arrow's bytes are a stream"""
_Batches = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


class ArrowFile(StoredTable):
    """One file of a format in ``ARROW_SUFFIXES``."""

    def open(self) -> pa.Schema:
        self.bytes = size_of(self.label)
        with open_raw(self.label) as raw, self.in_our_words():
            schema, _ = _OPENED[self.format](raw)
            return schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Checked to the last offset: a damaged one would be read from anywhere in memory."""
        with open_raw(self.label) as raw, self.in_our_words():
            _, batches = _OPENED[self.format](raw)
            for batch in batches(columns):
                batch.validate(full=True)
                yield batch

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

    def batches(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        chosen = pa.schema([schema.field(name) for name in columns])
        rows = ([_avro_value(row[one.name], one.type) for one in chosen] for row in records)
        for page in in_pages(rows):
            values = zip(chosen, zip(*page, strict=True), strict=True)
            yield pa.record_batch([pa.array(column, one.type) for one, column in values], chosen)

    return schema, batches


def _avro_type(kind: Any) -> pa.DataType:
    """Of what a log has no use for, binary, which no role takes."""

    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        return _avro_type(others[0]) if len(others) == 1 else pa.binary()
    if isinstance(kind, dict):
        logical = kind.get("logicalType")
        return _avro_type(f"{kind['type']} {logical}" if logical else kind["type"])
    moment, known = pa.timestamp("us"), {"string": pa.string(), "enum": pa.string(), "string uuid": pa.string()}
    known |= {
        "int": pa.int64(),
        "long": pa.int64(),
        "boolean": pa.bool_(),
        "float": pa.float64(),
        "double": pa.float64(),
    }
    known |= {f"long {prefix}timestamp-{unit}": moment for prefix in ("", "local-") for unit in ("millis", "micros")}
    return known.get(str(kind), pa.date32() if kind == "int date" else pa.binary())


def _avro_value(value: Any, type: pa.DataType) -> Any:
    return value if type != pa.string() or value is None else text_or_none(str(value))


_OPENED: Final[dict[str, Callable[[Any], tuple[pa.Schema, _Batches]]]] = {"orc": _orc, "avro": _avro, "arrow": _arrow}
