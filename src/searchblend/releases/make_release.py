"""The frame of every release from a log: the folder is opened first and appears last, the ledger pays in between.

What was released from an input without a ledger is remembered in the folder in which the releases lie: a reminder and
not an account. It knows neither other folders nor a log that was moved, and of two releases at the very same moment it
may miss one. An input is known by where it lies, as a digest of its path. Neither its size nor a digest of its content
is kept: whoever knew all lines but one could test a guess of that one against them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Generic, TypeVar

from searchblend.accounting.spend import Spend, common_relation, decimal
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget, Neighbors
from searchblend.files.durable import release_folder, write_whole
from searchblend.logs.formats.files import local_path
from searchblend.logs.formats.layout import PERSON
from searchblend.logs.formats.remote import is_remote
from searchblend.logs.options import ReadOptions
from searchblend.logs.tables.urls import is_named, shown_log
from searchblend.store.ledger_windows import ALL_TIME

Released = TypeVar("Released")
Source = TypeVar("Source")
Files = dict[str, bytes]


@dataclass(frozen=True)
class LedgerEntry:
    """Where a release is debited, and as what."""

    path: Path
    release_id: str
    population: str = "all users"
    window: str = ALL_TIME
    account: str | None = None
    """what several debits belong to of which each person bears one, since together they cost no more"""


@dataclass(frozen=True)
class Cost:
    """What a release costs each person, and what for."""

    budget: Budget
    neighbors: Neighbors
    what: str

    @property
    def spend(self) -> Spend:
        """As an account writes it down."""
        return Spend.generic(self.budget, self.neighbors, self.what)


def of_each_row(log: ReadOptions) -> str:
    """For what a release cost is for: a budget of rows is none of persons."""
    return "" if log.unit == PERSON else f"; unit: {log.unit}"


@dataclass(frozen=True)
class WrittenRelease(Generic[Released]):
    """What was released, and what is known of its input."""

    released: Released
    input_summary: JsonObject | None
    """exact counts of the input: not for release; ``None`` when an earlier release was returned unread"""
    files: Files
    """what was released, byte for byte"""


def now() -> str:
    """When a release is made, as its statement says it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def make_release(
    output: Path | None,
    cost: Cost,
    *,
    open_log: Callable[[], AbstractContextManager[Source]],
    make: Callable[[Source], tuple[Released, Files]],
    summarize: Callable[[Source], JsonObject | None],
    read: Callable[[Files], Released],
    replace: bool = False,
    ledger: LedgerEntry | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> WrittenRelease[Released]:
    """Read the log, make the files, write them.

    With a ledger the release is debited after the log was read and before any noise is drawn; a release id that was
    published before gives the same bytes and reads nothing.

    ``output`` is the folder, if one is wanted; ``cost`` is what a ledger is debited; ``open_log`` reads the log, and
    refuses whatever can be refused before noise is drawn: what ``make`` refuses is paid for;
    ``make`` draws and gives what was released with its files; ``summarize`` says what was counted of the input;
    ``read`` has the release from the files that a ledger keeps;
    ``replace`` allows another release in the folder; ``on_step`` is called with the name of each step.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(release_folder(output, replace=replace)) if output else None
        summary: JsonObject | None
        if ledger is None:
            log = stack.enter_context(open_log())
            released, files = make(log)
            summary = summarize(log)
        else:
            files, summary = _debited(stack, ledger, cost, open_log, make, summarize)
            # Not what ``make`` gave: of two runs of one id at once, only the files that the ledger has are released.
            released = read(files)
        if folder:
            on_step("files")
            for name, content in files.items():
                folder.write(name, content)
        return WrittenRelease(released, summary, files)


def refuse_large_delta(budget: Budget, n_users: int, *, allowed: bool) -> None:
    """Before anything is drawn or paid. Group sizes are public under replace-one, so the refusal gives nothing away."""
    if budget.delta * n_users >= 1 and not allowed:
        raise InvalidParameter(
            "delta",
            f"{budget.delta:g} is not below 1/users = {1 / n_users:.2g}: such a δ lets a mechanism expose a user "
            "outright; choose a smaller --delta, or --allow-large-delta",
        )


def _debited(
    stack: contextlib.ExitStack,
    entry: LedgerEntry,
    cost: Cost,
    open_log: Callable[[], AbstractContextManager[Source]],
    make: Callable[[Source], tuple[object, Files]],
    summarize: Callable[[Source], JsonObject | None],
) -> tuple[Files, JsonObject | None]:
    """The files that the ledger has of this release id, those of ``make`` if there are none, and the input's summary.

    The ledger is loaded here, since most runs keep no ledger. ``stack`` closes what is opened; the other
    arguments are those of ``make_release``.
    """
    from searchblend.store.ledger import open_ledger, release_once

    book = stack.enter_context(open_ledger(entry.path))

    def once(make_files: Callable[[], Files]) -> Files:
        return release_once(
            book,
            make_files,
            release_id=entry.release_id,
            population=entry.population,
            window=entry.window,
            spend=cost.spend,
            role_in=entry.account,
        )

    if book.published(entry.release_id) is not None:
        return once(dict), None
    log = stack.enter_context(open_log())
    return once(lambda: make(log)[1]), summarize(log)


REMEMBERED: Final = ".searchblend-releases.jsonl"
"""Hidden, so that a folder of logs with a release beside them stays readable as one log."""


@dataclass(frozen=True)
class SpentSoFar:
    """All releases from one input that a folder remembers, by simple summing."""

    releases: int
    epsilon: float


def remember_release(output: Path, log: str | None, spend: Spend, *, created: str) -> SpentSoFar:
    """Add a release to the file beside its folder, and say what all of the same input cost together.

    ``output`` is the release's folder; ``log`` the file, glob or directory as it was given. ``None`` is
    standard input: all that came by it counts as one input, because nothing tells one from another.
    """
    file, input_ = output.resolve().parent / REMEMBERED, _digest(log)
    lines = file.read_bytes().splitlines() if file.exists() else []
    document = {"input": input_, "folder": output.resolve().name, "created": created, "spend": spend.as_json()}
    write_whole(file, b"".join(line + b"\n" for line in [*lines, json.dumps(document).encode()]))
    return _total([*_spends(lines, input_), spend])


def _digest(log: str | None) -> str:
    if log is None:
        return hashlib.sha256(b"").hexdigest()
    place = shown_log(log) if is_named(log) or is_remote(log) else str(local_path(log).resolve())
    return hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()


def _spends(lines: Sequence[bytes], input_: str) -> Iterator[Spend]:
    """A line that is not ours says nothing, and stays where it is."""
    for line in lines:
        try:
            document = json.loads(line)
            if document["input"] == input_:
                yield Spend.of_json(document["spend"])
        except (ValueError, KeyError, TypeError, InvalidParameter):
            continue


def _total(spends: Sequence[Spend]) -> SpentSoFar:
    """Where both relations occur all are counted under replace-one: removing and adding is twice the ε."""
    relation = common_relation(spends)
    total = sum(decimal(spend.epsilon) * (1 if spend.neighbors is relation else 2) for spend in spends)
    return SpentSoFar(len(spends), float(total))
