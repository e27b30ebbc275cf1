"""The files of a released click graph, made and read through DuckDB: Parquet needs no further library.

And a synthetic log that was drawn from one, with the document beside it that says what it is not.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from searchblend.clickgraph.release.noise_law import NoiseLaw
from searchblend.clickgraph.use.graph import ClickGraph, Counts, Edges, TableName
from searchblend.clickgraph.use.synthesize import NOTHING, WHAT_IT_IS_NOT, SyntheticLog
from searchblend.core.csv_cells import read_cell, write_csv
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InputError, InvalidParameter, MessageError, RunError
from searchblend.core.silent import SILENT
from searchblend.core.statement import FileEntry, Statement
from searchblend.wire.click_graph import (
    DATA_DICTIONARY,
    GRAPHML,
    STATEMENT_KIND,
    TABLES,
    ColumnType,
    Table,
    attribute_tables,
    data_dictionary,
    decode_noise,
    encode_graphml,
)
from searchblend.wire.click_graph_statement import params_of_statement
from searchblend.wire.release import STATEMENT, read_statement

OnStep = Callable[[str], None]
_WRITTEN: Final[Mapping[ColumnType, str]] = {"text": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE"}
_INTEGERS: Final = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"})
_READ: Final[Mapping[ColumnType, frozenset[str]]] = {
    "text": frozenset({"VARCHAR"}),
    "integer": _INTEGERS,
    "number": _INTEGERS | {"DOUBLE", "FLOAT"},
}
COLUMNS: Final = {
    "user": "a synthetic user, from 1",
    "query": "a released query",
    "url": "the URL clicked, empty if none",
    "session": "searches of one session follow one another, from 1",
    "reformulated": "1 if the search follows from the one before it in the session, else 0",
}
SYNTHETIC: Final = "SYNTHETIC: drawn at random from a released click graph; no one searched this"
MANIFEST_SUFFIX: Final = ".manifest.json"
_LINES_AT_ONCE: Final = 1 << 16
_BREAKS: Final = ("\t", "\n", "\r")


AttributeColumns = Mapping[str, Mapping[str, Sequence[str] | Sequence[int]]]
"""name of a table by attribute → its columns"""


def encode_click_graph(
    graph: ClickGraph, tables: Mapping[str, Table] | None = None, by_attribute: AttributeColumns | None = None
) -> dict[str, bytes]:
    """All files of the graph by name: three tables twice, GraphML and the data dictionary. The statement is extra.

    Rows are sorted by count and text, or by declared values: the order in which the log was read must not show.
    ``tables`` and ``by_attribute`` are the tables by attribute and what is in them.
    """
    files: dict[str, bytes] = {}
    graph = graph.in_order()
    with tempfile.TemporaryDirectory(prefix="searchblend-") as directory, duckdb.connect(":memory:") as connection:
        connection.execute("SET threads = 1")  # the same graph gives the same bytes
        path = Path(directory) / "table.parquet"
        columns_of: dict[str, Mapping[str, NDArray[Any]]] = {name: graph.columns(name) for name in TABLES}
        for name, columns in (by_attribute or {}).items():
            columns_of[name] = {one.name: _array(columns[one.name], one.type) for one in (tables or {})[name].columns}
        for table in (*TABLES.values(), *(tables or {}).values()):
            released = columns_of[table.name]
            connection.register("released", released)
            selected = ", ".join(f'"{c.name}"::{_WRITTEN[c.type]} AS "{c.name}"' for c in table.columns)
            copy = f"COPY (SELECT {selected} FROM released) TO '{_sql(path)}' (FORMAT parquet, COMPRESSION zstd)"  # noqa: S608
            connection.execute(copy)
            connection.unregister("released")
            files[table.parquet], files[table.csv] = path.read_bytes(), _csv(table, released)
    dictionary = data_dictionary((tables or {}).values()).encode()
    return {**files, GRAPHML: encode_graphml(graph), DATA_DICTIONARY: dictionary}


def _array(values: Sequence[str] | Sequence[int], kind: ColumnType) -> NDArray[Any]:
    return np.fromiter(values, dtype=_numpy_type(kind), count=len(values))


def read_attribute_tables(folder: str | Path, statement: Statement) -> dict[str, dict[str, NDArray[Any]]]:
    """The tables by attribute of a release, column by column; checked like those of the graph."""
    with duckdb.connect(":memory:") as connection:
        return {
            name: _read_table(connection, Path(folder), table, statement.files)
            for name, table in attribute_tables(params_of_statement(statement.parameters)).items()
        }


def _csv(table: Table, released: Mapping[str, NDArray[Any]]) -> bytes:
    names = [column.name for column in table.columns]
    rows = zip(*(released[name].tolist() for name in names), strict=True)
    return write_csv(names, (dict(zip(names, row, strict=True)) for row in rows)).encode()


def read_click_graph(folder: str | Path, *, on_step: OnStep = SILENT) -> ClickGraph:
    """A released click graph from its folder; Parquet if it is there, else CSV.

    Every file that the statement lists must have the SHA-256 that it states. A missing, changed or wrong file is an
    ``InputError`` that names file, column and what was expected. A folder may lack the reformulations.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(path, "expected the folder of a released click graph")
    statement = read_statement(path / STATEMENT, kind=STATEMENT_KIND)
    try:
        noise, cuts = decode_noise(statement.parameters)
    except MessageError as error:
        raise InputError(path / STATEMENT, str(error)) from error
    tables: dict[TableName, dict[str, NDArray[Any]]] = {}
    with duckdb.connect(":memory:") as connection:
        for name, table in TABLES.items():
            on_step(f"reading {name}")
            tables[name] = _read_table(connection, path, table, statement.files)
    on_step("numbering queries and URLs")
    try:
        return _build(tables, noise, cuts, statement.notice)
    except InvalidParameter as error:
        raise InputError(path, str(error)) from error


