"""Tables and views of PostgreSQL and SQLite, named by a URL: ``postgresql://HOST/DATABASE?table=NAME``,
``sqlite:///PATH?table=NAME`` (``sqlite:////PATH`` from the root).

They are read in one statement, so as they are at one moment, and can only be read. No message shows a password, nor a
user's name: the URL in it has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from searchblend.core.errors import InputError, UsageError
from searchblend.files.sqlite import SqliteFile
from searchblend.logs.formats.remote import RemoteFile
from searchblend.logs.tables.stored import ROWS_AT_ONCE, StoredTable

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa

_POSTGRESQL: Final = ("postgresql://", "postgres://")
_SQLITE: Final = "sqlite://"
_TABLE: Final = "table"
_SECONDS: Final = 10
"""how long a server may take to answer a first call"""


def is_database(name: str) -> bool:
    """Whether a name is a URL of a database."""
    return name.startswith((*_POSTGRESQL, _SQLITE))


def shown_name(url: str) -> str:
    """The URL of a table without credentials and settings. It names the same table from wherever it is used."""
    parts, table = urlsplit(url), _table(url)
    if url.startswith(_SQLITE):
        return f"{_SQLITE}/{_path(url)}?{_TABLE}={table}"
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}?{_TABLE}={table}"


def database_table(url: str) -> StoredTable:
    """The table that a URL names."""
    return (_Sqlite if url.startswith(_SQLITE) else _Postgresql)(url)


def _table(url: str) -> str:
    named = [value for name, value in parse_qsl(urlsplit(url).query) if name == _TABLE]
    if len(named) != 1:
        raise UsageError(f"LOG: expected one ?{_TABLE}=NAME in the URL of a database")
    return named[0]


def _path(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc or not parts.path.strip("/"):
        raise UsageError(f"LOG: expected {_SQLITE}/PATH?{_TABLE}=NAME, with one more / for a path from the root")
    return Path(unquote(parts.path[1:])).absolute()


class _Sqlite(StoredTable):
    """A row's value has whatever type it likes in SQLite, so all columns are read as text. What is no text (BLOBs, and
    bytes that are not of the encoding) is missing."""

    def __init__(self, url: str) -> None:
        self._path, self._table = _path(url), _table(url)
        super().__init__("sqlite", RemoteFile(shown_name(url)))

    def open(self) -> None:
        import pyarrow as pa

        if not self._path.is_file():
            raise InputError(self.label, "no such file")
        with self._connected() as file:
            names = file.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", (self._table,))
        if not names:
            raise InputError(self.label, "no such table in this database")
        self._schema = pa.schema([(name, pa.string()) for (name,) in names])

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        before = self._stamp()
        with self._connected() as file:
            ((encoding,),) = file.execute("PRAGMA encoding")
            for page in file.pages(
                f"SELECT {', '.join(map(_bytes_of, columns))} FROM {_name(self._table)}", ROWS_AT_ONCE
            ):
                values = [
                    pa.array([_text(one, encoding) for one in column], pa.string())
                    for column in zip(*page, strict=True)
                ]
                yield pa.record_batch(values, list(columns))
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
    return f"CASE typeof({name}) WHEN 'blob' THEN NULL ELSE CAST(CAST({name} AS TEXT) AS BLOB) END"


def _text(value: bytes | None, encoding: str) -> str | None:
    try:
        return None if value is None else value.decode(encoding)
    except UnicodeDecodeError:
        return None


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_WHOLE: Final = ("int2", "int4", "int8")
_TEXTS: Final = ("text", "varchar", "bpchar", "name", "uuid")
_TIMES: Final = ("timestamp", "timestamptz", "date")
_FRACTIONS: Final = ("float4", "float8", "numeric")


class _Postgresql(StoredTable):
    """Credentials are those of the URL, or where PostgreSQL's own programs look for them."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._table = _table(url).split(".")
        others = urlencode([one for one in parse_qsl(parts.query) if one[0] != _TABLE], quote_via=quote)
        self._server = urlunsplit(parts._replace(query=others))
        super().__init__("postgresql", RemoteFile(shown_name(url)))

    def open(self) -> None:
        import pyarrow as pa
        from psycopg import sql

        with self._connected() as connection:
            cursor = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(sql.Identifier(*self._table)))
            known = connection.adapters.types
            kinds = [(one.name, known.get(one.type_code)) for one in cursor.description or ()]
        self._kinds = {name: kind.name if kind else "" for name, kind in kinds}
        self._schema = pa.schema([(name, self._type(kind)) for name, kind in self._kinds.items()])

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from psycopg import sql

        chosen = sql.SQL(", ").join(self._expression(name) for name in columns)
        statement = sql.SQL("SELECT {} FROM {}").format(chosen, sql.Identifier(*self._table))
        fields = [self._schema.field(name) for name in columns]
        with self._connected() as connection, connection.cursor(name="log", binary=True) as cursor:
            cursor.execute(statement)
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                values = zip(fields, zip(*rows, strict=True), strict=True)
                yield pa.record_batch(
                    [_postgresql_column(column, one.type) for one, column in values], pa.schema(fields)
                )

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection that cannot write. An encoding of which nothing is known could not be turned into UTF-8."""
        import psycopg

        try:
            connection = psycopg.connect(self._server, connect_timeout=_SECONDS, client_encoding="UTF8")
        except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
            advice = "is the address right, and the password in PGPASSWORD or ~/.pgpass?"
            raise InputError(self.label, f"the server was not reached, or refuses to let us in: {advice}") from error
        with closing(connection):
            connection.read_only = True
            if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
                raise InputError(self.label, "expected a database with an encoding, found SQL_ASCII")
            yield connection

    def _type(self, kind: str) -> pa.DataType:
        """Of what a log has no use for, binary, which no role takes."""
        import pyarrow as pa

        types = {
            **dict.fromkeys(_WHOLE, pa.int64()),
            **dict.fromkeys(_TEXTS, pa.string()),
            **dict.fromkeys(_TIMES, pa.timestamp("us")),
            **dict.fromkeys(_FRACTIONS, pa.float64()),
            "bool": pa.bool_(),
        }
        return types.get(kind, pa.binary())

    def _expression(self, column: str) -> Any:
        """A column as the type that is said of it. A point in time is a number, since Python has not all of them."""
        from psycopg import sql

        kind = self._kinds[column]
        whole = "CASE WHEN isfinite({0}) THEN (extract(epoch FROM {0}) * 1000000)::int8 END"
        form = {
            **dict.fromkeys(_TEXTS, "{0}::text"),
            **dict.fromkeys(_TIMES, whole),
            **dict.fromkeys(_FRACTIONS, "{0}::float8"),
        }
        return sql.SQL(form.get(kind, "{0}")).format(sql.Identifier(column))

    def problem(self, error: Exception) -> str:
        state = getattr(error, "sqlstate", None)
        known = {"42P01": "no such table", "3F000": "no such table", "42501": "this role may not read the table"}
        return known.get(str(state), f"the table cannot be read (PostgreSQL says {state or type(error).__name__})")


def _postgresql_column(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if type == pa.timestamp("us"):
        return pa.array(values, pa.int64()).cast(type)
    return pa.array(values, type)
