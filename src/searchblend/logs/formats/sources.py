"""Which format a log is in: named by the caller, or detected from the name of each file and its header.

No line of a person decides anything about a file. So formats without a header are never guessed from their lines.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from searchblend.core.errors import InputError, InvalidColumns, InvalidParameter
from searchblend.logs.formats.files import BOM, first_lines, other_than_text, text_name
from searchblend.logs.formats.gate import csv_fields
from searchblend.logs.formats.layout import (
    FORMATS,
    MOST_FIELDS,
    NO_HEADER,
    ROW,
    UBI_OPTIONAL,
    UTF_8,
    ColumnMap,
    Columns,
    Delimited,
    JsonLines,
    Layout,
    ServerLog,
    Sessions,
    Source,
    UbiTable,
)
from searchblend.logs.formats.remote import LogFile
from searchblend.logs.formats.server_log import USER_FIELDS, check_parameter
from searchblend.logs.options import ReadOptions

_AOL_HEADER: Final = ("AnonID", "Query", "QueryTime", "ItemRank", "ClickURL")
AOL: Final = Delimited(
    "aol",
    "\t",
    n_fields=5,
    positions={"user": 0, "query": 1, "time": 2, "rank": 3, "url": 4},
    may_end_after=3,
    no_query="-",
)
"""The AOL log: ten tab-separated files ``user-ct-test-collection-NN.txt``, each with its own header.

A line without a click has its last two fields empty, or ends after the third. A click is a line with a URL, whatever
its rank: some thousands of clicks carry rank 0. A query ``-`` is one that was taken out; it and blank ones are unusable
and counted. URLs are scheme and host only.
"""
EXCITE: Final = Delimited(
    "excite",
    "\t",
    n_fields=3,
    positions={"user": 0, "time": 1, "query": 2},
    header=False,
    may_end_after=2,
)
"""The Excite logs of 1997: user (16 hexadecimal digits), time (YYMMDDhhmmss), query; tabs, no header, no URLs.

