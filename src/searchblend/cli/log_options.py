"""What commands with a log share: how it is read, from standard input too; and of releases, ledger and exact counts."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from searchblend.cli.arguments import add_config, positive_int
from searchblend.cli.printing import json_text, note_step, warn
from searchblend.core.documents import JsonObject
from searchblend.core.errors import EmptyHeadList, OutputError, UsageError
from searchblend.core.privacy import ROW_UNIT
from searchblend.core.statement import PAGE
from searchblend.files.durable import whole_files
from searchblend.logs.formats.layout import ENCODINGS, FORMATS, NAMEABLE, PERSON, UNITS, UTF_8
from searchblend.store.ledger_windows import ALL_TIME

if TYPE_CHECKING:
    from searchblend.core.privacy import Guarantee, StatedGuarantee
    from searchblend.logs.options import ReadOptions
    from searchblend.releases.make_release import Cost, LedgerEntry, WrittenRelease


ALL_USERS: Final = "all users"
STANDARD_INPUT: Final = "-"
_FILE: Final = "standard-input"
_ENDINGS: Final = ("SIGTERM", "SIGHUP")
VALUE_COLUMNS: Final = ("user", "value", "count")
_FILES: Final = (
    "a file, glob, directory or URL (s3://…), plain, .gz, .zst, .bz2, .xz or .zip; a Delta Lake or Iceberg table; "
    "postgresql://HOST/DATABASE?table=NAME; sqlite:///PATH?table=NAME; ir:NAME, a log of "
    "ir_datasets; - is standard input"
)
NO_LEDGER: Final = "note: without --ledger nothing keeps account"
_READ_OPTIONS: Final = (
    *("format", "columns", "delimiter", "query_parameter", "quoted_line_feeds", "encoding", "host_only", "strict"),
    *("unit", "engine", "master", "memory", "threads", "temp_directory"),
)
"""options that ``ReadOptions`` knows under the same names"""
WriteSummary = Callable[[JsonObject | None], None]


def add_log(parser: argparse.ArgumentParser, *, memory: str = "2GB") -> None:
    """The log, how its lines are read, and the engine that reads them."""
    parser.add_argument("log", metavar="LOG", help=_FILES)
    add_log_reading(parser, memory=memory)
    parser.add_argument("--engine", choices=["duckdb", "spark"], default="duckdb", help="duckdb here, or a cluster")
    parser.add_argument("--master", metavar="URL", help="the Spark master, with --engine spark")


def add_log_reading(parser: argparse.ArgumentParser, *, memory: str = "2GB") -> None:
    """How the lines of a log are read on this machine."""
    add_reading(parser)
    parser.add_argument("--host-only", action="store_true", help="cut URLs down to their host")
    _add_database(parser, memory)


def add_table(parser: argparse.ArgumentParser) -> None:
    """A table of users and values, and how it is read."""
    parser.add_argument("log", metavar="TABLE", help=_FILES)
    add_reading(parser, VALUE_COLUMNS)
    _add_database(parser, "2GB")


def _add_database(parser: argparse.ArgumentParser, memory: str) -> None:
    parser.add_argument("--strict", action="store_true", help="stop at the first malformed line")
    parser.add_argument(
        "--memory", default=memory, metavar="SIZE", help=f"memory limit of the database; the rest is on disk ({memory})"
    )
    parser.add_argument("--threads", type=positive_int, metavar="N", help="threads of the database (all cores)")
    parser.add_argument("--temp-directory", type=Path, metavar="DIR", help="where the database spills")


def add_reading(parser: argparse.ArgumentParser, roles: Sequence[str] = NAMEABLE) -> None:
    """How lines are read; ``roles`` are what columns can be."""
    parser.add_argument("--format", default="auto", help=f"{', '.join(FORMATS[1:])} (by name and header)")
    parser.add_argument(
        "--columns",
        type=lambda text: _column_map(text, roles),
        default={},
        metavar="NAME=COLUMN,…",
        help=f"columns of your file as {', '.join(roles)}; #1, #2, … without a header",
    )
    parser.add_argument(
        "--delimiter", type=_delimiter, metavar="C", help="what stands between fields (a comma; a tab in tsv), e.g. ;"
    )
    if "url" in roles:
        parser.add_argument(
            "--query-parameter",
            metavar="NAME",
            help="with --format combined: what holds the query in addresses of searches, e.g. q, or /search?q",
        )
        parser.add_argument("--no-urls", action="store_true", help="read queries alone, whatever columns there are")
    parser.add_argument(
        "--quoted-line-feeds",
        action="store_true",
        help="a quoted CSV field may go on in the next line; the promise then rests on every line's quotes being well "
        "formed: one person's line can swallow others'",
    )
    parser.add_argument("--encoding", default=UTF_8, help=f"encoding of text: {', '.join(ENCODINGS)} ({UTF_8})")


def add_unit(parser: argparse.ArgumentParser) -> None:
    """To whom the promise is."""
    parser.add_argument(
        "--unit",
        choices=UNITS,
        default=PERSON,
        help="whom the promise is to: a person, by the column of users, or, of a table of counts without users, each "
        f"counted row, which promises nothing to a person who made several ({PERSON})",
    )


def read_options(options: argparse.Namespace, *, optin_column: str | None = None) -> ReadOptions:
    """How a log, or a table, is to be read; a table has some of a log's options."""
    from searchblend.logs.options import ReadOptions

    given = vars(options)
    if given.get("master") and options.engine != "spark":
        raise UsageError("--master: only with --engine spark")
    known = {name: given[name] for name in _READ_OPTIONS if name in given}
    return ReadOptions(options.log, optin_column=optin_column, urls=not given.get("no_urls"), **known)


