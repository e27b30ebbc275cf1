"""Work that must happen once: leased, so that a dead worker's job is taken over, and finished with its result.

A worker takes a lease with a random token. It finishes inside the transaction that commits the job's result; a worker
whose lease was taken over meanwhile finds that its token is gone, and its transaction is undone.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass

from searchblend.store.database import Database, marks
from searchblend.store.errors import LeaseLost


@dataclass(frozen=True)
class LeasedJob:
    """A leased job."""

    round_key: int
    kind: str
    token: str
    attempts: int


class Jobs:
    """The queue in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, round_key: int, kind: str, due: int) -> None:
        """The same job twice is one job."""
        self._database.execute(
            "INSERT INTO jobs (round_key, kind, due, lease_until, attempts) VALUES (?, ?, ?, 0, 0) "
            "ON CONFLICT DO NOTHING",
            (round_key, kind, due),
        )

    def lease(
        self, kinds: Collection[str], now: int, seconds: int, *, exclude: Collection[tuple[int, str]] = ()
    ) -> LeasedJob | None:
        """A job of these kinds that is due and not leased; ``exclude``: those that another worker has to do."""
        skip = " FOR UPDATE SKIP LOCKED" if self._database.dialect == "postgresql" else ""
        excluded = " AND NOT (round_key = ? AND kind = ?)" * len(exclude)
        token = secrets.token_hex(16)
        with self._database.transaction(exclusive=False):
            rows = self._database.execute(
                f"SELECT round_key, kind FROM jobs WHERE kind IN ({marks(kinds)}) "
                f"AND due <= ? AND lease_until <= ?{excluded} ORDER BY due, round_key LIMIT 1{skip}",
                (*kinds, now, now, *(value for job in exclude for value in job)),
            )
            if not rows:
                return None
            key, kind = rows[0]
            attempts = self._database.execute(
                "UPDATE jobs SET lease_token = ?, lease_until = ?, attempts = attempts + 1 "
                "WHERE round_key = ? AND kind = ? RETURNING attempts",
                (token, now + seconds, key, kind),
            )[0][0]
        return LeasedJob(key, kind, token, attempts)

    def finish(self, job: LeasedJob) -> None:
        """In the transaction of the job's result."""
        rows = self._database.execute(
            "DELETE FROM jobs WHERE round_key = ? AND kind = ? AND lease_token = ? RETURNING 1",
            (job.round_key, job.kind, job.token),
        )
        if not rows:
            raise LeaseLost(f"job {job.kind}: another worker has it")

    def give_back(self, job: LeasedJob, due: int, *, counted: bool = True) -> None:
        """Any worker may try again from ``due`` on. Not ``counted``: what stopped the attempt was not the job."""
        self._database.execute(
            "UPDATE jobs SET lease_token = NULL, lease_until = 0, due = ?, attempts = attempts - ? "
            "WHERE round_key = ? AND kind = ? AND lease_token = ?",
            (due, 0 if counted else 1, job.round_key, job.kind, job.token),
        )

    def cancel(self, round_key: int) -> None:
        """An aborted round has no work left but to be shredded."""
        self._database.execute("DELETE FROM jobs WHERE round_key = ? AND kind <> 'shred'", (round_key,))

    def waiting(self) -> list[tuple[int, str, int]]:
        """Round key, kind and attempts of everything that is not done."""
        rows = self._database.execute("SELECT round_key, kind, attempts FROM jobs ORDER BY round_key, kind")
        return [(int(key), kind, int(attempts)) for key, kind, attempts in rows]