The query may be missing or empty (one line in nine); such a line is unusable and counted.
"""
_OF_SEARCHES: Final = ("yandex", "combined", "ubi")
"""Formats in which a line is not a row of a user and a value."""
DELIMITERS: Final = {"tsv": "\t", "csv": ","}
_IN_CSV: Final = ",;|"
"""What may stand between the names of a CSV header: the first of these that is in it."""
_DELIMITING: Final = frozenset(string.punctuation + "\t") - {'"'}
PARQUET_MAGIC: Final = b"PAR1"
_WHOLE_NUMBERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_STRING_OR_NUMBER: Final = frozenset(
    {"VARCHAR", "UUID", "ENUM", *_WHOLE_NUMBERS, *(f"U{one}" for one in _WHOLE_NUMBERS)}
)
_TIME: Final = ("TIMESTAMP", "DATE", "DOUBLE", "FLOAT", "DECIMAL")
"""how the kinds of columns begin that hold times"""
_JSON_SUFFIXES: Final = (".jsonl", ".ndjson", ".json")
ColumnTypes = Callable[[LogFile], Mapping[str, str]]
"""name → kind of the columns of a Parquet file; an engine knows them"""


def find_sources(
    files: Sequence[LogFile], options: ReadOptions, columns: ColumnMap, column_types: ColumnTypes
) -> list[Source]:
    """The files, those with the same layout together. All must be in one format, and all or none have URLs.

    ``columns`` are what the caller states of them, ``column_types`` asks an engine for those of Parquet files.
    """
    if options.format not in FORMATS:
        raise InvalidParameter("format", f"expected one of {', '.join(FORMATS)}")
    if options.query_parameter is not None and options.format != "combined":
        raise InvalidParameter("query-parameter", "only with --format combined")
    if options.delimiter is not None:
        options = replace(options, format=_format_with(options.delimiter, options.format))
    if columns.values and options.format in _OF_SEARCHES:
        raise InvalidParameter("format", f"{options.format} has searches, not rows of users and values")
    if is_ubi(files[0], options.format) and not columns.values:
        files = _tables_of_ubi(files, urls=columns.urls)
    sources: list[Source] = []
    for file in files:
        layout = _layout(file, options, columns, column_types)
        same = next((paths for other, paths in sources if other == layout), None)
        if same is not None:
            same.append(file)
            continue
        sources.append((layout, [file]))
        refuse_unlike(sources[0][0], layout, file)
    return sources


def is_ubi(file: LogFile, format_name: str) -> bool:
    return format_name == "ubi" or (format_name == "auto" and UbiTable.label_of(file) is not None)


def _tables_of_ubi(files: Sequence[LogFile], *, urls: bool) -> Sequence[LogFile]:
    """The files that are read: without URLs, those of searches alone."""
    labels = [UbiTable.label_of(file) for file in files]
    for label in ("ubi_queries", "ubi_events") if urls else ("ubi_queries",):
        if label not in labels:
            raise InputError(
                files[0], f"the log has no file of {label}; UBI has searches in one table, clicks in another"
            )
    if len({_is_parquet_by_name(file) for file in files}) > 1:
        raise InputError(files[0], "some files of this log are Parquet and some are JSON lines")
    return [file for file, label in zip(files, labels, strict=True) if urls or label != "ubi_events"]


def _is_parquet_by_name(file: LogFile) -> bool:
    return file.suffix.lower() == ".parquet"


def decided_of(layout: Layout, *, values: bool = False) -> dict[str, str | bool]:
    """What a layout says of how a log, or a table of ``values``, is read; what is as usual is left out."""
    decided: dict[str, str | bool] = {"format": layout.format}
    if not values:
        decided["urls"] = layout.has_urls
    if isinstance(layout, Delimited) and layout.delimiter != DELIMITERS.get(layout.format, layout.delimiter):
        decided["delimiter"] = layout.delimiter
    if isinstance(layout, ServerLog):
        decided |= {"user": layout.user, "query_parameter": layout.query_parameter}
    in_folders = [role for role, value in layout.in_folders.items() if (role, value) != ("user", ROW)]
    if in_folders:
        words = {"query": "value"} if values else {}
        decided["in_folders"] = ", ".join(sorted(words.get(role, role) for role in in_folders))
    return decided


def refuse_unlike(first: Layout, layout: Layout, file: LogFile) -> None:
    """``InputError`` if a file is in another format than the first one, or has URLs where that has none."""
    if layout.format != first.format:
        raise InputError(file, f"is in format {layout.format}, other files of this log in {first.format}")
    if layout.has_urls != first.has_urls:
        with_urls, without = ("this file", "others") if layout.has_urls else ("others", "this file")
        raise InputError(file, f"{with_urls} of this log have a column of URLs and {without} have none")


def _format_with(delimiter: str, format_name: str) -> str:
    """A delimiter is of TSV or CSV; of CSV, where fields may be quoted, if the format is not named."""
    if delimiter not in _DELIMITING:
        raise InvalidParameter("delimiter", "expected a tab or one punctuation character, and not a quote")
    if format_name not in ("auto", "tsv", "csv"):
        raise InvalidParameter("delimiter", f"only of tsv and csv, not of {format_name}")
    return ("tsv" if delimiter == "\t" else "csv") if format_name == "auto" else format_name


def _layout(path: LogFile, options: ReadOptions, columns: ColumnMap, column_types: ColumnTypes) -> Layout:
    columns = columns.of(path)
    layout = _layout_in_utf8(path, options, columns, column_types)
    if options.quoted_line_feeds and not getattr(layout, "quotes", False):
        raise InvalidParameter("quoted-line-feeds", f"only of CSV: {path} is in format {layout.format}")
    if columns.rows and (layout.format in _OF_SEARCHES or layout in (AOL, EXCITE)):
        raise InvalidParameter("unit", f"{ROW}: only of a table without users, and format {layout.format} has them")
    if columns.in_folders:
        if isinstance(layout, Sessions | UbiTable):
            raise InvalidColumns(f"columns: the {layout.format} format has none to choose from")
        layout = replace(layout, in_folders=columns.in_folders)
    if options.encoding == UTF_8:
        return layout
    if isinstance(layout, Columns) or (isinstance(layout, UbiTable) and layout.kinds is not None):
        raise InvalidParameter("encoding", "only of text: strings of Parquet are UTF-8")
    return replace(layout, encoding=options.encoding)


def _layout_in_utf8(path: LogFile, options: ReadOptions, columns: ColumnMap, column_types: ColumnTypes) -> Layout:
    if is_ubi(path, options.format) and not columns.values:
        return _ubi(path, columns, column_types)
    if options.format == "combined":
        return _server_log(options, columns)
    if columns.numbers:
        return _without_header(path, options, columns)
    name = "jsonl" if options.format == "auto" and text_name(path).lower().endswith(_JSON_SUFFIXES) else options.format
    if name == "jsonl":  # no header: the members that count are those that are named, whatever any line has
        wanted = columns.wanted()
        return JsonLines({role: name for role, name in wanted.items() if role != "count" or role in columns.named})
    if name in ("yandex", "excite"):
        return _without_columns(name, columns)
    start = first_lines(path, encoding=options.encoding)
    if name == "parquet" or (name == "auto" and start.startswith(PARQUET_MAGIC)):
        return columns_layout(path, column_types(path), columns)
    header = _header_line(path, start)
    if name == "aol" or (name == "auto" and _is_aol(header)):
        return _aol_layout(path, header, columns)
    if name == "auto":
        name = "tsv" if "\t" in header else "csv"
    return _with_header(path, header, name, options, columns)


def _without_header(path: LogFile, options: ReadOptions, columns: ColumnMap) -> Delimited:
    """The layout of a file whose columns have numbers. Not even its first line is looked at: it is a person's."""
    name = text_name(path).lower().rpartition(".")[2] if options.format == "auto" else options.format
    if name not in DELIMITERS:
        raise InvalidColumns(f"{path}: columns by number are of text: say --format tsv or csv, or the --delimiter")
    least = max(columns.numbers.values()) + 1
    layout = _delimited(name, max(MOST_FIELDS, least), columns.numbers, options)
    return replace(layout, header=False, least_fields=least)


