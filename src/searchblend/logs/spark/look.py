"""The first look at a log in Spark: every line is counted by what is wrong with it, and hard texts are judged.

Most texts are usable for certain. The others come to the driver, each distinct one once, and are judged by the Python
rule; then it is known which lines are usable, and the draw can leave out the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from searchblend.logs.duckdb import normal_forms
from searchblend.logs.formats.judge import WITHOUT_URL
from searchblend.logs.formats.layout import Columns, Delimited, JsonLines
from searchblend.logs.spark.files import SparkFiles
from searchblend.logs.spark.formats import NOT_CLICKED, json_lines, session_lines
from searchblend.logs.spark.scan import (
    BLANK,
    NEEDS_GATE,
    Lines,
    column_lines,
    delimited_lines,
    judged,
    repeated_headers,
    text_rows,
)
from searchblend.logs.spark.session import SparkRunner
from searchblend.logs.summary import FIRST_PLACES, UNUSABLE_QUERY, UNUSABLE_URL

ColumnTypes = Callable[[Path], Mapping[str, str]]


@dataclass
class Look:
    """What the lines of a log are."""

    by_problem: Counter[str] = field(default_factory=Counter)
    """lines by problem; "" is none"""
    repeated_headers: Counter[str] = field(default_factory=Counter)
    """lines below the header that look like it: data"""
    unusable_queries: set[str] = field(default_factory=set)
    unusable_urls: set[str] = field(default_factory=set)
    bytes: int = 0
    """of compressed files; one more where the last line has no end"""
    for_gate: set[Path] = field(default_factory=set)


def all_lines(
    runner: SparkRunner,
    sources: Sequence[SparkFiles],
    types: ColumnTypes,
    *,
    host_only: bool,
    searches: bool,
    repeated: Counter[str] | None = None,
) -> DataFrame:
    """The judged lines of all files, with as many more of each header as were found further down.

    ``searches`` is for sessions, whose lines are searches then and not clicks alone.
    """
    parts: list[Lines] = []
    for files in sources:
        layout = files.layout
        if isinstance(layout, Columns):
            parts += _column_parts(runner, layout, files, types)
        elif isinstance(layout, Delimited):
            parts += _delimited_parts(runner, layout, files, repeated or Counter())
        else:
            rows = text_rows(runner, [*files.raw, *files.cleaned])
            parts.append(
                json_lines(layout, rows) if isinstance(layout, JsonLines) else session_lines(rows, searches=searches)
            )
    return reduce(DataFrame.union, (judged(part, host_only=host_only) for part in parts))


def _column_parts(runner: SparkRunner, layout: Columns, files: SparkFiles, types: ColumnTypes) -> list[Lines]:
    """Files whose columns have the same types are read together."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, path in files.raw.items():
        alike.setdefault(tuple(types(path)[column] for column in layout.columns.values()), []).append(name)
    return [
        column_lines(runner, layout, names, dict(zip(layout.columns.values(), kinds, strict=True)))
        for kinds, names in alike.items()
    ]


def _delimited_parts(runner: SparkRunner, layout: Delimited, files: SparkFiles, repeated: Counter[str]) -> list[Lines]:
    parts = []
    if files.raw:
        headers = files.headers()
        rows = text_rows(runner, list(files.raw), headers)
        more = repeated_headers(runner, {text: repeated[text] for text in headers if repeated[text]})
        parts.append(delimited_lines(layout, rows if more is None else rows.union(more), cleaned=False))
    if files.cleaned:
        parts.append(delimited_lines(layout, text_rows(runner, files.cleaned), cleaned=True))
    return parts


def look(lines: DataFrame, headers: Counter[str], *, host_only: bool) -> Look:
    """Counts all lines, and judges the hard texts. ``headers`` says how many files begin with each header."""
    found = Look()
    usable_url = normal_forms.host_is_usable if host_only else normal_forms.url_is_usable
    file = F.when(F.col("problem") == NEEDS_GATE, F.col("file"))
    counted = lines.groupBy("problem", "hard_query", "hard_url", "header", file.alias("file")).agg(
        F.count(F.lit(1)), F.sum("bytes")
    )
    for problem, query, url, header, name, n_found, size in counted.toLocalIterator():
        found.bytes += size
        if problem == BLANK:
            continue
        n = n_found - headers[header]
        if header is not None:
            found.repeated_headers[header] = n
        if problem == NEEDS_GATE:
            found.for_gate.add(_path_of(name))
        if query is not None and not normal_forms.query_is_usable(query):
            found.unusable_queries.add(query)
            problem = UNUSABLE_QUERY
        elif url is not None and not usable_url(url):
            found.unusable_urls.add(url)
            problem = UNUSABLE_URL
        found.by_problem[WITHOUT_URL if problem == NOT_CLICKED else problem] += n
    found.by_problem = +found.by_problem
    return found


def usable(runner: SparkRunner, lines: DataFrame, found: Look, *, with_urls_only: bool = True) -> DataFrame:
    """The lines that are somebody's record; with those that only lack a URL, if asked for."""
    problem = F.col("problem")
    without_url = (problem == WITHOUT_URL) | ((problem == NOT_CLICKED) & (F.col("user") != ""))
    lines = lines.where(F.col("header").isNull())
    lines = lines.where(problem == "" if with_urls_only else (problem == "") | without_url)
    for column, texts in (("query", found.unusable_queries), ("url", found.unusable_urls)):
        if texts:
            lines = lines.join(
                runner.frame([(text,) for text in sorted(texts)], f"{column} string"), column, "left_anti"
            )
    return lines


def rows_of_problems(runner: SparkRunner, lines: DataFrame, found: Look) -> dict[str, list[tuple[Path, int]]]:
    """The first malformed rows of each Parquet file, for every reason that was found."""
    for name, reason, texts in (  # an unusable query is the problem of a line that has both
        ("hard_url", UNUSABLE_URL, found.unusable_urls),
        ("hard_query", UNUSABLE_QUERY, found.unusable_queries),
    ):
        if texts:
            unusable = runner.frame([(text, reason) for text in sorted(texts)], f"{name} string, verdict string")
            lines = lines.join(unusable, name, "left")
            lines = lines.withColumn("problem", F.coalesce("verdict", "problem")).drop("verdict")
    place = F.row_number().over(Window.partitionBy("problem", "file").orderBy("row"))
    malformed = lines.where(~F.col("problem").isin("", WITHOUT_URL)).select("problem", "file", "row")
    first = malformed.withColumn("place", place).where(F.col("place") <= FIRST_PLACES)
    places: dict[str, list[tuple[Path, int]]] = {}
    for problem, name, row, _ in first.orderBy("file", "row").collect():
        places.setdefault(problem, []).append((_path_of(name), row))
    return places


def _path_of(name: str) -> Path:
    return Path(unquote(urlsplit(name).path))
