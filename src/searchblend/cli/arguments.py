"""What the parsers of all commands share."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import Final, TypeAlias

from searchblend.logs.formats.column_map import NAMEABLE

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
ALL_USERS: Final = "all users"
ALL_TIME: Final = "all time"


def add_command(commands: Commands, name: str, what: str, examples: str) -> argparse.ArgumentParser:
    """A command whose help ends with examples."""
    return commands.add_parser(
        name,
        help=what,
        description=what[0].upper() + what[1:] + ".",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def positive_int(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,17}", text):
        raise argparse.ArgumentTypeError("expected a whole number of at least 1")
    return int(text)


def share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError("expected a share in (0, 1), for example 0.05")
    return value


def add_release_options(parser: argparse.ArgumentParser, *, population: str) -> None:
    """``population`` is the flag that names whom the ledger debits."""
    parser.add_argument(
        "--summary", type=Path, metavar="FILE", help="exact counts of the input, outside of DIR; NOT FOR RELEASE"
    )
    parser.add_argument("--ledger", type=Path, metavar="FILE", help="budget ledger to which the release is debited")
    parser.add_argument("--release-id", metavar="ID", help="the release's name in the ledger; never paid twice")
    parser.add_argument(population, dest="debited", metavar="NAME", help=f"whom the ledger debits ({ALL_USERS})")
    parser.add_argument("--window", metavar="NAME", help=f"the ledger's budget period ({ALL_TIME})")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How the lines of a log are read: what every command that reads one understands."""
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
