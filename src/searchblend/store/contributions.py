"""Sealed opt-in records: one per contributor and round, until they are shredded. Nobody here can open them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from typing import Final

from searchblend.store.database import Database
from searchblend.store.round_lock import hold_open
from searchblend.store.states import State

_PAGE: Final = 2000
TAG_BYTES: Final = 16


def contributor_tag(tag_key: bytes, credential: bytes) -> bytes:
    """Who sent it, as far as one round can tell: HMAC-SHA-256 under a key that dies with the round."""
    return hmac.new(tag_key, credential, hashlib.sha256).digest()[:TAG_BYTES]


class Contributions:
    """Sealed records in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, round_key: int, tag: bytes, sealed: bytes, now: int) -> str:
        """``taken``, ``repeated`` (the same bytes again), ``conflict`` (others), or ``closed``."""
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

    def remove(self, round_key: int, tag: bytes, now: int) -> bool | None:
        """Take a record back; ``None`` when the window has closed and nobody can any more."""
        with self._database.transaction(exclusive=False):
            if not self._open(round_key, now):
                return None
            removed = self._database.execute(
                "DELETE FROM contributions WHERE round_key = ? AND tag = ? RETURNING 1", (round_key, tag)
            )
            return bool(removed)

    def count(self, round_key: int) -> int:
        rows = self._database.execute("SELECT COUNT(*) FROM contributions WHERE round_key = ?", (round_key,))
        return int(rows[0][0])

    def all(self, round_key: int) -> Iterator[bytes]:
        """The sealed records, in the order of their tags: no order in which they came."""
        after = b""
        while True:
            rows = self._database.execute(
                "SELECT tag, sealed FROM contributions WHERE round_key = ? AND tag > ? ORDER BY tag LIMIT ?",
                (round_key, after, _PAGE),
            )
            yield from (bytes(sealed) for _, sealed in rows)
            if len(rows) < _PAGE:
                return
            after = bytes(rows[-1][0])

    def shred(self, round_key: int) -> int:
        """Delete all records of the round; how many there were."""
        rows = self._database.execute("DELETE FROM contributions WHERE round_key = ? RETURNING 1", (round_key,))
        return len(rows)

    def _open(self, round_key: int, now: int) -> bool:
        hold_open(self._database, round_key)
        rows = self._database.execute(
            "SELECT state, optin_closes, killed FROM rounds JOIN tasks ON tasks.task = rounds.task WHERE round_key = ?",
            (round_key,),
        )
        if not rows:
            return False
        state, closes, killed = rows[0]
        return State(state) is State.OPTIN_OPEN and not killed and (closes is None or now < closes)
