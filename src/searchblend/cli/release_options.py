"""What every command that makes a release shares: the ledger's options, and the file for exact counts of the input."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from searchblend.cli.printing import json_text
from searchblend.core.errors import UsageError
from searchblend.files.durable import whole_files
from searchblend.store.ledger_windows import ALL_TIME

if TYPE_CHECKING:
    from searchblend.releases.make_release import LedgerEntry

ALL_USERS: Final = "all users"
NO_LEDGER: Final = (
    "note: without --ledger nothing keeps account: every further release about the same users adds its ε and δ"
)
WriteSummary = Callable[[Mapping[str, Any] | None], None]


def add_release_options(parser: argparse.ArgumentParser, *, population: str) -> None:
    """``population`` is the flag that names whom the ledger debits."""
    parser.add_argument(
        "--summary", type=Path, metavar="FILE", help="exact counts of the input, outside of DIR; NOT FOR RELEASE"
    )
    parser.add_argument("--ledger", type=Path, metavar="FILE", help="budget ledger to which the release is debited")
    parser.add_argument("--release-id", metavar="ID", help="the release's name in the ledger; never paid twice")
    parser.add_argument(population, dest="debited", metavar="NAME", help=f"whom the ledger debits ({ALL_USERS})")
    parser.add_argument("--window", metavar="NAME", help=f"the ledger's budget period ({ALL_TIME})")


def ledger_entry(options: argparse.Namespace, *, population: str) -> LedgerEntry | None:
    """Where the release is debited; an option that only a ledger could heed is refused without one."""
    from searchblend.releases.make_release import LedgerEntry

    if options.ledger is None:
        for flag, value in (
            ("--release-id", options.release_id),
            (population, options.debited),
            ("--window", options.window),
        ):
            if value is not None:
                raise UsageError(f"{flag}: only with --ledger; without one nothing is debited and nothing kept")
        return None
    if not options.release_id:
        raise UsageError("--ledger: give the release a name with --release-id; the same name is never paid twice")
    return LedgerEntry(options.ledger, options.release_id, options.debited or ALL_USERS, options.window or ALL_TIME)


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
