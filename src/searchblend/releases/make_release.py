"""The frame of every release from a log: the folder is opened first and appears last, the ledger pays in between."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from searchblend.accounting.spend import Spend
from searchblend.files.durable import release_folder
from searchblend.logs.search_log import SearchLog
from searchblend.store.ledger import Ledger, open_ledger
from searchblend.store.ledger_release import release_once

Released = TypeVar("Released")
Files = dict[str, bytes]


@dataclass(frozen=True)
class LedgerEntry:
    """Where a release is debited, and as what."""

    path: Path
    release_id: str
    population: str = "all users"
    window: str = "all time"


@dataclass(frozen=True)
class WrittenRelease(Generic[Released]):
    """What was released, and what is known of its input."""

    released: Released
    input_summary: Mapping[str, Any] | None
    """exact counts of the input: not for release; ``None`` when an earlier release was returned unread"""


def make_release(
    output: Path | None,
    spend: Spend,
    *,
    open_log: Callable[[], AbstractContextManager[SearchLog]],
    make: Callable[[SearchLog], tuple[Released, Files]],
    read: Callable[[Files], Released],
    replace: bool = False,
    ledger: LedgerEntry | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> WrittenRelease[Released]:
    """Read the log, make the files, write them.

    With a ledger the release is debited after the log was read and before any noise is drawn; a release id that was
    published before gives the same bytes and reads nothing.

    ``output`` is the folder, if one is wanted; ``spend`` what the release costs; ``open_log`` reads the log; ``make``
    draws and gives what was released with its files; ``read`` has it from the files of an earlier release; ``replace``
    allows another release in the folder; ``on_step`` is told the name of each step.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(release_folder(output, replace=replace)) if output else None
        book = stack.enter_context(open_ledger(ledger.path)) if ledger else None
        made: list[Released] = []
        summary: Mapping[str, Any] | None = None
        if book and ledger and book.published(ledger.release_id):
            files = _debited(book, ledger, spend, dict)
        else:
            log = stack.enter_context(open_log())

            def make_files() -> Files:
                released, contents = make(log)
                made.append(released)
                return contents

            files = _debited(book, ledger, spend, make_files) if book and ledger else make_files()
            summary = log.summary.as_json()
        if folder:
            on_step("files")
            for name, content in files.items():
                folder.write(name, content)
        return WrittenRelease(made[0] if made else read(files), summary)


def _debited(book: Ledger, entry: LedgerEntry, spend: Spend, make: Callable[[], Files]) -> Files:
    return release_once(
        book, make, release_id=entry.release_id, population=entry.population, window=entry.window, spend=spend
    )
