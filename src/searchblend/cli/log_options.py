"""How a log is read: the options that every command with a log understands."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from searchblend.cli.arguments import positive_int
from searchblend.core.errors import UsageError
from searchblend.logs.formats.layout import NAMEABLE

if TYPE_CHECKING:
    from searchblend.logs.options import ReadOptions


def add_log(parser: argparse.ArgumentParser, *, memory: str = "2GB") -> None:
    """The log, how its lines are read, and the engine that reads them."""
    parser.add_argument("log", metavar="LOG", help="a file, glob or directory; plain, .gz or .zst")
    add_reading(parser)
    parser.add_argument("--host-only", action="store_true", help="cut URLs down to their host")
    parser.add_argument("--strict", action="store_true", help="stop at the first malformed line")
    parser.add_argument("--engine", choices=["duckdb", "spark"], default="duckdb", help="duckdb here, or a cluster")
    parser.add_argument("--master", metavar="URL", help="the Spark master, with --engine spark")
    parser.add_argument("--memory", default=memory, metavar="SIZE", help=f"of the database; the rest spills ({memory})")
    parser.add_argument("--threads", type=positive_int, metavar="N", help="of the database (all cores)")
    parser.add_argument("--temp-directory", type=Path, metavar="DIR", help="where the database spills")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How the lines of a log are read."""
    parser.add_argument(
        "--format", default="auto", help="aol, yandex, excite, tsv, csv, jsonl, parquet (by name and header)"
    )
    parser.add_argument("--columns", type=_column_map, default={}, metavar="NAME=COLUMN,…", help="the file's names")
    parser.add_argument("--no-urls", action="store_true", help="read queries alone, whatever columns there are")
    parser.add_argument(
        "--quoted-line-feeds",
        action="store_true",
        help="a quoted CSV field may go on in the next line; the promise then rests on every line's quotes being well "
        "formed: one person's line can swallow others'",
    )


def read_options(options: argparse.Namespace, *, optin_column: str | None = None) -> ReadOptions:
    from searchblend.logs.options import ReadOptions

    if options.master and options.engine != "spark":
        raise UsageError("--master: only with --engine spark")
    return ReadOptions(
        options.log,
        format=options.format,
        columns=options.columns,
        optin_column=optin_column,
        urls=not options.no_urls,
        quoted_line_feeds=options.quoted_line_feeds,
        host_only=options.host_only,
        strict=options.strict,
        engine=options.engine,
        master=options.master,
        memory=options.memory,
        threads=options.threads,
        temp_directory=options.temp_directory,
    )


def _column_map(text: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for part in text.split(","):
        name, equals, column = part.partition("=")
        if not equals or not column or name in names or name not in NAMEABLE:
            raise argparse.ArgumentTypeError(
                f"expected user=COLUMN,query=COLUMN[,url=COLUMN], each of {', '.join(NAMEABLE)} at most once"
            )
        names[name] = column
    return names
