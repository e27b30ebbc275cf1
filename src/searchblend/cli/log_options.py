"""What commands with a log share: how it is read; and of those that release something, ledger and exact counts."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from searchblend.cli.arguments import positive_int
from searchblend.cli.config_file import add_config
from searchblend.cli.printing import json_text, warn
from searchblend.cli.standard_input import STANDARD_INPUT
from searchblend.core.errors import EmptyHeadList, UsageError
from searchblend.files.durable import whole_files
from searchblend.logs.formats.layout import NAMEABLE
from searchblend.store.ledger_windows import ALL_TIME

if TYPE_CHECKING:
    from searchblend.logs.options import ReadOptions
    from searchblend.releases.make_release import Cost, LedgerEntry

ALL_USERS: Final = "all users"
VALUE_COLUMNS: Final = ("user", "value")
_FILES: Final = "a file, glob or directory, plain, .gz, .zst, .bz2 or .xz; - is standard input"
NO_LEDGER: Final = "note: without --ledger nothing keeps account"
WriteSummary = Callable[[Mapping[str, Any] | None], None]


def add_log(parser: argparse.ArgumentParser, *, memory: str = "2GB") -> None:
    """The log, how its lines are read, and the engine that reads them."""
    parser.add_argument("log", metavar="LOG", help=_FILES)
    add_reading(parser)
    parser.add_argument("--host-only", action="store_true", help="cut URLs down to their host")
    parser.add_argument("--engine", choices=["duckdb", "spark"], default="duckdb", help="duckdb here, or a cluster")
    parser.add_argument("--master", metavar="URL", help="the Spark master, with --engine spark")
    _add_database(parser, memory)


def add_table(parser: argparse.ArgumentParser) -> None:
    """A table of users and values, and how it is read."""
    parser.add_argument("log", metavar="TABLE", help=_FILES)
    add_reading(parser, VALUE_COLUMNS)
    _add_database(parser, "2GB")


def _add_database(parser: argparse.ArgumentParser, memory: str) -> None:
    parser.add_argument("--strict", action="store_true", help="stop at the first malformed line")
    parser.add_argument("--memory", default=memory, metavar="SIZE", help=f"of the database; the rest spills ({memory})")
    parser.add_argument("--threads", type=positive_int, metavar="N", help="of the database (all cores)")
    parser.add_argument("--temp-directory", type=Path, metavar="DIR", help="where the database spills")


def add_reading(parser: argparse.ArgumentParser, roles: Sequence[str] = NAMEABLE) -> None:
    """How lines are read; ``roles`` are what columns can be."""
    parser.add_argument(
        "--format", default="auto", help="aol, yandex, excite, tsv, csv, jsonl, parquet (by name and header)"
    )
    parser.add_argument(
        "--columns",
        type=lambda text: _column_map(text, roles),
        default={},
        metavar="NAME=COLUMN,…",
        help=f"the file's names of {', '.join(roles)}",
    )
    if "url" in roles:
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


def table_options(options: argparse.Namespace) -> ReadOptions:
    from searchblend.logs.options import ReadOptions

    return ReadOptions(
        options.log,
        format=options.format,
        columns=options.columns,
        quoted_line_feeds=options.quoted_line_feeds,
        strict=options.strict,
        memory=options.memory,
        threads=options.threads,
        temp_directory=options.temp_directory,
    )


def _column_map(text: str, roles: Sequence[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for part in text.split(","):
        name, equals, column = part.partition("=")
        if not equals or not column or name in names or name not in roles:
            raise argparse.ArgumentTypeError(
                f"expected {roles[0]}=COLUMN,{roles[1]}=COLUMN, each of {', '.join(roles)} at most once"
            )
        names[name] = column
    return names


def add_output(parser: argparse.ArgumentParser, *, needed: str, page: bool = True) -> None:
    """Where a release goes. ``needed`` says when, since ``require_output`` decides that and not the parser.

    ``page`` offers a page for people.
    """
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help=f"folder for the released files; {needed}")
    add_config(parser)
    parser.add_argument("--force", action="store_true", help="replace an earlier release in DIR")
    if page:
        parser.add_argument("--html", action="store_true", help="also a page for people in DIR: index.html, one file")


def require_output(options: argparse.Namespace, *, instead: str) -> Path:
    """The folder of a release. Without one the noise would be drawn, the budget spent, and nothing kept."""
    if options.output is None:
        raise UsageError(
            f"-o/--output: name a folder for the release; to see what to expect without spending any ε: {instead}"
        )
    return Path(options.output)


def add_release_options(parser: argparse.ArgumentParser) -> None:
    """Exact counts for whoever holds the log, and the ledger."""
    parser.add_argument(
        "--summary", type=Path, metavar="FILE", help="exact counts of the input, outside of DIR; NOT FOR RELEASE"
    )
    parser.add_argument("--ledger", type=Path, metavar="FILE", help="budget ledger to which the release is debited")
    parser.add_argument("--release-id", metavar="ID", help="the release's name in the ledger; never paid twice")
    parser.add_argument("--population", metavar="NAME", help=f"whom the ledger debits ({ALL_USERS})")
    parser.add_argument("--window", metavar="NAME", help=f"the ledger's budget period ({ALL_TIME})")


def ledger_entry(options: argparse.Namespace) -> LedgerEntry | None:
    """Where the release is debited; an option that only a ledger could heed is refused without one."""
    from searchblend.releases.make_release import LedgerEntry

    if options.ledger is None:
        for flag, value in (
            ("--release-id", options.release_id),
            ("--population", options.population),
            ("--window", options.window),
        ):
            if value is not None:
                raise UsageError(f"{flag}: only with --ledger; without one nothing is debited and nothing kept")
        return None
    if not options.release_id:
        raise UsageError("--ledger: give the release a name with --release-id; the same name is never paid twice")
    return LedgerEntry(options.ledger, options.release_id, options.population or ALL_USERS, options.window or ALL_TIME)


@contextlib.contextmanager
def remembered(options: argparse.Namespace, output: Path, cost: Cost, *, created: str) -> Iterator[None]:
    """Without a ledger, say what the releases of this input cost so far, as the folder of ``output`` remembers them.

    ``cost`` and ``created`` are those of the release that the block makes.
    """
    if options.ledger is not None:
        yield
        return
    try:
        yield
    except EmptyHeadList:  # that nothing passed is an outcome too, and paid for
        _remember(options.log, output, cost, created)
        raise
    _remember(options.log, output, cost, created)


def _remember(log: str, output: Path, cost: Cost, created: str) -> None:
    from searchblend.releases.earlier_releases import remember_release

    try:
        so_far = remember_release(output, None if log == STANDARD_INPUT else log, cost.spend, created=created)
    except OSError as error:
        warn(f"{NO_LEDGER}, and this release could not be remembered beside {output}: {error.strerror}")
        return
    if so_far.releases == 1:
        warn(f"{NO_LEDGER}: every further release about the same users adds its ε and δ")
    else:
        total = f"ε so far {so_far.epsilon:g} by {so_far.releases} releases of this input in this folder"
        warn(f"{NO_LEDGER}: {total}; keep a ledger with --ledger")


@contextlib.contextmanager
def summary_file(path: Path | None, release: Path | None, *, replace: bool) -> Iterator[WriteSummary]:
    """Opened before the run, because after it the budget is spent; never inside the folder that is published."""
    from searchblend.wire.release import NOT_FOR_RELEASE

    if path is None:
        yield lambda summary: None
        return
    if release is not None and release.resolve() in path.resolve().parents:
        raise UsageError(f"--summary: {path} is inside the folder of the release, and exact counts are not for release")
    with whole_files([path], replace=replace) as [partial]:

        def write(summary: Mapping[str, Any] | None) -> None:
            counts = summary if summary is not None else {"read": False}  # published before: the log was not opened
            document = {"notice": NOT_FOR_RELEASE, **counts}
            partial.write_text(json_text(document), encoding="utf-8")

        yield write
