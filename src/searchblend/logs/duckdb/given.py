"""Tables that a caller holds in memory: handed to the database as they are where they can be read again, else copied.

They are recognised by what they offer and by the name of their type, so that none of their packages is ever imported.
What a column is depends on its name and type alone. In a column of Python objects a value is read as ``str`` writes it;
None and NaN are missing, and so is what cannot be written as UTF-8. A categorical of pandas is
read as its rows' values, whatever it declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from searchblend.core.errors import InputError
from searchblend.logs.duckdb.session import GIVEN, DatabaseError, DuckDBSession, quoted_name
from searchblend.logs.formats.files import TABLES_READ
from searchblend.logs.formats.remote import LogFile
from searchblend.logs.tables.stored import StoredTable, sound_stream

Result = TypeVar("Result")
_IN_PYTHON: Final = "pandas.DataFrame"
_DATASET: Final = "pyarrow.Dataset"
_ARROW: Final = "pyarrow."
"""how the types begin of which a string may be any bytes"""
_READ_AGAIN: Final = frozenset({"polars.DataFrame", "pyarrow.Table", "pyarrow.RecordBatch", _DATASET})
"""Their streams begin anew each time. Of any other object it is not known, and so it is read once, and copied."""


class GivenTable:
    """An object of the caller's, or a table that is stored elsewhere, as a table of the database."""

    def __init__(self, session: DuckDBSession, given: object) -> None:
        """``InputError`` if it is not a table of a kind that can be read."""
        self._session, self._given, self._python = session, given, False
        stored = given if isinstance(given, StoredTable) else None
        self._stored: Final = stored
        self.label: Final[LogFile] = stored.label if stored else Path(type(given).__name__)
        """what errors call it"""
        self.format: Final = stored.format if stored else "table"
        self.snapshot: Final = stored.snapshot if stored else None
        self.bytes: Final = stored.bytes if stored else 0
        self.name = session.new_name(GIVEN)
        """of the table that is read"""
        self._copied = False
        self._stream: _Stream | None = None
        with self._refused():
            self._register()
            self.types: Final = session.types(self.name)

    @contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            yield
        except DatabaseError as error:
            if self._stored is not None and self._stored.failure is not None:
                raise self._stored.failure from None
            raise InputError(self.label, "the table cannot be read") from error

    def _register(self) -> None:
        if self._stored is not None:
            self._session.register(self.name, self._stored.header().__arrow_c_stream__())
            self._copied = True
            return
        kinds = _kinds(self._given)
        if "polars.LazyFrame" in kinds:
            self._given = self._given.collect()  # type: ignore[attr-defined]
            kinds = _kinds(self._given)
        if isinstance(self._given, Mapping) or _IN_PYTHON in kinds:
            self._python = True
            if isinstance(self._given, Mapping):
                self._given = _arrays(self._given, self.label)
            else:
                self._given = _changed(self._given, _without_categories)
            self._session.register(self.name, self._given)
        elif not kinds & _READ_AGAIN and not hasattr(self._given, "__arrow_c_stream__"):
            raise InputError(self.label, f"cannot be read: expected {TABLES_READ}")
        else:
            self._stream = _Stream(self._given, kinds)
            self._copied = not kinds & _READ_AGAIN
            given = self._stream.__arrow_c_stream__() if self._copied else self._stream
            self._session.register(self.name, given)

    def keep(self, columns: Iterable[str]) -> None:
        """These columns will be read. A stream ends with its first reading, so they are copied, in their order."""
        chosen = list(dict.fromkeys(columns))
        if self._stream is not None:
            self._stream.columns = chosen
        if self._copied:
            names = ", ".join(map(quoted_name, chosen))
            stream, self.name = self.name, self._session.new_name(GIVEN)
            with self._refused(), self._session.in_order():
                if self._stored is not None:
                    self._session.register(stream, self._stored.stream(chosen).__arrow_c_stream__())
                self._session.execute(f"CREATE TEMP TABLE {self.name} AS SELECT {names} FROM {stream}")

    def read(self, reading: Callable[[], Result]) -> Result:
        """What a reading of the table yields. One person's object that is not a string must not refuse all."""
        with self._refused():
            try:
                return reading()
            except DatabaseError:
                if not self._python:
                    raise
                self._session.register(self.name, _changed(self._given, _mended))
                self._python = False
                return reading()

    @property
    def rows(self) -> int:
        return int(self._session.value(f"SELECT count(*) FROM {self.name}"))


class _Stream:
    """Nothing but the stream of an object, lest the database ask for a package to read it with."""

    def __init__(self, given: Any, kinds: frozenset[str]) -> None:
        self._given, self._is_dataset = given, _DATASET in kinds
        self._may_be_unsound = any(kind.startswith(_ARROW) for kind in kinds)
        self.columns: list[str] | None = None
        """of a dataset: what is read; None: all"""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        if not self._may_be_unsound:
            return self._given.__arrow_c_stream__(requested_schema)
        return sound_stream(self._given.scanner(self.columns).to_reader() if self._is_dataset else self._given)


def _kinds(given: object) -> frozenset[str]:
    """``package.Name`` of its type and of those it is derived from."""
    return frozenset(f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(given).__mro__)


def _arrays(given: Mapping[Any, Any], label: LogFile) -> dict[str, Any]:
    """Named arrays, where the database would not check their lengths."""
    arrays = {str(name): column for name, column in given.items()}
    if not all(isinstance(column, np.ndarray) and column.ndim == 1 for column in arrays.values()):
        raise InputError(label, "expected NumPy arrays of one dimension under the names of columns")
    if len({len(column) for column in arrays.values()}) != 1:
        raise InputError(label, "expected columns of one length")
    return {name: _objects(column) if column.dtype.kind in "OU" else column for name, column in arrays.items()}


def _objects(column: Any) -> Any:
    """An array of objects, with None for what is masked."""
    objects = column.astype(object, copy=False)
    return np.where(column.mask, None, objects.data) if isinstance(column, np.ma.MaskedArray) else objects


def _changed(given: Any, change: Callable[[Any], Any]) -> Any:
    """The same table with other columns, by place, since a frame may have a name twice."""
    if isinstance(given, Mapping):
        return {name: change(column) for name, column in given.items()}
    changed = given.copy(deep=False)
    for place in range(len(given.columns)):
        column = given.iloc[:, place]
        if (other := change(column)) is not column:
            changed.isetitem(place, other)
    return changed


def _without_categories(column: Any) -> Any:
    """The values of a pandas categorical: points in time and fractions as such, since their columns have these types,
    all others as objects. The database would read or refuse a row by what all categories are, also those that no row
    has, and take a missing whole number for a reason to read fractions."""
    categories = getattr(column.dtype, "categories", None)
    if categories is None:
        return column
    return column.astype({"f": float, "M": categories.dtype}.get(categories.dtype.kind, object))


def _mended(column: Any) -> Any:
    """Objects without those that the database cannot write as text."""
    return np.frompyfunc(_text_or_none, 1, 1)(np.asarray(column)) if column.dtype.kind == "O" else column


def _text_or_none(value: Any) -> Any:
    try:
        str(value).encode()
    except Exception:  # whatever an object does when it is asked for its text, its row alone is without
        return None
    return value
