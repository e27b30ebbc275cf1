"""The ledger's rows and what they say: pure, the same for every database.

A row is a JSON document and the SHA-256 of the previous row's hash and that document (``CapRow``, ``DebitRow``,
``PublishRow``). Nothing is ever changed or removed; nothing of the users' data is written here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from searchblend.accounting.spend import Spend, either_of
from searchblend.accounting.totals import BudgetCap, Totals, default_delta, fits, remaining, total_of
from searchblend.core.documents import JsonObject, Natural, Sha256, absent, decode, encode
from searchblend.core.errors import InvalidParameter, SearchblendError
from searchblend.core.privacy import Budget, Neighbors
from searchblend.store.errors import CorruptLedger
from searchblend.store.ledger_windows import SPELLINGS, have_days_in_common, is_spelt_out

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
    role_in: str | None = absent()
    """a round in which a person has one role at most: of its debits each person bears one"""
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
    public_spend: JsonObject | None = absent()
    """``Spend.as_json`` of what the files alone cost, where they tell less than what was debited"""
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
    role_in: str | None = None
    """as in its row"""

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
    public_spends: dict[str, Spend] = field(default_factory=dict)
    """by release id: what the published files alone cost, where that is less than the debit"""

    def spends(self, population: str, window: str | None, *more: Entry) -> list[Spend]:
        """All that counts in a window of the population, or with ``None`` in its lifetime, and these ``more``.

        Where a person has one role in a round, one debit of that round counts: the larger.
        """
        return charged(self._counting(population, window, *more))

    def spends_in_public(self, population: str, window: str | None) -> list[Spend]:
        """What those who see only the published files learn of a person who was a client in every round."""
        spends = []
        for entries in _by_round(self._counting(population, window)):
            counted = [self.public_spends[e.release_id] for e in entries if e.release_id in self.public_spends]
            spends.append(either_of(counted or [entry.spend for entry in entries]))
        return spends

    def _counting(self, population: str, window: str | None, *more: Entry) -> list[Entry]:
        return [entry for entry in (*self.entries.values(), *more) if entry.counts_for(population, window)]

    def exceeded_by(self, entry: Entry) -> tuple[str | None, Budget] | None:
        """The window (``None``: the lifetime) and the cap that one more debit would pass, or ``None`` if it fits.

        It must fit in every window on record in which it counts, not only in the one whose name it bears: a
        debit of a week is one more of the year whose cap another release relied on. Under a cap per
        window ``InvalidParameter`` for a name that is none of ``SPELLINGS``.
        """
        if self.cap is None:
            return None
        population, window = entry.population, entry.window
        if self.cap.window is not None and not is_spelt_out(window):
            raise InvalidParameter("window", f"the ledger has a cap per window, so expected {SPELLINGS}")
        windows = dict.fromkeys([window, *(w for p, w in self.scopes() if p == population and w is not None)])
        for name in (*(name for name in windows if have_days_in_common(name, window)), None):
            budget = self.limit(name)
            if budget and not fits(self.spends(population, name, entry), budget, planned=self.cap.planned):
                return name, budget
        return None

    def limit(self, window: str | None) -> Budget | None:
        """The cap of each window, or with ``None`` of a lifetime, if there is one."""
        return None if self.cap is None else (self.cap.lifetime if window is None else self.cap.window)

    def totals(self, population: str, window: str | None, delta: float | None = None) -> Totals:
        """What the debits cost one user id together; at the cap's δ, or the debits' own and a little, unless given."""
        spends, limit = self.spends(population, window), self.limit(window)
        if delta is None:
            delta = limit.delta if limit else default_delta(spends)
        return total_of(spends, delta)

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


def charged(entries: Iterable[Entry]) -> list[Spend]:
    """What each person bears of these debits: one of each round in which they have one role."""
    return [either_of([entry.spend for entry in alternatives]) for alternatives in _by_round(entries)]


def _by_round(entries: Iterable[Entry]) -> list[list[Entry]]:
    rounds: dict[object, list[Entry]] = {}
    for entry in entries:
        rounds.setdefault(entry.role_in or (entry.release_id,), []).append(entry)
    return list(rounds.values())


def planned_round(population: str, window: str, budget: Budget) -> Entry:
    """A round that is to come: each person has one of its two roles, and either costs this."""
    spend = Spend.generic(budget, Neighbors.REPLACE_ONE, "planned round")
    return Entry(0, "planned round", population, window, spend, "")


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
    book.entries[row.release_id] = Entry(
        position, row.release_id, row.population, row.window, spend, row.recorded, row.role_in
    )


def _read_publish(book: Book, position: int, document: JsonObject) -> None:
    row = decode(PublishRow, document)
    if row.release_id not in book.entries or row.release_id in book.published:
        raise CorruptLedger(position, "publishes a release that was not charged, or a second time")
    book.published[row.release_id] = row.files
    if row.public_spend is not None:
        book.public_spends[row.release_id] = Spend.of_json(row.public_spend)


_READERS: Final = {"cap": _read_cap, "debit": _read_debit, "publish": _read_publish}