def _delimiter(text: str) -> str:
    """A tab is hard to type: the letters ``\\t`` are one, too."""
    return "\t" if text == r"\t" else text


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
                hint = "; a number of users is --users" if value.isdigit() else ""
                raise UsageError(f"{flag}: only with --ledger; without one nothing is debited and nothing kept{hint}")
        return None
    if not options.release_id:
        raise UsageError("--ledger: give the release a name with --release-id; the same name is never paid twice")
    if options.population and options.population.isdigit():
        warn(f"warning: --population {options.population} is taken as a name for the ledger; --users takes numbers")
    return LedgerEntry(options.ledger, options.release_id, options.population or ALL_USERS, options.window or ALL_TIME)


@contextlib.contextmanager
def releasing(
    options: argparse.Namespace, log: ReadOptions, cost: Cost | None, *, created: str
) -> Iterator[tuple[ReadOptions, WriteSummary]]:
    """Around the making of a release: how to read its log, and what writes the exact counts of ``--summary``.

    ``log`` may be standard input. Without a ledger, ``cost`` and ``created`` are added to what the folder of the output
    remembers of earlier releases; no cost is an evaluation, which is not a release.
    """
    with _summary_file(options.summary, options.output, replace=options.force) as write_summary:
        is_paid = False
        try:
            with with_standard_input(log) as reading:
                yield reading, write_summary
            is_paid = True
        except EmptyHeadList:  # that nothing passed is an outcome too, and paid for
            is_paid = True
            raise
        finally:
            if is_paid and cost and options.ledger is None:
                _remember(options.log, options.output, cost, created)


def _remember(log: str, output: Path, cost: Cost, created: str) -> None:
    """Say what the releases of this input cost so far, as the folder of ``output`` remembers them."""
    from searchblend.releases.make_release import remember_release

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
def _summary_file(path: Path | None, release: Path | None, *, replace: bool) -> Iterator[WriteSummary]:
    """Opened before the run, because after it the budget is spent; never inside the folder that is published."""
    from searchblend.wire.release import NOT_FOR_RELEASE

    if path is None:
        yield lambda summary: None
        return
    if release is not None and release.resolve() in path.resolve().parents:
        raise UsageError(f"--summary: {path} is inside the folder of the release, and exact counts are not for release")
    with whole_files([path], replace=replace) as [partial]:

        def write(summary: JsonObject | None) -> None:
            counts = summary if summary is not None else {"read": False}  # published before: the log was not opened
            document = {"notice": NOT_FOR_RELEASE, **counts}
            partial.write_text(json_text(document), encoding="utf-8")

        yield write


@contextlib.contextmanager
def with_standard_input(reading: ReadOptions) -> Iterator[ReadOptions]:
    """How to read the log, with a path in place of ``-``.

    A log is read more than once, so one that comes by a pipe is written to a file first. The file
    is gone when the block is left, also by an interrupt or a signal to terminate.
    """
    if reading.paths != STANDARD_INPUT:
        yield reading
        return
    from searchblend.logs.relational import private_directory

    if reading.engine == "spark":
        raise UsageError("LOG -: only with --engine duckdb; a cluster cannot read this machine's standard input")
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("LOG -: standard input is a terminal; pipe a log into it, or name a file")
    with _ended_by_exceptions():
        folder = private_directory(reading.temp_directory)
        try:
            _keep(folder / _FILE)
            yield replace(reading, paths=folder / _FILE)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _keep(path: Path) -> None:
    note_step("standard input")
    try:
        with path.open("xb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    except OSError as error:
        raise OutputError(
            f"{path}: standard input cannot be kept: {error.strerror}; choose another place with --temp-directory"
        ) from error


@contextlib.contextmanager
def _ended_by_exceptions() -> Iterator[None]:
    """A signal that would end the process at once ends the block instead, so that its files are removed."""

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in _ENDINGS if is_main and hasattr(signal, name)]
    handlers = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def warn_about_input(written: WrittenRelease[Any], folder: Path | None, *, html: bool = False) -> None:
    """What the person should know about the input of a release: malformed lines, or that it was not read again.

    A release that was published without a page stays without one: its files are what they were.
    """
    if written.input_summary is not None:
        for line in _malformed_lines(written.input_summary):
            warn(line, "bold yellow")
        return
    warn("this release id was published before: the same files again, nothing was spent")
    if html and folder is not None and not (folder / PAGE).exists():
        warn(f"it was published without a page; make one beside it: searchblend page {folder} -o FILE")


def _malformed_lines(summary: JsonObject) -> list[str]:
    """One line per reason, with the first places; nothing of what stood there."""
    malformed, lines = summary["malformed"], max(summary["lines"], 1)
    total = sum(entry["count"] for entry in malformed.values())
    if not total:
        return []
    loud = "WARNING: more than 1 % of the lines are malformed: " if total > lines / 100 else "warning: "
    return [f"{loud}{total:,} of {lines:,} lines were left out"] + [
        f"  {reason}: {entry['count']:,}" + (f" (first: {', '.join(entry['first'])})" if entry["first"] else "")
        for reason, entry in malformed.items()
    ]


def stated(promise: Guarantee | StatedGuarantee, to: str) -> str:
    """The promise in one line, and whether it holds."""
    if promise.unit == ROW_UNIT:
        to = "each counted row, not for a person"
    return (
        f"ε = {promise.epsilon:g}, δ = {promise.delta:g} for {to}; "
        f"guarantee {'holds' if promise.holds else 'does NOT hold'}"
    )
