"""A table or view of PostgreSQL: one statement of a transaction that cannot write."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import psycopg
import pyarrow as pa
from psycopg import sql

from searchblend.core.errors import InputError
from searchblend.logs.formats.remote import RemoteFile
from searchblend.logs.tables.stored import MAX_STRING, StoredTable, in_pages
from searchblend.logs.tables.urls import server_in, shown_log, table_in

_SECONDS: Final = 10
"""how long a server may take to answer a first call"""
_WHOLE: Final = ("int2", "int4", "int8")
_TEXTS: Final = ("text", "varchar", "bpchar", "name", "uuid", "numeric")
_TIMES: Final = ("timestamp", "timestamptz", "date")
_FRACTIONS: Final = ("float4", "float8")
_KINDS_SENT: Final = {**dict.fromkeys(_TEXTS, "bytea"), **dict.fromkeys(_TIMES, "int8"), "float4": "float8"}
"""kind of a column → what its expression is read as, if that is another kind"""
_Decode = Callable[[bytes], tuple[str, int]]


class PostgresqlTable(StoredTable):
    """Credentials are those of the URL, or where PostgreSQL's own programs look for them."""

    def __init__(self, url: str) -> None:
        self._table, self._server = table_in(url).split("."), server_in(url)
        super().__init__("postgresql", RemoteFile(shown_log(url)))

    def open(self) -> pa.Schema:
        with self._connected() as connection:
            cursor = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(sql.Identifier(*self._table)))
            known = connection.adapters.types
            kinds = [(one.name, known.get(one.type_code)) for one in cursor.description or ()]
        self._kinds = {name: kind.name if kind else "" for name, kind in kinds}
        return pa.schema([(name, self._type(kind)) for name, kind in self._kinds.items()])

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Row by row, as the server copies them: it keeps no page of them, and nor does its driver."""
        chosen = sql.SQL(", ").join(self._expression(name) for name in columns)
        statement = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT BINARY)")
        schema = pa.schema([self.schema.field(name) for name in columns])
        with self._connected() as connection, connection.cursor() as cursor:
            decode = codecs.getdecoder(connection.info.encoding)
            with cursor.copy(statement.format(chosen, sql.Identifier(*self._table))) as copy:
                copy.set_types([_KINDS_SENT.get(kind, kind) for kind in map(self._kinds.__getitem__, columns)])
                for page in in_pages(copy.rows()):
                    values = zip(schema, zip(*page, strict=True), strict=True)
                    yield pa.record_batch([_column(column, one.type, decode) for one, column in values], schema)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection that cannot write. An encoding of which nothing is known could not be turned into UTF-8.

        Strings come in the encoding of the database and are decoded here: the server would give up all rows for one
        person's letter that UTF-8 has not.
        """
        try:
            connection = psycopg.connect(self._server, connect_timeout=_SECONDS, client_encoding="UTF8")
        except (psycopg.OperationalError, psycopg.ProgrammingError):
            advice = "is the address right, and the password in PGPASSWORD or ~/.pgpass?"
            raise InputError(self.label, f"the server was not reached, or refuses to let us in: {advice}") from None
        with closing(connection):
            connection.read_only = True
            encoding = connection.info.parameter_status("server_encoding")
            if encoding == "SQL_ASCII":
                raise InputError(self.label, "expected a database with an encoding, found SQL_ASCII")
            connection.execute(sql.SQL("SET client_encoding TO {}").format(sql.Literal(encoding)))
            try:
                codecs.lookup(connection.info.encoding)
            except (psycopg.NotSupportedError, LookupError):
                raise InputError(
                    self.label, f"expected a database in an encoding that Python knows, found {encoding}"
                ) from None
            yield connection

    def _type(self, kind: str) -> pa.DataType:
        """Of what a log has no use for, binary, which no role takes."""
        types = {
            **dict.fromkeys(_WHOLE, pa.int64()),
            **dict.fromkeys(_TEXTS, pa.string()),
            **dict.fromkeys(_TIMES, pa.timestamp("us")),
            **dict.fromkeys(_FRACTIONS, pa.float64()),
            "bool": pa.bool_(),
        }
        return types.get(kind, pa.binary())

    def _expression(self, column: str) -> Any:
        """A column as the type that is said of it; no row's value can make that fail.

        A point in time is a number, since Python has not all of them, and missing where the database has it not.
        """
        kind = self._kinds[column]
        is_moment = "{0} > '-infinity' AND {0} < '290000-01-01'"
        whole = f"CASE WHEN {is_moment} THEN (extract(epoch FROM {{0}}) * 1000000)::int8 END"
        form = {
            **dict.fromkeys(_TEXTS, f"CASE WHEN octet_length({{0}}::text) <= {MAX_STRING} THEN {{0}}::text END"),
            **dict.fromkeys(_TIMES, whole),
            **dict.fromkeys(_FRACTIONS, "{0}::float8"),
        }
        return sql.SQL(form.get(kind, "{0}")).format(sql.Identifier(column))

    def problem(self, error: Exception) -> str:
        state = getattr(error, "sqlstate", None)
        known = {"42P01": "no such table", "3F000": "no such table", "42501": "this role may not read the table"}
        return known.get(str(state), f"the table cannot be read (PostgreSQL says {state or type(error).__name__})")


def _column(values: Sequence[Any], type: pa.DataType, decode: _Decode) -> pa.Array:
    if type == pa.timestamp("us"):
        return pa.array(values, pa.int64()).cast(type)
    if type == pa.string():
        values = [None if value is None else _text(value, decode) for value in values]
    return pa.array(values, type)


def _text(value: bytes, decode: _Decode) -> str | None:
    """One person's bytes may be no letters of the encoding: they are missing."""
    try:
        return decode(value)[0]
    except UnicodeDecodeError:
        return None
