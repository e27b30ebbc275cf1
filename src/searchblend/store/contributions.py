"""Sealed opt-in records: one per contributor and round, until they are shredded. Nothing here can open them.

A contributor is a tag (``wire/sealed.py``). What was taken back leaves its tag with no bytes, so that nothing comes
back under it: neither the same record, sent again by whoever has seen it, nor one that was held up on its way. A column
says so, since whoever counts records need not be able to read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from searchblend.store.database import Database
from searchblend.store.rounds import holds_open
from searchblend.store.states import State

_PAGE: Final = 2000


class Contributions:
    """Sealed records in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, round_key: int, tag: bytes, sealed: bytes, now: int) -> str:
        """``taken``, ``repeated`` (the same bytes again), ``conflict`` (others, or it was taken back) or ``closed``."""
        with self._database.transaction(exclusive=False):
            if not self._open(round_key, now):
                return "closed"
            added = self._database.execute(
                "INSERT INTO contributions (round_key, tag, sealed) VALUES (?, ?, ?) ON CONFLICT DO NOTHING "
                "RETURNING 1",
                (round_key, tag, sealed),
            )
            if added:
                return "taken"
            rows = self._database.execute(
                "SELECT sealed FROM contributions WHERE round_key = ? AND tag = ?", (round_key, tag)
            )
            return "repeated" if rows and bytes(rows[0][0]) == sealed else "conflict"

    def withdraw(self, round_key: int, tag: bytes, now: int) -> bool:
        """Take a record back for good, also one that has not arrived; False when the window has closed.

        One row says both, so that its primary key puts a record and its withdrawal in an order, on either database.
        """
        with self._database.transaction(exclusive=False):
            if not self._open(round_key, now):
                return False
            self._database.execute(
                "INSERT INTO contributions (round_key, tag, sealed, withdrawn) VALUES (?, ?, ?, 1) "
                "ON CONFLICT (round_key, tag) DO UPDATE SET sealed = excluded.sealed, withdrawn = 1",
                (round_key, tag, b""),
            )
            return True

    def count(self, round_key: int) -> int:
        rows = self._database.execute(
            "SELECT COUNT(*) FROM contributions WHERE round_key = ? AND withdrawn = 0", (round_key,)
        )
        return int(rows[0][0])

    def withdrawn(self, task: str, number: int) -> set[bytes]:
        """The tags under which a record of the round was taken back; none of a round that is not there."""
        rows = self._database.execute(
            "SELECT tag FROM contributions WHERE withdrawn = 1 "
            "AND round_key = (SELECT round_key FROM rounds WHERE task = ? AND number = ?)",
            (task, number),
        )
        return {_content(tag) for (tag,) in rows}

    def all(self, round_key: int) -> Iterator[tuple[bytes, bytes]]:
        """Tags and sealed records, in the order of the tags, which does not tell in which order they came."""
        after = b""
        while True:
            rows = self._database.execute(
                "SELECT tag, sealed FROM contributions WHERE round_key = ? AND tag > ? AND withdrawn = 0 "
                "ORDER BY tag LIMIT ?",
                (round_key, after, _PAGE),
            )
            yield from ((bytes(tag), _content(sealed)) for tag, sealed in rows)
            if len(rows) < _PAGE:
                return
            after = bytes(rows[-1][0])

    def shred(self, round_key: int) -> int:
        """Delete all records of the round, and who took one back; how many records there were."""
        rows = self._database.execute("DELETE FROM contributions WHERE round_key = ? RETURNING withdrawn", (round_key,))
        return sum(not withdrawn for (withdrawn,) in rows)

    def _open(self, round_key: int, now: int) -> bool:
        return holds_open(self._database, round_key, states={State.OPTIN_OPEN}, until="optin_closes", now=now)


def _content(sealed: bytes | str) -> bytes:
    """SQLite would keep a string that was written there by hand, which is not a record."""
    return sealed.encode("utf-8", "replace") if isinstance(sealed, str) else bytes(sealed)
