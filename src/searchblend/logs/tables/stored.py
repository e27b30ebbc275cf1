"""A table that a library or a database keeps, as a stream of Arrow batches.

Its columns are what the library says of them before a row is read. What goes wrong in a library, on either side of the
database that takes the stream, is one line about the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from searchblend.core.errors import InputError, SearchblendError
from searchblend.logs.formats.layout import MAX_LINE
from searchblend.logs.formats.remote import LogFile

if TYPE_CHECKING:
    import pyarrow as pa

MAX_STRING: Final = MAX_LINE
"""Of rows that come one by one, a longer string is missing, in bytes: one person's could fill the memory."""
_ROWS_AT_ONCE: Final = 1 << 13
_BYTES_AT_ONCE: Final = 1 << 24


class StoredTable(ABC):
    """One table, as it was when it was opened."""

    snapshot: str | None = None
    """which version of it is read, if it has versions; it may be published"""
    bytes: int = 0
    """of its files, where they are known"""

    def __init__(self, format: str, label: LogFile) -> None:
        """``label`` is what errors call it."""
        self.format: Final = format
        self.label: Final = label
        self.failure: SearchblendError | None = None
        """what went wrong while the database read it: it says no more than that something did"""
        with self.in_our_words():
            self.schema: Final = self.open()
            names = self.schema.names
            if len(set(names)) < len(names):
                raise InputError(label, "two of its columns have the same name")

    @abstractmethod
    def open(self) -> pa.Schema:
        """Whatever is needed before rows are read: all of its columns."""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows; at least with these columns."""

    def stream(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        """The rows with these columns, in their order."""
        import pyarrow as pa

        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.RecordBatchReader.from_batches(schema, self._noted(list(columns), schema))

    def header(self) -> pa.RecordBatchReader:
        """A stream without a row, which has the columns."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, [])

    def _noted(self, columns: list[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            with self.in_our_words():
                for batch in self.batches(columns):
                    yield sound_batch(batch.select(columns)).cast(schema)
        except SearchblendError as error:
            self.failure = self.failure or error
            raise

    @contextmanager
    def in_our_words(self) -> Iterator[None]:
        """Whatever a library raises, and nothing of its text: values may be in it, or names of users."""
        try:
            yield
        except (SearchblendError, ImportError):
            raise
        except Exception as error:
            raise InputError(self.label, self.problem(error)) from None

    def problem(self, error: Exception) -> str:
        """What an error of the library means."""
        if isinstance(error, FileNotFoundError):
            return "one of its files is missing"
        reason = f"damaged, cut off, or of a kind that is not known here ({type(error).__name__})"
        return f"the {self.format} table cannot be read: {reason}"


def sound_stream(given: Any) -> object:
    """The stream of an object of pyarrow, with ``sound_batch`` of each batch."""
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(given)
    return pa.RecordBatchReader.from_batches(reader.schema, map(sound_batch, reader)).__arrow_c_stream__()


def sound_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, checked to the last offset: a damaged one would be read from anywhere in memory. A string that is
    not UTF-8 is missing in its row alone: to the database it would damage all."""
    import pyarrow as pa

    return pa.record_batch([_sound(column) for column in batch.columns], batch.schema)


def _sound(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        if not isinstance(column, pa.DictionaryArray):
            return _without_other_bytes(column)
        names = _without_other_bytes(column.dictionary)
        return pa.DictionaryArray.from_arrays(column.indices, names, ordered=column.type.ordered)
    return column


def _without_other_bytes(column: pa.Array) -> pa.Array:
    """The strings that are UTF-8; ``ArrowInvalid`` if something else is wrong with a column."""
    import pyarrow as pa

    kind = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    plain = column.cast(kind.get(column.type, column.type))
    plain.validate(full=True)
    return pa.array(map(_text, plain.to_pylist()), column.type)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def in_pages(rows: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    """Rows that come one by one, as many at a time as make a batch worth its while, and never many bytes of strings."""
    page: list[Sequence[Any]] = []
    n_bytes = 0
    for row in rows:
        page.append(row)
        n_bytes += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(page) == _ROWS_AT_ONCE or n_bytes >= _BYTES_AT_ONCE:
            yield page
            page, n_bytes = [], 0
    if page:
        yield page


def text_or_none(text: str) -> str | None:
    """A string of one row; one that is not UTF-8, or very long, is missing."""
    try:
        return text if len(text.encode()) <= MAX_STRING else None
    except UnicodeEncodeError:
        return None
