"""The entries of the transparency log and its newest checkpoint, in tables that hold nothing else.

The database does not have to be believed about them: who changes or removes an entry changes the root, which devices
and witnesses keep.
"""

from __future__ import annotations

from searchblend.store.database import Database


class TransparencyLog:
    """Entries by position, from 0; only ever appended to."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def entries(self, first: int = 0, until: int = 2**63 - 1) -> list[bytes]:
        rows = self._database.execute(
            "SELECT content FROM log_entries WHERE position >= ? AND position < ? ORDER BY position", (first, until)
        )
        return [bytes(content) for (content,) in rows]

    def has(self, entry: bytes) -> bool:
        return bool(self._database.execute("SELECT 1 FROM log_entries WHERE content = ?", (entry,)))

    def append(self, entry: bytes, position: int) -> None:
        """Of two that append at once the second fails, since its position is taken, and with it its transaction."""
        self._database.execute("INSERT INTO log_entries (position, content) VALUES (?, ?)", (position, entry))

    def checkpoint(self) -> bytes | None:
        """The signed note, with the cosignatures that witnesses gave it."""
        rows = self._database.execute("SELECT content FROM log_checkpoint")
        return bytes(rows[0][0]) if rows else None

    def keep_checkpoint(self, note: bytes) -> None:
        self._database.execute(
            "INSERT INTO log_checkpoint (place, content) VALUES (0, ?) "
            "ON CONFLICT (place) DO UPDATE SET content = excluded.content",
            (note,),
        )
