"""The entries of the transparency log and its newest checkpoint, beside the service's other inner documents.

The database does not have to be believed about them: who changes or removes an entry changes the root, which devices
and witnesses keep.
"""

from __future__ import annotations

from searchblend.store.database import Database

_ENTRY = "log entry "
_CHECKPOINT = "log checkpoint"
_PLACES = 12


class TransparencyLog:
    """Entries by position, from 0; only ever appended to."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def entries(self, first: int = 0, until: int = 10**_PLACES - 1) -> list[bytes]:
        rows = self._database.execute(
            "SELECT content FROM documents WHERE round_key = 0 AND name >= ? AND name < ? ORDER BY name",
            (_name(first), _name(until)),
        )
        return [bytes(content) for (content,) in rows]

    def has(self, entry: bytes) -> bool:
        return bool(
            self._database.execute(
                "SELECT 1 FROM documents WHERE round_key = 0 AND name >= ? AND name < ? AND content = ?",
                (_name(0), _name(10**_PLACES - 1), entry),
            )
        )

    def append(self, entry: bytes, position: int) -> None:
        """Of two that append at once the second fails, since its position is taken, and with it its transaction."""
        self._database.execute(
            "INSERT INTO documents (round_key, name, content) VALUES (0, ?, ?)", (_name(position), entry)
        )

    def checkpoint(self) -> bytes | None:
        """The signed note, with the cosignatures that witnesses gave it."""
        rows = self._database.execute("SELECT content FROM documents WHERE round_key = 0 AND name = ?", (_CHECKPOINT,))
        return bytes(rows[0][0]) if rows else None

    def keep_checkpoint(self, note: bytes) -> None:
        self._database.execute(
            "INSERT INTO documents (round_key, name, content) VALUES (0, ?, ?) "
            "ON CONFLICT (round_key, name) DO UPDATE SET content = excluded.content",
            (_CHECKPOINT, note),
        )


def _name(position: int) -> str:
    return f"{_ENTRY}{position:0{_PLACES}d}"
