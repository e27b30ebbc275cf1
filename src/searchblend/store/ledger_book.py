"""The ledger's rows and what they say: pure, the same for every database.

A row is a JSON document and the SHA-256 of the previous row's hash and that document (``CapRow``, ``DebitRow``,
``PublishRow``). Nothing is ever changed or removed; nothing of the users' data is written here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from searchblend.accounting.spend import Spend
from searchblend.accounting.totals import BudgetCap, fits, remaining
from searchblend.core.documents import JsonObject, Natural, Sha256, decode, encode
from searchblend.core.errors import SearchblendError
from searchblend.core.privacy import Budget
from searchblend.store.errors import CorruptLedger
from searchblend.store.ledger_windows import have_days_in_common

GENESIS: Final = "0" * 64
"""stands where the first row has no previous hash"""


@dataclass(frozen=True)
class ChainedRow:
    """A stored row whose hash covers the row before it."""

    position: int
    body: str
    previous: str
    hash: str

    def problem_after(self, position: int, previous: str) -> str | None:
        """Why this row cannot be the one that follows (position, hash), if so."""
        if self.position != position + 1:
            return "missing"
        if self.previous != previous:
            return "does not follow the row before it"
        return None if self.hash == chained(self.previous, self.body) else "was changed: its hash does not fit"


@dataclass(frozen=True)
class Row(ChainedRow):
    """One row of the ledger as it is stored."""

    kind: str
    release_id: str | None

    def as_json(self) -> JsonObject:
        return {"position": self.position, "previous": self.previous, "hash": self.hash, "body": json.loads(self.body)}


@dataclass(frozen=True)
class CapRow:
    """The most that a user id may be charged; a later one replaces it and stays on record."""

    cap: BudgetCap
    recorded: str
    kind: Literal["cap"] = "cap"


@dataclass(frozen=True)
class DebitRow:
    """A release with the people it is about (population, window) and its spend."""

    release_id: str
    population: str
    window: str
    spend: JsonObject
    """``Spend.as_json``"""
    recorded: str
    kind: Literal["debit"] = "debit"


@dataclass(frozen=True)
class PublishedFile:
    """How a file is known in a ledger and in a release's statement."""

    sha256: Sha256
    bytes: Natural


@dataclass(frozen=True)
class PublishRow:
    """The files of a release, by name."""

    release_id: str
    files: Mapping[str, PublishedFile]
    recorded: str
    kind: Literal["publish"] = "publish"


@dataclass(frozen=True)
class Entry:
    """One debit: a release, the people it is about, and what it costs each of them."""

    position: int
    release_id: str
    population: str
    window: str
    spend: Spend
    recorded: str
    """when, in ISO 8601"""

    def counts_for(self, population: str | None, window: str | None) -> bool:
        """Whether this is charged to the population in the window, which may be of another period than its own."""
        return population in (None, self.population) and (window is None or have_days_in_common(window, self.window))


@dataclass
class Book:
    """What a chain of rows says, once every row was checked."""

    head: str = GENESIS
    length: int = 0
    cap: BudgetCap | None = None
    entries: dict[str, Entry] = field(default_factory=dict)
    """by release id, oldest first"""
    published: dict[str, Mapping[str, PublishedFile]] = field(default_factory=dict)
    """by release id; files by name"""

    def spends(self, population: str, window: str | None) -> list[Spend]:
        """All that counts in a window of the population, or with ``None`` in its lifetime."""
        return [entry.spend for entry in self.entries.values() if entry.counts_for(population, window)]

    def exceeded_by(self, population: str, window: str, spends: Sequence[Spend]) -> tuple[str | None, Budget] | None:
        """The window (``None``: the lifetime) and the cap that these would pass, or ``None`` if they fit.

        They must fit in every window on record in which they count, not only in the one whose name they bear: a
        debit of a week is one more of the year whose cap another release relied on.
        """
        if self.cap is None:
            return None
        windows = dict.fromkeys([window, *(w for p, w in self.scopes() if p == population and w is not None)])
        for name in (*(name for name in windows if have_days_in_common(name, window)), None):
            budget = self.limit(name)
            if budget and not fits([*self.spends(population, name), *spends], budget, planned=self.cap.planned):
                return name, budget
        return None

    def limit(self, window: str | None) -> Budget | None:
        """The cap of each window, or with ``None`` of a lifetime, if there is one."""
        return None if self.cap is None else (self.cap.lifetime if window is None else self.cap.window)

    def left(self, population: str, window: str | None) -> float | None:
        """ε that the cap has left for a population; ``None`` without a cap."""
        budget, spends = self.limit(window), self.spends(population, window)
        if budget is None or self.cap is None:
            return None
        return remaining(spends, budget, planned=self.cap.planned)[0] if spends else budget.epsilon

    def scopes(self) -> list[tuple[str, str | None]]:
        """Every (population, window), after each population's windows its lifetime (``None``)."""
        windows: dict[str, dict[str, None]] = {}
        for entry in self.entries.values():
            windows.setdefault(entry.population, {})[entry.window] = None
        return [(population, window) for population, names in windows.items() for window in (*names, None)]


def canonical(document: JsonObject) -> str:
    """The one JSON form of a document."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def chained(previous: str, body: str) -> str:
    """The hash of a row."""
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def next_row(book: Book, document: CapRow | DebitRow | PublishRow) -> Row:
    """The row of this document after all the others."""
    body, release_id = canonical(encode(document)), getattr(document, "release_id", None)
    return Row(book.length + 1, body, book.head, chained(book.head, body), document.kind, release_id)


def read_book(rows: Iterable[Row]) -> Book:
    """Check the chain from its first row and read it; refuse at the first row that is not what was written."""
    book = Book()
    for row in rows:
        if problem := row.problem_after(book.length, book.head):
            raise CorruptLedger(book.length + 1, problem)
        try:
            document = json.loads(row.body)
            if (document["kind"], document.get("release_id")) != (row.kind, row.release_id):
                raise CorruptLedger(row.position, "the index columns do not agree with the row")
            _READERS[row.kind](book, row.position, document)
        except CorruptLedger:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, SearchblendError) as error:
            raise CorruptLedger(row.position, "not a row that this version can read") from error
        book.head, book.length = row.hash, row.position
    return book


def _read_cap(book: Book, position: int, document: JsonObject) -> None:
    book.cap = decode(CapRow, document).cap


def _read_debit(book: Book, position: int, document: JsonObject) -> None:
    row = decode(DebitRow, document)
    if row.release_id in book.entries:
        raise CorruptLedger(position, "charges a release id a second time")
    spend = Spend.of_json(row.spend)
    book.entries[row.release_id] = Entry(position, row.release_id, row.population, row.window, spend, row.recorded)


def _read_publish(book: Book, position: int, document: JsonObject) -> None:
    row = decode(PublishRow, document)
    if row.release_id not in book.entries or row.release_id in book.published:
        raise CorruptLedger(position, "publishes a release that was not charged, or a second time")
    book.published[row.release_id] = row.files


_READERS: Final = {"cap": _read_cap, "debit": _read_debit, "publish": _read_publish}
