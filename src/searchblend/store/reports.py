"""What people send: counted reports (cells and seen ids, never a report), and sealed records until they are shredded.

The law that holds after every commit: the counts of a round sum to ``counts_per_report`` × its seen ids. An id and its
counts are written in one transaction, and only if the id is new and the round takes reports at that moment.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.core.documents import Natural
from searchblend.store.database import Database, marks
from searchblend.store.rounds import holds_open
from searchblend.store.states import TAKES_REPORTS, State

_SHARDS: Final = 16
_IDS_AT_ONCE: Final = (512, 64, 8, 1)
"""few sizes: a statement of its own for every number of ids would stay in memory"""
_ADD: Final = (
    "INSERT INTO counts (round_key, shard, cell, n) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (round_key, shard, cell) DO UPDATE SET n = counts.n + excluded.n"
)
_ADD_POSTGRES: Final = (
    "INSERT INTO counts (round_key, shard, cell, n) "
    "SELECT ?, ?, * FROM unnest(CAST(? AS integer[]), CAST(? AS bigint[])) "
    "ON CONFLICT (round_key, shard, cell) DO UPDATE SET n = counts.n + excluded.n"
)
_SEE_POSTGRES: Final = (
    "WITH added AS (INSERT INTO seen (round_key, report_id) "
    "SELECT ?, substring(ids FROM 16 * i + 1 FOR 16) FROM (SELECT CAST(? AS bytea) AS ids) AS given, "
    "generate_series(0, ? - 1) AS i ON CONFLICT DO NOTHING RETURNING report_id) "
    "SELECT string_agg(report_id, CAST('' AS bytea)) FROM added"
)
"""ids travel as one string of bytes there and back: arrays of a thousand cost more than the commit"""
_GIVEN_POSTGRES: Final = (
    "SELECT substring(pairs FROM 48 * i + 1 FOR 32) AS nonce, substring(pairs FROM 48 * i + 33 FOR 16) AS report_id "
    "FROM (SELECT CAST(? AS bytea) AS pairs) AS given, generate_series(0, ? - 1) AS i"
)
_SPEND_POSTGRES: Final = (
    "INSERT INTO spent_tokens (round_key, nonce, report_id) SELECT ?, nonce, report_id "
    f"FROM ({_GIVEN_POSTGRES}) AS pair ON CONFLICT DO NOTHING"
)
_PAID_POSTGRES: Final = (
    "SELECT nonce, report_id FROM spent_tokens WHERE round_key = ? "
    f"AND nonce IN (SELECT nonce FROM ({_GIVEN_POSTGRES}) AS pair)"
)
"""a nonce has 32 bytes, an id 16"""
_ID_BYTES: Final = 16
_RECORDS_AT_ONCE: Final = 2000


class ReportOutcome(StrEnum):
    """What became of arrivals."""

    TAKEN = "taken"
    CLOSED = "closed"
    SPENT = "spent"


@dataclass(frozen=True)
class Arrivals:
    """Decoded reports for one round, waiting for a commit."""

    round_key: int
    ids: Sequence[bytes]
    counters: NDArray[np.int64]
    """one row per id"""
    token: bytes | None = None
    """the nonce of a single-use token, which pays for the one report that is here"""


@dataclass(frozen=True)
class ConservationLaw:
    """Counts that are stored, and counts that the accepted reports must have made."""

    counted: Natural
    expected: Natural
    holds: bool

    @classmethod
    def of(cls, counted: int, expected: int) -> ConservationLaw:
        return cls(counted, expected, counted == expected)


class Reports:
    """Counts of all rounds in a database."""

    def __init__(self, database: Database, on_point: Callable[[str], None] = lambda point: None) -> None:
        self._database, self._on_point = database, on_point
        self._shard = secrets.randbelow(_SHARDS) if database.dialect == "postgresql" else 0

    def add(self, arrivals: Sequence[Arrivals], now: int) -> list[ReportOutcome]:
        """Commit them all together; what became of each. On disk when this returns.

        An id that is there already counts nothing and is as good as a new one. A token pays for the report that it
        came with first, however often that is repeated, and for no other.
        """
        outcomes = [ReportOutcome.CLOSED] * len(arrivals)
        by_round: dict[int, list[int]] = {}
        for position, arrival in enumerate(arrivals):
            by_round.setdefault(arrival.round_key, []).append(position)
        with self._database.transaction(exclusive=False):
            for key in sorted(by_round):
                if not holds_open(self._database, key, states=TAKES_REPORTS, until="grace_until", now=now):
                    continue
                paid_for = self._spend(key, [arrivals[i] for i in by_round[key]])
                for position in by_round[key]:
                    token, report_id = arrivals[position].token, arrivals[position].ids[0]
                    pays = token is None or paid_for[token] == report_id
                    outcomes[position] = ReportOutcome.TAKEN if pays else ReportOutcome.SPENT
                paid = [arrivals[i] for i in by_round[key] if outcomes[i] is ReportOutcome.TAKEN]
                if paid:
                    self._count(key, paid)
            self._on_point("reports: before commit")
        self._on_point("reports: after commit")
        return outcomes

    def load(self, round_key: int, counts: NDArray[np.int64]) -> None:
        """Counts that were made elsewhere, into a round that has none."""
        rows = [(round_key, 0, cell, n) for cell, n in enumerate(counts.tolist()) if n]
        self._database.execute_many("INSERT INTO counts (round_key, shard, cell, n) VALUES (?, ?, ?, ?)", rows)

    def refuse(self, reasons: Mapping[tuple[int, str], int]) -> None:
        """Count refusals by round and reason; all that is kept of what was refused."""
        with self._database.transaction(exclusive=False):
            for (key, reason), n in sorted(reasons.items()):
                self._database.execute(
                    "INSERT INTO refusals (round_key, reason, n) VALUES (?, ?, ?) "
                    "ON CONFLICT (round_key, reason) DO UPDATE SET n = refusals.n + excluded.n",
                    (key, reason, n),
                )

    def refusals(self, round_key: int) -> dict[str, int]:
        rows = self._database.execute(
            "SELECT reason, n FROM refusals WHERE round_key = ? ORDER BY reason", (round_key,)
        )
        return {reason: int(n) for reason, n in rows}

    def refusals_by_round(self) -> dict[int, dict[str, int]]:
        """Those of all rounds, by round key, in one statement: what pages show must not cost more as rounds add up."""
        refusals: dict[int, dict[str, int]] = {}
        for key, reason, n in self._database.execute("SELECT round_key, reason, n FROM refusals ORDER BY reason"):
            refusals.setdefault(int(key), {})[reason] = int(n)
        return refusals

    def counts(self, round_key: int, n_counters: int) -> NDArray[np.int64]:
        rows = self._database.execute("SELECT cell, SUM(n) FROM counts WHERE round_key = ? GROUP BY cell", (round_key,))
        counts = np.zeros(n_counters, dtype=np.int64)
        for cell, n in rows:
            counts[cell] = int(n)
        return counts

    def n_seen(self, round_key: int) -> int:
        return int(self._database.execute("SELECT COUNT(*) FROM seen WHERE round_key = ?", (round_key,))[0][0])

    def counted_by_round(self) -> dict[int, tuple[int, int]]:
        """Sum of counts and number of report ids of rounds that have a head list, by round key; both of one moment."""
        rows = self._database.execute(
            "SELECT round_key, (SELECT COALESCE(SUM(n), 0) FROM counts WHERE counts.round_key = rounds.round_key), "
            "(SELECT COUNT(*) FROM seen WHERE seen.round_key = rounds.round_key) FROM rounds WHERE shape IS NOT NULL"
        )
        return {int(key): (int(counts), int(ids)) for key, counts, ids in rows}

    def conservation(self, round_key: int, counts_per_report: int, reports: int | None) -> ConservationLaw:
        """``reports`` is the number kept when the ids were forgotten, else the ids are counted.

        One statement, so that reports which are committed meanwhile are on both sides or on none.
        """
        counted, seen = self._database.execute(
            "SELECT (SELECT COALESCE(SUM(n), 0) FROM counts WHERE round_key = ?), "
            "(SELECT COUNT(*) FROM seen WHERE round_key = ?)",
            (round_key, round_key),
        )[0]
        return ConservationLaw.of(int(counted), counts_per_report * int(seen if reports is None else reports))

    def forget_ids(self, round_key: int) -> None:
        """A published round takes no reports any more: its ids have no use."""
        for table in ("seen", "spent_tokens"):
            self._database.execute(f"DELETE FROM {table} WHERE round_key = ?", (round_key,))

    def forget_all(self, round_key: int) -> None:
        """A round that ended without a result: its counts have no use either."""
        self.forget_ids(round_key)
        self._database.execute("DELETE FROM counts WHERE round_key = ?", (round_key,))

    def _spend(self, key: int, arrivals: Sequence[Arrivals]) -> dict[bytes, bytes]:
        """Spend the tokens that came; by nonce, the id of the report that each pays for."""
        first: dict[bytes, bytes] = {}
        for arrival in arrivals:
            if arrival.token is not None:
                first.setdefault(arrival.token, arrival.ids[0])
        pairs = sorted(first.items())
        if self._database.dialect == "postgresql":
            content = b"".join(nonce + report_id for nonce, report_id in pairs)
            if pairs:
                self._database.execute(_SPEND_POSTGRES, (key, content, len(pairs)))
            rows = self._database.execute(_PAID_POSTGRES, (key, content, len(pairs))) if pairs else []
            return {bytes(nonce): bytes(report_id) for nonce, report_id in rows}
        paid_for: dict[bytes, bytes] = {}
        while pairs:
            size = next(size for size in _IDS_AT_ONCE if size <= len(pairs))
            chunk, pairs = pairs[:size], pairs[size:]
            places = ", ".join(["(?, ?, ?)"] * size)
            self._database.execute(
                f"INSERT INTO spent_tokens (round_key, nonce, report_id) VALUES {places} ON CONFLICT DO NOTHING",
                [value for pair in chunk for value in (key, *pair)],
            )
            rows = self._database.execute(
                f"SELECT nonce, report_id FROM spent_tokens WHERE round_key = ? AND nonce IN ({marks(chunk)})",
                (key, *(nonce for nonce, _ in chunk)),
            )
            paid_for.update(rows)
        return paid_for

    def _count(self, key: int, arrivals: Sequence[Arrivals]) -> None:
        first: dict[bytes, NDArray[np.int64]] = {}
        for arrival in arrivals:
            for position, report_id in enumerate(arrival.ids):
                first.setdefault(report_id, arrival.counters[position])
        new = self._see(key, list(first))
        if not new:
            return
        rows = first.values() if len(new) == len(first) else (first[report_id] for report_id in new)
        cells, n = np.unique(np.concatenate(list(rows)), return_counts=True)
        if self._database.dialect == "postgresql":
            self._database.execute(_ADD_POSTGRES, (key, self._shard, cells.tolist(), n.tolist()))
        else:
            pairs = zip(cells.tolist(), n.tolist(), strict=True)
            self._database.execute_many(_ADD, [(key, self._shard, cell, count) for cell, count in pairs])

    def _see(self, key: int, ids: list[bytes]) -> list[bytes]:
        """Those of the ids that were not there."""
        if self._database.dialect == "postgresql":
            added = self._database.execute(_SEE_POSTGRES, (key, b"".join(sorted(ids)), len(ids)))[0][0] or b""
            return [bytes(added[start : start + _ID_BYTES]) for start in range(0, len(added), _ID_BYTES)]
        new: list[bytes] = []
        ids = sorted(ids)
        while ids:
            size = next(size for size in _IDS_AT_ONCE if size <= len(ids))
            chunk, ids = ids[:size], ids[size:]
            places = ", ".join(["(?, ?)"] * len(chunk))
            values = [value for report_id in chunk for value in (key, report_id)]
            new += [
                row[0]
                for row in self._database.execute(
                    f"INSERT INTO seen (round_key, report_id) VALUES {places} ON CONFLICT DO NOTHING "
                    "RETURNING report_id",
                    values,
                )
            ]
        return new


class Contributions:
    """Sealed opt-in records: one per contributor and round, until they are shredded. Nothing here can open them.

    A contributor is a tag (``wire/sealed.py``). What was taken back leaves its tag with no bytes, so that nothing comes
    back under it: neither the same record, sent again by whoever has seen it, nor one that was held up on its way. A
    column says so, since whoever counts records need not be able to read them.
    """

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

    def count_by_round(self) -> dict[int, int]:
        rows = self._database.execute(
            "SELECT round_key, COUNT(*) FROM contributions WHERE withdrawn = 0 GROUP BY round_key"
        )
        return {int(key): int(n) for key, n in rows}

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
                (round_key, after, _RECORDS_AT_ONCE),
            )
            yield from ((bytes(tag), _content(sealed)) for tag, sealed in rows)
            if len(rows) < _RECORDS_AT_ONCE:
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