def _with_header(path: LogFile, header: str, name: str, options: ReadOptions, columns: ColumnMap) -> Delimited:
    usual = "\t" if name == "tsv" else next((mark for mark in _IN_CSV if mark in header), DELIMITERS[name])
    mark = options.delimiter or usual
    names = [field.strip() for field in (_csv_names(path, header, mark) if name == "csv" else header.split(mark))]
    _refuse_duplicates(path, names)
    positions = {role: names.index(column) for role, column in columns.find(path, names).items()}
    return _delimited(name, len(names), positions, replace(options, delimiter=mark))


def _delimited(name: str, n_fields: int, positions: Mapping[str, int], options: ReadOptions) -> Delimited:
    is_csv = name == "csv"
    return Delimited(
        name,
        options.delimiter or DELIMITERS[name],
        n_fields,
        positions,
        quotes=is_csv,
        quoted_line_feeds=is_csv and options.quoted_line_feeds,
    )


def _is_aol(header: str) -> bool:
    return tuple(header.split("\t")) == _AOL_HEADER


def _aol_layout(path: LogFile, header: str, columns: ColumnMap) -> Layout:
    if not _is_aol(header):
        raise InputError(path, f"expected the header {' '.join(_AOL_HEADER)}", line=1)
    if columns.attributes.keys() - AOL.positions.keys():
        raise _no_attributes("aol")
    if columns.named or columns.optin is not None:
        named = columns.find(path, _AOL_HEADER)
        return replace(AOL, positions={role: _AOL_HEADER.index(name) for role, name in named.items()})
    if not columns.urls:
        return replace(AOL, positions={role: at for role, at in AOL.positions.items() if role != "url"})
    return AOL


def _no_attributes(name: str) -> InvalidColumns:
    return InvalidColumns(f"attributes: the {name} format has no columns for them; they are of logs with columns")


