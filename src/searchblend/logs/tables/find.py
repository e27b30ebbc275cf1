"""What the paths of a log name: files of lines and of Parquet, or tables that come as streams."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any, Final

from searchblend.core.errors import InputError, InvalidParameter, UsageError
from searchblend.logs.formats.files import DELTA_LAKE, ICEBERG, are_paths, expand, local_path, table_kinds
from searchblend.logs.formats.layout import UTF_8
from searchblend.logs.formats.remote import LogFile, is_remote
from searchblend.logs.options import ReadOptions
from searchblend.logs.tables.stored import StoredTable
from searchblend.logs.tables.urls import ARROW_SUFFIXES, METADATA, is_ir, is_named, is_sqlite, shown_log

_LAKES: Final = ("delta", "iceberg")
_KINDS: Final = {DELTA_LAKE: "delta", ICEBERG: "iceberg"}
_EXTRAS: Final = {"orc": "arrow", "sqlite": "arrow"}
"""format → the extra of our package that brings what reads it, if it is called otherwise"""
_AUTO: Final = "auto"


def inputs_of(options: ReadOptions) -> tuple[list[LogFile], list[object]]:
    """The files of a log, or else its tables: of a library, a database, or in the caller's memory."""
    if not are_paths(options.paths):
        _refuse_text_options(options, "a table in memory")
        if options.format != _AUTO:
            raise InvalidParameter("format", "only of files: a table in memory has columns")
        return [], [options.paths]
    given = [options.paths] if isinstance(options.paths, str | PathLike) else list(options.paths)
    names = [fspath(one) for one in given]
    alone = [name for name in names if is_named(name) or _lake(name, options.format)]
    if not alone:
        return _of_files(expand(options.paths), options)
    label = shown_log(alone[0])
    if len(given) > 1:
        raise UsageError(
            f"{label}: a table of a database or a lake, or a data set, is a log by itself, without other files"
        )
    _refuse_where_no_stream_is_read(options, label)
    return [], [_named(alone[0], options) if is_named(alone[0]) else _table_of_lake(alone[0], options.format)]


def _of_files(files: list[LogFile], options: ReadOptions) -> tuple[list[LogFile], list[object]]:
    """All of Arrow's kind or none, by their names alone, unless a format is stated."""
    if options.format != _AUTO:
        formats = [options.format if options.format in ARROW_SUFFIXES.values() else None] * len(files)
    else:
        formats = [ARROW_SUFFIXES.get(file.suffix.lower()) for file in files]
    if not any(formats):
        return files, []
    for file, format in zip(files, formats, strict=True):
        if format != formats[0]:
            one, other = format or "another format", formats[0] or "another one"
            raise InputError(file, f"is in {one}, other files of this log in {other}")
    _refuse_where_no_stream_is_read(options, str(files[0]))
    return [], [_opened(str(format), file) for file, format in zip(files, formats, strict=True)]


def _lake(name: str, format: str) -> str | None:
    """``delta``, ``iceberg`` or None: by the folder's own marks, which its writer made."""
    if format in _LAKES:
        return format
    if format != _AUTO or is_remote(name):
        return None
    path = local_path(name)
    if path.name.endswith(METADATA):
        return "iceberg"
    kinds = table_kinds(path) if path.is_dir() else []
    if len(kinds) > 1 and not _KINDS.keys().isdisjoint(kinds):
        raise InputError(path, f"is {' and '.join(kinds)}: say which one is current with --format delta or iceberg")
    return _KINDS.get(kinds[0]) if kinds else None


def _named(name: str, options: ReadOptions) -> StoredTable:
    if options.format != _AUTO:
        raise InvalidParameter("format", "only of files: a table of a database, or a data set, has columns")
    if is_ir(name):
        return _opened("ir", name)
    return _opened("sqlite" if is_sqlite(name) else "postgresql", name)


def _table_of_lake(name: str, format: str) -> StoredTable:
    if is_remote(name):
        raise InputError(
            shown_log(name), "tables of Delta Lake and Iceberg are read from a disk: export it to plain Parquet"
        )
    path = local_path(name)
    if not path.exists():
        raise InputError(path, "no such table")
    return _opened(str(_lake(name, format)), path)


def _opened(format: str, place: Any) -> StoredTable:
    """The one place that loads what reads tables."""
    try:
        if format == "postgresql":
            from searchblend.logs.tables.postgresql_table import PostgresqlTable

            return PostgresqlTable(place)
        if format == "ir":
            from searchblend.logs.tables.ir_dataset import IrDataset

            return IrDataset(place)
        if format == "sqlite":
            from searchblend.logs.tables.sqlite_table import SqliteTable

            return SqliteTable(place)
        if format in _LAKES:
            from searchblend.logs.tables.lakes import DeltaLake, Iceberg

            return DeltaLake(place) if format == "delta" else Iceberg(place)
        from searchblend.logs.tables.arrow_files import ArrowFile

        return ArrowFile(format, place)
    except ImportError as error:
        advice = f"{format} needs more packages: pip install searchblend[{_EXTRAS.get(format, format)}]"
        raise UsageError(f"{shown_log(str(place))}: {advice}") from error


def _refuse_where_no_stream_is_read(options: ReadOptions, label: str) -> None:
    _refuse_text_options(options, "this kind of table")
    if options.engine == "spark":
        raise UsageError(f"{label}: only with --engine duckdb; for a cluster write it to plain Parquet first")


def _refuse_text_options(options: ReadOptions, what: str) -> None:
    """What says how lines of text are read."""
    if options.encoding != UTF_8:
        raise InvalidParameter("encoding", f"only of text: {what} has strings")
    if options.delimiter is not None:
        raise InvalidParameter("delimiter", f"only of text: {what} has columns")
    if options.quoted_line_feeds:
        raise InvalidParameter("quoted-line-feeds", f"only of CSV: {what} has rows")
    if options.query_parameter is not None:
        raise InvalidParameter("query-parameter", "only with --format combined")