def _read_table(
    connection: duckdb.DuckDBPyConnection, folder: Path, table: Table, stated: Mapping[str, FileEntry]
) -> dict[str, NDArray[Any]]:
    paths = [folder / name for name in (table.parquet, table.csv) if (folder / name).exists()]
    if not paths:
        if table.name == "reformulations" and not {table.parquet, table.csv} & set(stated):
            return {column.name: np.empty(0, dtype=_numpy_type(column.type)) for column in table.columns}
        raise InputError(folder / table.parquet, f"is missing; expected it or {table.csv}")
    path = paths[0]
    _check_digest(path, stated)
    source = _source(path)
    _check_columns(connection, path, table, source)
    return _fetch(connection, path, table, source)


def _check_digest(path: Path, stated: Mapping[str, FileEntry]) -> None:
    entry = stated.get(path.name)
    if entry is None or not entry.sha256:
        raise InputError(path.with_name(STATEMENT), "expected its SHA-256", field=f"files.{path.name}")
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error
    if digest != entry.sha256:
        raise InputError(path, "is not the file that statement.json describes (SHA-256 differs)")


def _source(path: Path) -> str:
    if path.suffix == ".parquet":
        return f"read_parquet('{_sql(path)}', hive_partitioning = false)"
    return (
        f"read_csv('{_sql(path)}', header = true, delim = ',', quote = '\"', escape = '\"', all_varchar = true, "
        "parallel = false)"
    )


def _check_columns(connection: duckdb.DuckDBPyConnection, path: Path, table: Table, source: str) -> None:
    try:
        relation = connection.sql(f"SELECT * FROM {source}")  # noqa: S608
    except duckdb.Error as error:
        kind = "a Parquet file" if path.suffix == ".parquet" else "a CSV file with a header"
        raise InputError(path, f"expected {kind}") from error
    types = {name: kind.id.upper() for name, kind in zip(relation.columns, relation.types, strict=True)}
    for column in table.columns:
        if column.name not in types:
            names = ", ".join(c.name for c in table.columns)
            raise InputError(path, f"is missing; expected the columns {names}", field=column.name)
        if path.suffix == ".parquet" and types[column.name] not in _READ[column.type]:
            type_ = types[column.name]
            raise InputError(path, f"expected {_called(column.type)}, found {type_}", field=column.name)


def _called(kind: ColumnType) -> str:
    return {"text": "text", "integer": "whole numbers", "number": "numbers"}[kind]


def _fetch(connection: duckdb.DuckDBPyConnection, path: Path, table: Table, source: str) -> dict[str, NDArray[Any]]:
    names = ", ".join(f'"{c.name}"' for c in table.columns)
    columns = ", ".join(f'TRY_CAST("{c.name}" AS {_WRITTEN[c.type]}) AS "{c.name}"' for c in table.columns)
    try:
        # In one statement DuckDB casts while it reads CSV, and then a wrong value is an error and not NULL.
        connection.execute(f"CREATE OR REPLACE TEMP TABLE read AS SELECT {names} FROM {source}")  # noqa: S608
        fetched = connection.execute(f"SELECT {columns} FROM read").fetchnumpy()  # noqa: S608
    except duckdb.Error as error:
        raise InputError(path, "cannot be read to its end") from error
    for column in table.columns:
        _check_values(path, column.name, column.type, fetched[column.name])
    values = {c.name: np.asarray(fetched[c.name], dtype=_numpy_type(c.type)) for c in table.columns}
    if path.suffix == ".csv":
        values |= {c.name: _as_released(values[c.name]) for c in table.columns if c.type == "text"}
    return values


