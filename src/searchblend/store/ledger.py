"""What was released about whom, and what it cost: debited before anyone can see it.

The protocol of a release, whatever dies in between:

    1. ``debit``     the cost is on disk under the release id, or refused
    2.               the noise is drawn and the files are made, in memory
    3. ``publish``   the files and their SHA-256 are on disk under the same id
    4.               what ``publish`` returned may be shown

Repeat it with the same id after a crash: a debit that is there costs nothing more; files that are there come back byte
for byte; a debit without files was seen by no one, so drawing anew under it is sound. Budget is never given back.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import astuple, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from searchblend.accounting.spend import Spend
from searchblend.accounting.totals import BudgetCap, Totals, default_delta, total_of
from searchblend.core.errors import EmptyHeadList, InvalidParameter
from searchblend.core.tables import ROWS_SHOWN, Tables, chosen, html_table
from searchblend.store.database import Database
from searchblend.store.database_sqlite import LedgerFile
from searchblend.store.errors import BudgetExceeded, ConflictingRelease, CorruptLedger, LedgerError
from searchblend.store.ledger_book import (
    Book,
    CapRow,
    DebitRow,
    Entry,
    PublishedFile,
    PublishRow,
    Row,
    next_row,
    read_book,
)

_MAX_NAME: Final = 200
READ_ROWS: Final = "SELECT position, body, previous, hash, kind, release_id FROM ledger ORDER BY position"
APPEND_ROW: Final = "INSERT INTO ledger (position, body, previous, hash, kind, release_id) VALUES (?, ?, ?, ?, ?, ?)"
READ_FILES: Final = "SELECT name, content FROM release_files WHERE release_id = ? ORDER BY name"
ADD_FILE: Final = "INSERT INTO release_files (release_id, name, content) VALUES (?, ?, ?)"
READ_FILE_NAMES: Final = "SELECT release_id, name FROM release_files ORDER BY release_id, name"
NOTHING_PASSED: Final = "empty-head-list.txt"
"""the file of a release that named nothing"""


class Ledger(Tables[Literal["debits"]], contextlib.AbstractContextManager["Ledger"]):
    """What was released about whom, and what it cost; refuses what would exceed its cap.

    Every reading checks the whole chain first; a broken one takes no more debits. Close it, or use it in a ``with``.

    Example:
        ``sb.Ledger("budget.ledger", cap=sb.BudgetCap(lifetime=sb.Budget(8.0, 1e-5)))``
    """

    def __init__(self, database: Database | str | os.PathLike[str], *, cap: BudgetCap | None = None) -> None:
        """
        Args:
            database: the ledger's file, made if it is not there; or a service's database
            cap: put on record; must be the one there, if there is one
        """
        if isinstance(database, str | os.PathLike):
            database = LedgerFile(Path(database))
        self._database: Database = database
        try:
            if cap is not None:
                self.set_cap(cap, replace=False)
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """The ledger's file; ``LedgerError`` for the ledger in a service's database."""
        if not isinstance(self._database, LedgerFile):
            raise LedgerError("expected a ledger in a file of its own, not that of a service")
        return self._database.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def columns(self, table: Literal["debits"] | None = None) -> dict[str, list[str | float]]:
        """The debits, oldest first: id, people, window, ε, δ, what was run, when, and whether it was published."""
        chosen(table, "debits")
        book = self.book()
        rows = [
            (e.release_id, e.population, e.window, e.spend.epsilon, e.spend.delta, e.spend.mechanism, e.recorded)
            for e in book.entries.values()
        ]
        names = ("release_id", "population", "window", "epsilon", "delta", "mechanism", "recorded")
        columns: dict[str, list[str | float]] = {name: [row[place] for row in rows] for place, name in enumerate(names)}
        return {**columns, "published": [release_id in book.published for release_id in columns["release_id"]]}

    def _repr_html_(self) -> str:
        """For notebooks."""
        columns, cap = self.columns(), self.book().cap
        header = ("release_id", "population", "window", "epsilon", "delta")
        rows = [[str(columns[name][place]) for name in header] for place in range(len(columns["release_id"]))]
        return html_table("Debits", header, rows[-ROWS_SHOWN:], len(rows), f"cap: {cap or 'none on record'}")

    def set_cap(self, cap: BudgetCap, *, replace: bool = True) -> None:
        """Put a cap on record; it holds from the next debit on. The same cap again changes nothing."""
        with self._database.transaction():
            book = self.book()
            if book.cap is not None and book.cap != cap and not replace:
                raise LedgerError("another cap is on record; change it with set_cap or `searchblend ledger cap`")
            if book.cap != cap:
                self._append(book, CapRow(cap, _now()))

    def debit(
        self, release_id: str, population: str, window: str, spend: Spend, *, role_in: str | None = None
    ) -> Entry:
        """Charge a release to everyone in the population; on disk when this returns.

        The same id with the same content returns the earlier entry and costs nothing. ``role_in`` names a round in
        which a person has one role at most: of all debits with that name each person bears one.
        """
        for field, name in (("release_id", release_id), ("population", population), ("window", window)):
            check_name(field, name)
        if role_in is not None:
            check_name("role_in", role_in)
        with self._database.transaction():
            book = self.book()
            entry = Entry(book.length + 1, release_id, population, window, spend, _now(), role_in)
            if (earlier := book.entries.get(release_id)) is not None:
                return _the_same(earlier, entry)
            _refuse_overspend(book, entry)
            self._append(book, DebitRow(release_id, population, window, spend.as_json(), entry.recorded, role_in))
        return entry

    def publish(
        self, release_id: str, files: Mapping[str, bytes], *, public_spend: Spend | None = None
    ) -> dict[str, bytes]:
        """Put a debited release's files on disk and return what may be shown: the first files published under the id.

        Files that come second (two runs of one id at once) are thrown away unseen. ``public_spend`` is what the files
        alone cost, where they tell less than what was debited.
        """
        if not files:
            raise InvalidParameter("files", "a release has at least one")
        for name in files:
            check_name("files", name)
        with self._database.transaction():
            book = self.book()
            if release_id not in book.entries:
                raise LedgerError(f"release {release_id}: was not debited; nothing may be published")
            if release_id in book.published:
                return self._files(book, release_id)
            for name, content in files.items():
                self._database.execute(ADD_FILE, (release_id, name, content))
            public = None if public_spend is None else public_spend.as_json()
            self._append(book, PublishRow(release_id, _fingerprints(files), _now(), public))
        return {name: bytes(files[name]) for name in sorted(files)}

    def published(self, release_id: str) -> dict[str, bytes] | None:
        """The files published under this id, byte for byte, or nothing."""
        book = self.book()
        return self._files(book, release_id) if release_id in book.published else None

    def entries(self, population: str | None = None, window: str | None = None) -> list[Entry]:
        """The debits that count for a population in a window, oldest first."""
        return [entry for entry in self.book().entries.values() if entry.counts_for(population, window)]

    def totals(self, population: str, window: str | None = None, *, delta: float | None = None) -> Totals:
        """What a window (or with ``None``: a lifetime) has cost one user id of the population."""
        spends = self.book().spends(population, window)
        return total_of(spends, default_delta(spends) if delta is None else delta)

    def check(self) -> Book:
        """Go through everything: the chain, and every published file against its SHA-256."""
        book = self.book()
        for release_id in book.published:
            self._files(book, release_id)
        for release_id, name in self._database.execute(READ_FILE_NAMES):
            if name not in book.published.get(release_id, {}):
                raise LedgerError(f"release {release_id}: holds a file that was never published")
        return book

    def rows(self) -> list[Row]:
        """The rows as they are stored, unchecked."""
        return [Row(*values) for values in self._database.execute(READ_ROWS)]

    def book(self) -> Book:
        """What the rows say, the chain checked."""
        return read_book(self.rows())

    def _append(self, book: Book, document: CapRow | DebitRow | PublishRow) -> Row:
        row = next_row(book, document)
        self._database.execute(APPEND_ROW, astuple(row))
        return row

    def _files(self, book: Book, release_id: str) -> dict[str, bytes]:
        files: dict[str, bytes] = dict(self._database.execute(READ_FILES, (release_id,)))
        if _fingerprints(files) != book.published[release_id]:
            raise CorruptLedger(
                book.entries[release_id].position, f"the files of release {release_id} are not those published"
            )
        return files


def open_ledger(path: Path | str, *, cap: BudgetCap | None = None, create: bool = True) -> Ledger:
    """The ledger in a SQLite file, made if it is not there. ``cap`` is put on record, and must be the one there."""
    return Ledger(LedgerFile(Path(path), create=create), cap=cap)


def release_once(
    ledger: Ledger,
    make: Callable[[], Mapping[str, bytes]],
    *,
    release_id: str,
    population: str,
    window: str,
    spend: Spend,
    role_in: str | None = None,
) -> dict[str, bytes]:
    """The files of a release: those published under this id, or else those that ``make`` makes now.

    ``make`` draws the noise and shows it to no one; it runs after the debit is on disk. It may run again after
    a crash, under the same debit, since nothing of the first time was seen. Show what is returned, not what ``make``
    made: of two runs of one id at once only the first to publish counts.

    That no record passed the threshold is an outcome like any other: it is published too, and a repetition raises
    it again and does not draw again. Other errors of ``make`` publish nothing, so they must not depend on noise.
    """
    ledger.debit(release_id, population, window, spend, role_in=role_in)
    files = ledger.published(release_id)
    if files is None:
        try:
            files = ledger.publish(release_id, make())
        except EmptyHeadList as error:
            files = ledger.publish(release_id, {NOTHING_PASSED: str(error).encode()})
    if NOTHING_PASSED in files:
        raise EmptyHeadList(files[NOTHING_PASSED].decode())
    return files


def _the_same(earlier: Entry, entry: Entry) -> Entry:
    if replace(entry, position=earlier.position, recorded=earlier.recorded) != earlier:
        raise ConflictingRelease(
            f"release {earlier.release_id}: was debited with another spend, population or window; use a new id"
        )
    return earlier


def _refuse_overspend(book: Book, entry: Entry) -> None:
    exceeded, spend = book.exceeded_by(entry), entry.spend
    if exceeded is None:
        return
    name, budget = exceeded
    raise BudgetExceeded(
        f"population {entry.population}, {'lifetime' if name is None else f'window {name}'}: "
        f"ε = {spend.epsilon:g}, δ = {spend.delta:g} more would exceed the cap "
        f"of ε = {budget.epsilon:g}, δ = {budget.delta:g}; nothing was debited"
    )


def check_name(field: str, name: str) -> None:
    """How populations, windows, releases and their files may be called; ``InvalidParameter`` names the field."""
    if not name or len(name) > _MAX_NAME or not name.isprintable() or name != name.strip():
        raise InvalidParameter(field, f"expected 1 to {_MAX_NAME} printable characters, no space at either end")
    if field == "files" and ("/" in name or "\\" in name or name.startswith(".")):
        raise InvalidParameter(field, "expected plain file names")


def _fingerprints(files: Mapping[str, object]) -> dict[str, PublishedFile]:
    """Without what is not bytes: SQLite keeps a value of any type in a column of bytes."""
    contents = {name: content for name, content in files.items() if isinstance(content, bytes)}
    return {
        name: PublishedFile(hashlib.sha256(content).hexdigest(), len(content)) for name, content in contents.items()
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
