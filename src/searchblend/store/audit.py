"""The audit log: who did what to which round, in a chain of hashes. Holds no query, URL, credential or address."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from searchblend.core.documents import JsonObject
from searchblend.store.database import Database
from searchblend.store.errors import CorruptAudit
from searchblend.store.ledger_book import GENESIS, ChainedRow, canonical, chained

_ROWS: Final = "SELECT position, body, previous, hash FROM audit"


@dataclass(frozen=True)
class AuditRow(ChainedRow):
    """One entry as it is stored."""

    @property
    def entry(self) -> AuditEntry:
        """As it is shown. A row that was tampered with is shown too: ``verify`` is what refuses it."""
        body = json.loads(self.body)
        return AuditEntry(
            self.position,
            self.previous,
            self.hash,
            str(body.get("action", "")),
            str(body.get("actor", "")),
            body.get("detail", {}),
            int(body.get("when", 0)),
        )


@dataclass(frozen=True)
class AuditEntry:
    """Who did what and when, with the hashes that chain the rows."""

    position: int
    previous: str
    hash: str
    action: str
    actor: str
    detail: JsonObject
    when: int


class AuditLog:
    """Appended in the transaction of what it records: neither is there without the other."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, actor: str, action: str, when: int, detail: JsonObject) -> None:
        with self._database.transaction():
            last = self._database.execute("SELECT position, hash FROM audit ORDER BY position DESC LIMIT 1")
            position, previous = last[0] if last else (0, GENESIS)
            body = canonical({"actor": actor, "action": action, "when": when, "detail": dict(detail)})
            self._database.execute(
                "INSERT INTO audit (position, body, previous, hash) VALUES (?, ?, ?, ?)",
                (position + 1, body, previous, chained(previous, body)),
            )

    def rows(self) -> list[AuditRow]:
        return [AuditRow(*row) for row in self._database.execute(f"{_ROWS} ORDER BY position")]

    def of_task(self, task: str) -> list[AuditEntry]:
        """What the log says about a task, oldest first."""
        rows = self._database.execute(f"{_ROWS} WHERE body LIKE ? ORDER BY position", (f'%"task":"{task}"%',))
        return [AuditRow(*row).entry for row in rows]

    def verify(self) -> AuditRow | None:
        """Check the whole chain; the last row, whose hash should be kept outside the service."""
        return verify_chain(self.rows())


def verify_chain(rows: Iterable[AuditRow]) -> AuditRow | None:
    """The last row of an unbroken chain, or ``CorruptAudit`` naming the first row that is not what was written."""
    last: AuditRow | None = None
    for position, row in enumerate(rows):
        if problem := row.problem_after(position, last.hash if last else GENESIS):
            raise CorruptAudit(position + 1, problem)
        last = row
    return last
