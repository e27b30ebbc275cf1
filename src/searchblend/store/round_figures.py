"""Numbers about many rounds in one statement each: what pages show must not cost more as rounds add up."""

from __future__ import annotations

from collections.abc import Sequence

from searchblend.store.artifacts import TREND, TrendRow
from searchblend.store.audit import AuditEntry, AuditRow
from searchblend.store.database import Database, marks


class RoundFigures:
    """Reads only. Keys of the answers are round keys, unless said otherwise."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def counted(self) -> dict[int, tuple[int, int]]:
        """Sum of counts and number of report ids of rounds that have a head list; both of one moment."""
        rows = self._database.execute(
            "SELECT round_key, (SELECT COALESCE(SUM(n), 0) FROM counts WHERE counts.round_key = rounds.round_key), "
            "(SELECT COUNT(*) FROM seen WHERE seen.round_key = rounds.round_key) FROM rounds WHERE shape IS NOT NULL"
        )
        return {int(key): (int(counts), int(ids)) for key, counts, ids in rows}

    def contributed(self) -> dict[int, int]:
        """Sealed records that are there now."""
        rows = self._database.execute(
            "SELECT round_key, COUNT(*) FROM contributions WHERE withdrawn = 0 GROUP BY round_key"
        )
        return {int(key): int(n) for key, n in rows}

    def refused(self) -> dict[int, dict[str, int]]:
        """How many messages were refused, by reason."""
        refusals: dict[int, dict[str, int]] = {}
        for key, reason, n in self._database.execute("SELECT round_key, reason, n FROM refusals ORDER BY reason"):
            refusals.setdefault(int(key), {})[reason] = int(n)
        return refusals

    def signatures(self) -> dict[str, int]:
        """When the newest manifest of each task expires."""
        rows = self._database.execute("SELECT task, MAX(expires) FROM manifests GROUP BY task")
        return {task: int(expires) for task, expires in rows}

    def history(self, task: str) -> list[AuditEntry]:
        """What the audit log says about a task, oldest first."""
        rows = self._database.execute(
            "SELECT position, body, previous, hash FROM audit WHERE body LIKE ? ORDER BY position",
            (f'%"task":"{task}"%',),
        )
        return [AuditRow(*row).entry for row in rows]

    def lists(self, keys: Sequence[int]) -> dict[int, list[TrendRow]]:
        """The published rows of these rounds, best first."""
        return {key: [] for key in keys} | self._trends(f"trends.round_key IN ({marks(keys)})", keys)

    def lines(self, task: str, queries: Sequence[str]) -> dict[int, list[TrendRow]]:
        """The published rows of these queries in every round of a task."""
        condition = f"rounds.task = ? AND rounds.state = 'PUBLISHED' AND trends.query IN ({marks(queries)})"
        return self._trends(condition, (task, *queries))

    def _trends(self, condition: str, values: Sequence[int | str]) -> dict[int, list[TrendRow]]:
        rows = self._database.execute(
            f"SELECT rounds.round_key, {TREND} FROM trends JOIN rounds ON rounds.round_key = trends.round_key "
            f"WHERE {condition} ORDER BY trends.round_key, place",
            values,
        )
        by_round: dict[int, list[TrendRow]] = {}
        for key, *columns in rows:
            by_round.setdefault(int(key), []).append(TrendRow(*columns))
        return by_round

    def files(self, task: str) -> dict[int, dict[str, tuple[str, int]]]:
        """Published files of a task's rounds by name: SHA-256 and size."""
        rows = self._database.execute(
            "SELECT round_artifacts.round_key, name, artifacts.sha256, LENGTH(content) FROM round_artifacts "
            "JOIN artifacts ON artifacts.sha256 = round_artifacts.sha256 "
            "JOIN rounds ON rounds.round_key = round_artifacts.round_key WHERE rounds.task = ?",
            (task,),
        )
        files: dict[int, dict[str, tuple[str, int]]] = {}
        for key, name, sha256, size in rows:
            files.setdefault(int(key), {})[name] = (sha256, int(size))
        return files
