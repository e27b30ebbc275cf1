"""One DuckDB connection with its limits, its private directory, and its failures in our words."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from searchblend.core.errors import InvalidParameter, OutputError, RunError
from searchblend.logs.formats.remote import RemoteFile
from searchblend.logs.relational import Words, polled, private_directory, removal

if TYPE_CHECKING:
    from searchblend.logs.duckdb.remote_tables import RemoteTables

Number = TypeVar("Number", bound=np.unsignedinteger)
OnFraction = Callable[[float], None]
GIVEN: Final = "given"
"""How the names of tables begin that belong to the caller."""
_POLL_SECONDS: Final = 0.1
_ROWS_AT_ONCE: Final = 1 << 13
_SHELF_BITS: Final = 14
_PRINTED: Final = ("varchar", "decimal")
"""Types that are printed in full, as ``JSON`` or ``DECIMAL(9,2)``: there are no values in it."""


class DatabaseError(RunError):
    """The database gave up for a reason of its own."""


def quoted(string: str) -> str:
    """A string as an SQL literal."""
    return "'" + string.replace("'", "''") + "'"


def quoted_name(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


class DuckDBSession:
    """A database in memory that spills to its own directory. ``close`` removes every trace of both."""

    words: Final = Words(
        quotient="//",
        hash="hash",
        md5_number="md5_number({})",
        digest="lpad(lower(to_hex(digest)), 32, '0')",
        each="[{} FOR i IN range({}, n + 1)]",
        shelf=f"((n::UBIGINT << {_SHELF_BITS}) | (place >> {64 - _SHELF_BITS}))::BIGINT",
        shelf_bits=_SHELF_BITS,
        order="n, place, query, url",
    )

    def __init__(self, memory: str | None, threads: int | None, temp_directory: str | os.PathLike[str] | None) -> None:
        self._connection = duckdb.connect(":memory:")
        self.directory = private_directory(temp_directory)
        self._remove = removal(self, self.directory, self._connection.close)
        try:
            self._set("memory", "memory_limit", memory)
            self._set("threads", "threads", threads)
            self.execute("SET preserve_insertion_order = false")  # nothing here depends on the order of lines
            self.execute(f"SET temp_directory = {quoted(os.fspath(self.directory / 'spill'))}")
            self.execute("SET enable_progress_bar = false")  # else printed at a prompt and in notebooks
            self.execute("SET autoinstall_known_extensions = false")
            self.execute("SET pandas_analyze_sample = 0")  # what a column is must not depend on its values
        except BaseException:
            self.close()
            raise
        self._tables = 0
        self._remote: RemoteTables | None = None

    def _set(self, option: str, setting: str, value: str | int | None) -> None:
        if value is None:
            return
        try:
            self._connection.execute(f"SET {setting} = {quoted(str(value))}")
        except duckdb.Error as error:
            expected = "a size such as 2GB" if option == "memory" else "a whole number of at least 1"
            raise InvalidParameter(option, f"expected {expected}") from error

    def close(self) -> None:
        self._remove()

    def new_name(self, kind: str) -> str:
        """A table name that is not in use."""
        self._tables += 1
        return f"{kind}_{self._tables}"

    def drop_all_tables(self) -> None:
        """All but the caller's."""
        for (name,) in self.rows("SELECT table_name FROM duckdb_tables()"):
            if not name.startswith(f"{GIVEN}_"):
                self.execute(f"DROP TABLE {quoted_name(name)}")

    def make(self, kind: str, select: str, parameters: Sequence[object] = ()) -> str:
        name = self.new_name(kind)
        self.execute(f"CREATE TEMP TABLE {name} AS {select}", parameters)
        return name

    part = make

    def discard(self, table: str) -> None:
        self.execute(f"DROP TABLE {table}")

    def table(self, kind: str, schema: str, rows: Sequence[tuple[Any, ...]]) -> str:
        """The name of a new table with these rows."""
        columns = [column.split() for column in schema.split(", ")]
        select = ", ".join(f"unnest(?::{type_}[]) AS {name}" for name, type_ in columns)
        by_column = [list(values) for values in zip(*rows, strict=True)] or [[] for _ in columns]
        return self.make(kind, f"SELECT {select}", by_column)

    @contextmanager
    def values(self, kind: str, schema: str, rows: Sequence[tuple[Any, ...]]) -> Iterator[str]:
        name = self.table(kind, schema, rows)
        try:
            yield name
        finally:
            self.discard(name)

    def remote_name(self, file: RemoteFile) -> str:
        """A name under which statements find a file of a store."""
        if self._remote is None:
            from searchblend.logs.duckdb.remote_tables import RemoteTables

            self._remote = RemoteTables()
            self._connection.register_filesystem(self._remote)
        return self._remote.add(file)

    def interrupt(self) -> None:
        """Stop the statement under way; may be called from another thread."""
        self._connection.interrupt()

    def add_function(self, name: str, function: Callable[[str], bool | str], returns: str = "BOOLEAN") -> None:
        self._connection.create_function(name, function, ["VARCHAR"], returns)

    @contextmanager
    def _our_words(self) -> Iterator[None]:
        """As below; what a store said of one of its files comes first."""
        try:
            with _our_words():
                yield
        except DatabaseError:
            if self._remote is not None and self._remote.failure is not None:
                raise self._remote.failure from None
            raise

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> None:
        with self._our_words():
            self._connection.execute(statement, parameters)

    def execute_counting(self, statement: str) -> int:
        """Executes, and returns how many rows DuckDB's own profile says were read from files and tables."""
        with self._our_words():
            self._connection.execute("PRAGMA enable_profiling = 'no_output'")
            try:
                self._connection.execute(statement)
                profile = json.loads(self._connection.get_profiling_information())
            finally:
                self._connection.execute("PRAGMA disable_profiling")
        return int(profile["query"]["total_rows_scanned"])

    def register(self, name: str, given: object) -> None:
        """An object that the database can read, as a table, or in place of another one."""
        with self._our_words():
            self._connection.register(name, given)

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Tables that are made inside have their rows in the order in which they come."""
        self.execute("SET preserve_insertion_order = true")
        try:
            yield
        finally:
            self.execute("SET preserve_insertion_order = false")

    @contextmanager
    def numbers(self, name: str, values: NDArray[np.unsignedinteger]) -> Iterator[None]:
        """An array as a table with the one column ``value``."""
        self.register(name, {"value": values})
        try:
            yield
        finally:
            self._connection.unregister(name)

    def rows(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._our_words():
            return self._connection.execute(statement, parameters).fetchall()

    def types(self, table: str) -> dict[str, str]:
        """name → kind of the columns of a table. In full a type has an ENUM's values and a STRUCT's names in it, which
        are people's: they decide nothing, and no error shows them."""
        with self._our_words():
            relation = self._connection.sql(f"SELECT * FROM {table}")
            kinds = [str(kind) if kind.id in _PRINTED else kind.id.upper() for kind in relation.types]
            return dict(zip(relation.columns, kinds, strict=True))

    def stream(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """The rows, some at a time. No other statement may run until the last was taken."""
        with self._our_words():
            self._connection.execute(statement)
            while rows := self._connection.fetchmany(_ROWS_AT_ONCE):
                yield from rows

    def value(self, statement: str, parameters: Sequence[object] = ()) -> Any:
        return self.rows(statement, parameters)[0][0]

    def column(self, statement: str, kind: type[Number]) -> NDArray[Number]:
        """The one column of whole numbers that a statement yields."""
        (column,) = self.arrays(statement)
        return np.asarray(column, dtype=kind)

    def arrays(self, statement: str) -> list[NDArray[Any]]:
        """The columns that a statement yields, of any type; where there are NULLs, masked."""
        with self._our_words():
            return list(self._connection.execute(statement).fetchnumpy().values())

    def watched(self, on_fraction: OnFraction) -> AbstractContextManager[None]:
        """Reports how far the statements inside are, several times a second."""
        return polled(lambda: on_fraction(max(self._connection.query_progress(), 0.0) / 100), _POLL_SECONDS)


@contextmanager
def _our_words() -> Iterator[None]:
    """DuckDB's messages may quote the data, so only their kind is passed on."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise RunError(
            "not enough memory or temporary disk space: allow more memory, or name a temp directory with more room"
        ) from error
    except duckdb.ConnectionException as error:
        raise RunError("the log is closed") from error
    except duckdb.InterruptException:
        raise
    except (duckdb.IOException, duckdb.FatalException) as error:
        if "No space left" in str(error) or "Could not write" in str(error):
            raise OutputError("no space left in the temp directory: name one with more room") from error
        raise DatabaseError(f"the database could not go on ({type(error).__name__})") from error
    except duckdb.Error as error:
        raise DatabaseError(f"the database could not go on ({type(error).__name__})") from error
