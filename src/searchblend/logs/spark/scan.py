"""Layouts in Spark: a table of lines with their fields, what is wrong with each, and which texts are hard to judge.

``judge`` has the rule in Python. What the gate finds by looking at bytes is found here by expressions over whole lines:
Spark hands them out as they are, without decoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from searchblend.core.errors import InvalidColumns
from searchblend.logs.formats.gate import MAX_LINE, SEPARATOR
from searchblend.logs.formats.judge import ASCII_BLANKS, NO, WITHOUT_URL, YES
from searchblend.logs.formats.layout import ROLES, Columns, Delimited
from searchblend.logs.spark.session import SparkRunner
from searchblend.logs.spark.texts import never_usable, surely_usable_query, surely_usable_url
from searchblend.logs.summary import (
    BAD_OPTIN,
    BAD_QUOTES,
    INVALID_UTF8,
    LINE_TOO_LONG,
    MISSING_USER,
    NUL_BYTE,
    TOO_FEW_FIELDS,
    TOO_MANY_FIELDS,
    UNUSABLE_QUERY,
    UNUSABLE_URL,
)

BLANK: Final = "blank"
"""An empty line, which nobody counts."""
NEEDS_GATE: Final = "needs_gate"
"""A CSV line with quotes that are not closed in it, where line feeds may be quoted: only the gate can join lines."""
CARRIED: Final = ("file", "row", "bytes", "header")
IN_BYTES: Final = (LINE_TOO_LONG, NUL_BYTE, INVALID_UTF8, BAD_QUOTES)
_BOM: Final = "\ufeff"

_QUOTED_FIELD: Final = r'(^|,)"[^"]*+(?:""[^"]*+)*+"(?=,|$)'
_NEXT_FIELD: Final = r'(?:^|,)(?:"[^"]*+(?:""[^"]*+)*+"|[^",]*+)'


@dataclass(frozen=True)
class Lines:
    """Lines as rows: ``file``, ``row`` (in Parquet), ``bytes``, ``header`` (the text of a line that looks like its
    file's header), ``broken`` (what is wrong before any field is looked at), and the roles."""

    rows: DataFrame
    roles: frozenset[str]
    no_query: str | None = None


def text_rows(runner: SparkRunner, names: Sequence[str], headers: Iterable[str] = ()) -> DataFrame:
    """(file, row, bytes, header, value) of the lines of some text files; ``header`` marks lines with these texts."""
    lines = runner.spark.read.option("lineSep", "\n").text(list(names))
    file, value = F.col("_metadata.file_path"), F.col("value")
    texts = list(headers)
    header = F.when(value.isin(*texts, *(f"{text}\r" for text in texts)), clean_line(value))
    length = F.when(file.endswith(".gz"), F.octet_length(value) + 1).otherwise(0)
    return lines.select(*_carried(file, nothing().cast("bigint"), length, header), value)


def _carried(file: Column, row: Column, length: Column, header: Column) -> list[Column]:
    return [column.alias(name) for name, column in zip(CARRIED, (file, row, length, header), strict=True)]


def repeated_headers(runner: SparkRunner, extra: Mapping[str, int]) -> DataFrame | None:
    """Lines further down that look like the header of their file: data, as many as there are too many of them."""
    rows = None
    for text, n in extra.items():
        nowhere = _carried(F.lit(""), nothing().cast("bigint"), F.lit(0), nothing())
        more = runner.spark.range(n).select(*nowhere, F.lit(text).alias("value"))
        rows = more if rows is None else rows.union(more)
    return rows


def nothing() -> Column:
    return F.lit(None).cast("string")


def clean_line(value: Column, *, header: bool = True) -> Column:
    """As the gate does: the return of a CRLF goes, others become blanks, and where there is
    no header, byte-order marks in front go."""
    cut = F.translate(F.regexp_replace(value, r"\r\z", ""), "\r", " ")
    line = F.when(value.contains("\r"), cut).otherwise(value)
    return line if header else F.ltrim(line, F.lit(_BOM))


def broken_bytes(value: Column, line: Column) -> Column:
    """What is wrong with the bytes of a line, or that it is blank when it is clean."""
    length = F.octet_length(value) - F.when(value.endswith("\r"), 1).otherwise(0)
    return (
        F.when(length > MAX_LINE, LINE_TOO_LONG)
        .when(value.contains("\0"), NUL_BYTE)
        .when(~F.is_valid_utf8(value), INVALID_UTF8)
        .when(line == "", BLANK)
    )


def clean_rows(rows: DataFrame, *, header: bool) -> DataFrame:
    """``text_rows`` with ``line``, clean, and ``in_bytes``, what is wrong before that."""
    value = F.col("value")
    rows = rows.withColumn("line", clean_line(value, header=header))
    return rows.select(*CARRIED, broken_bytes(value, F.col("line")).alias("in_bytes"), "line")


def delimited_lines(layout: Delimited, rows: DataFrame, *, cleaned: bool) -> Lines:
    """The fields of ``text_rows``; a file that was cleaned has no quotes and its own separator."""
    rows = clean_rows(rows, header=layout.header)
    if layout.quotes and not cleaned:
        unclosed, fields = _csv_fields(F.col("line"), NEEDS_GATE if layout.quoted_line_feeds else BAD_QUOTES)
    else:
        unclosed, fields = nothing(), F.split("line", SEPARATOR if layout.quotes else layout.delimiter, -1)
    rows = rows.select(*CARRIED, "in_bytes", unclosed.alias("unclosed"), fields.alias("fields"))
    n_fields = F.size("fields")
    too_few = n_fields < layout.n_fields
    if layout.may_end_after is not None:
        too_few &= n_fields != layout.may_end_after
    in_fields = F.when(n_fields > layout.n_fields, TOO_MANY_FIELDS).when(too_few, TOO_FEW_FIELDS)
    texts = [
        F.coalesce(F.get("fields", F.lit(position)), F.lit("")).alias(role)
        for role, position in layout.positions.items()
    ]
    broken = F.coalesce("in_bytes", "unclosed", in_fields)
    return Lines(rows.select(*CARRIED, broken.alias("broken"), *texts), frozenset(layout.positions), layout.no_query)


def _csv_fields(line: Column, problem: str) -> tuple[Column, Column]:
    """RFC 4180 within one line. Without quotes it is just split; the gate's own separator becomes a blank."""
    line = F.translate(line, SEPARATOR, " ")
    has_quotes = line.contains('"')
    unclosed = F.when(has_quotes & F.regexp_replace(line, _QUOTED_FIELD, "$1").contains('"'), problem)
    fields = F.transform(F.regexp_extract_all(line, F.lit(_NEXT_FIELD), 0), _without_quotes)
    split = F.split(line, ",", -1)
    return unclosed, F.when(has_quotes, fields).otherwise(split)


def _without_quotes(matched: Column) -> Column:
    field = F.regexp_replace(matched, "^,", "")
    inside = F.replace(F.regexp_replace(field, '^"|"$', ""), F.lit('""'), F.lit('"'))
    return F.when(field.startswith('"'), inside).otherwise(field)


def column_lines(runner: SparkRunner, layout: Columns, names: Sequence[str], types: Mapping[str, str]) -> Lines:
    """The columns of Parquet files with these types as texts; points in time as microseconds."""
    texts = []
    for role, name in layout.columns.items():
        column, kind = F.col(f"`{name.replace('`', '``')}`"), types[name]
        if kind.startswith("TIMESTAMP") or kind == "DATE":
            column = F.unix_micros(column.cast("timestamp"))
        elif kind in ("DOUBLE", "FLOAT") or kind.startswith("DECIMAL"):
            raise InvalidColumns(
                f"column '{name}' has type {kind}: engines write it differently; make it whole numbers"
            )
        texts.append(F.coalesce(column.cast("string"), F.lit("")).alias(role))
    rows = runner.spark.read.parquet(*names)
    place = _carried(F.col("_metadata.file_path"), F.col("_metadata.row_index") + 1, F.lit(0), nothing())
    return Lines(rows.select(*place, nothing().alias("broken"), *texts), frozenset(layout.columns))


def judged(lines: Lines, *, host_only: bool) -> DataFrame:
    """The lines with their ``problem`` ("" is none), if hard texts are usable; and those, as ``hard_query`` and
    ``hard_url``, where it depends on them."""
    user, query, url = F.col("user"), F.col("query"), F.col("url")
    no_user = (user < "!") & (F.trim(user, F.lit(ASCII_BLANKS)) == "")
    bad_query = never_usable(query)
    if lines.no_query is not None:
        bad_query |= query == lines.no_query
    problem = F.when(F.col("broken").isNotNull(), F.col("broken")).when(no_user, MISSING_USER)
    first = problem.when(bad_query, UNUSABLE_QUERY)
    problem = first
    hard_url = nothing()
    if "url" in lines.roles:
        problem = problem.when(url == "", WITHOUT_URL)
        hard_url = F.when(~surely_usable_url(url, host_only=host_only), url)
    optin = F.lit(None).cast("boolean")
    if "optin" in lines.roles:
        answer = F.lower(F.trim(F.col("optin"), F.lit(" ")))
        problem = problem.when(~answer.isin(*sorted(YES | NO)), BAD_OPTIN)
        optin = answer.isin(*sorted(YES))
    if "url" in lines.roles:
        problem = problem.when(never_usable(url), UNUSABLE_URL)
    empty = F.lit("")
    texts = [F.col(role) if role in lines.roles else empty.alias(role) for role in ROLES[:-1]]
    rows = lines.rows.select(
        *CARRIED,
        F.coalesce(problem, empty).alias("problem"),
        F.when(first.isNull() & ~surely_usable_query(query), query).alias("hard_query"),
        hard_url.alias("hard_url"),
        *texts,
        optin.alias("optin"),
    )
    return rows.withColumn("hard_url", F.when(F.col("problem") == "", F.col("hard_url")))