def _without_columns(name: str, columns: ColumnMap) -> Layout:
    if columns.timed:
        raise InvalidColumns(f"time: the {name} format has no times that belong to a day; windows need them")
    if columns.attributes:
        raise _no_attributes(name)
    if columns.named or columns.optin is not None or (name == "yandex" and not columns.urls):
        raise InvalidColumns(f"columns: the {name} format has none to choose from")
    return Sessions() if name == "yandex" else EXCITE


def _server_log(options: ReadOptions, columns: ColumnMap) -> ServerLog:
    """Who is a user is nowhere in the log itself: whoever reads it has to say."""
    if columns.attributes:
        raise _no_attributes("combined")
    if options.query_parameter is None:
        raise InvalidParameter(
            "query-parameter", "expected with --format combined: the parameter with the query, e.g. q"
        )
    check_parameter(options.query_parameter)
    field = columns.named.get("user")
    if field not in USER_FIELDS or len(columns.named) > 1 or columns.optin is not None:
        raise InvalidColumns(
            f"columns: a combined log does not say who is a user: name the field that does, and nothing else, with "
            f"--columns user={' or user='.join(USER_FIELDS)}"
        )
    return ServerLog(field, options.query_parameter, has_urls=columns.urls)


def _ubi(path: LogFile, columns: ColumnMap, column_types: ColumnTypes) -> UbiTable:
    label = UbiTable.label_of(path)
    if columns.attributes:
        raise _no_attributes("ubi")
    if label is None:
        raise InputError(path, "expected ubi_queries or ubi_events in the file's name, or in that of its folder")
    if columns.optin is not None or "suggestion" in columns.named or columns.numbers:
        raise InvalidColumns("columns: the ubi format has members for user, query, url, time and rank, by name")
    kinds = dict(column_types(path)) if _is_parquet_by_name(path) else None
    table = UbiTable.of(label, columns, kinds)
    missing = [
        member
        for role, member in table.members.items()
        if kinds is not None and role not in UBI_OPTIONAL and not {member, member.partition(".")[0]} & kinds.keys()
    ]
    if missing:
        raise InvalidColumns(f"{path}: no column '{missing[0]}', which {label} has; name another with --columns")
    return table


def _csv_names(path: LogFile, header: str, delimiter: str) -> list[str]:
    fields = csv_fields(header.encode(), delimiter.encode())
    if fields is None:
        raise InputError(path, f"expected a header with quotes around whole names only ({NO_HEADER})", line=1)
    return [field.decode() for field in fields]


def _header_line(path: LogFile, start: bytes) -> str:
    """The first line as text; a file that does not begin with a line of text has no header."""
    line, end, _ = start.removeprefix(BOM).partition(b"\n")
    if not start:
        raise InputError(path, "the file is empty")
    if (other := other_than_text(start.partition(b"\n")[0])) is not None:  # what follows is people's
        raise InputError(path, f"is {other}")
    try:
        text = line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if not text.replace("\t", "").isprintable() or (not end and len(line) > 1 << 15):
        raise InputError(path, "does not begin with a line of text", line=1)
    if not text.strip():
        raise InputError(path, "expected a header, found a blank line", line=1)
    return text


def _refuse_duplicates(path: LogFile, names: Sequence[str]) -> None:
    for name in names:
        places = [str(position + 1) for position, other in enumerate(names) if other == name]
        if name and len(places) > 1:
            where = f"{', '.join(places[:-1])} and {places[-1]}"
            raise InputError(path, f"columns {where} of the header have the same name", line=1)


def columns_layout(path: LogFile, types: Mapping[str, str], columns: ColumnMap) -> Columns:
    """The layout of a file, or a table, whose columns are of these kinds (``DuckDBSession.types``)."""
    named = columns.find(path, list(types))
    for role, name in named.items():
        fits = types[name] in _STRING_OR_NUMBER
        fits = fits or (role == "time" and types[name].startswith(_TIME))
        fits = fits or (role in ("optin", *columns.attributes) and types[name] == "BOOLEAN")
        if not fits:
            raise InvalidColumns(f"{path}: column '{name}' has type {types[name]}; expected strings or whole numbers")
    return Columns(named, types={role: types[name] for role, name in named.items()})