def _as_released(cells: Any) -> Any:
    """The strings of a column whose cells CSV holds."""
    return np.fromiter(map(read_cell, cells), dtype=object, count=len(cells))


def _check_values(path: Path, name: str, kind: ColumnType, values: Any) -> None:
    missing = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    if missing is not None and missing.any():
        row = int(np.argmax(missing)) + 1
        raise InputError(path, f"row {row}: expected {_called(kind)}", field=name)
    if kind == "number" and not np.isfinite(np.asarray(values, dtype=np.float64)).all():
        raise InputError(path, "expected finite numbers", field=name)


def _numpy_type(kind: ColumnType) -> Any:
    return {"text": object, "integer": np.int64, "number": np.float64}[kind]


def _build(
    tables: Mapping[TableName, Mapping[str, NDArray[Any]]],
    noise: Mapping[TableName, NoiseLaw],
    cuts: Mapping[TableName, float],
    notice: str | None,
) -> ClickGraph:
    queries = tuple(tables["queries"]["query"])
    clicks, following = tables["clicks"], tables["reformulations"]
    urls = tuple(sorted(set(clicks["url"])))
    number_of_query = {query: i for i, query in enumerate(queries)}
    number_of_url = {url: i for i, url in enumerate(urls)}
    return ClickGraph(
        queries,
        urls,
        _counts(tables["queries"]),
        Edges(
            _numbers("clicks", clicks["query"], number_of_query),
            _numbers("clicks", clicks["url"], number_of_url),
            _counts(clicks),
        ),
        Edges(
            _numbers("reformulations", following["query"], number_of_query),
            _numbers("reformulations", following["next_query"], number_of_query),
            _counts(following),
        ),
        noise,
        cuts,
        notice,
    )


def _numbers(table: str, strings: NDArray[np.object_], number_of: Mapping[str, int]) -> NDArray[np.int64]:
    try:
        return np.fromiter(map(number_of.__getitem__, strings), dtype=np.int64, count=len(strings))
    except KeyError:
        raise InvalidParameter(table, "expected edges of the released queries only") from None


def _counts(columns: Mapping[str, NDArray[Any]]) -> Counts:
    return Counts(columns["count"], columns["lo95"], columns["hi95"], columns["estimate"])


def _sql(path: Path) -> str:
    return str(path).replace("'", "''")


def encode_synthetic_log(graph: ClickGraph, log: SyntheticLog) -> Iterator[bytes]:
    """Tab-separated text with a header, in pieces."""
    if any(mark in string for string in (*graph.queries, *graph.urls) for mark in _BREAKS):
        raise RunError("a released text holds a tab or a line break and cannot stand in a tab-separated file")
    urls = {NOTHING: "", **dict(enumerate(graph.urls))}
    yield ("\t".join(COLUMNS) + "\n").encode()
    for start in range(0, len(log), _LINES_AT_ONCE):
        piece = slice(start, start + _LINES_AT_ONCE)
        columns = (log.user, log.query, log.url, log.session, log.reformulated)
        lines = [
            f"{user + 1}\t{graph.queries[query]}\t{urls[url]}\t{session + 1}\t{again:d}\n"
            for user, query, url, session, again in zip(*(column[piece].tolist() for column in columns), strict=True)
        ]
        yield "".join(lines).encode()


def write_synthetic_log(
    file: BinaryIO, graph: ClickGraph, log: SyntheticLog, *, users: int, release: Path
) -> JsonObject:
    """Write the log, and give what it is, what it is not, and which release it was drawn from.

    A release's own notice goes with it; ``release`` is its folder.
    """
    digest, statement = hashlib.sha256(), (release / STATEMENT).read_bytes()
    for piece in encode_synthetic_log(graph, log):
        digest.update(piece)
        file.write(piece)
    return {
        "format": "searchblend-synthetic-log",
        "version": 1,
        "notice": SYNTHETIC if graph.notice is None else f"{graph.notice}. {SYNTHETIC}",
        "is_not": list(WHAT_IT_IS_NOT),
        "columns": dict(COLUMNS),
        "searches": len(log),
        "users": users,
        "sessions": len(set(log.session.tolist())),
        "clicks": int((log.url != NOTHING).sum()),
        "reformulations": int(log.reformulated.sum()),
        "sha256": digest.hexdigest(),
        "drawn_from": {
            "statement_sha256": hashlib.sha256(statement).hexdigest(),
            "release": json.loads(statement)["release"],
        },
    }
