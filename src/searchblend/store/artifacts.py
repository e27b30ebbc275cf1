"""What is published: immutable files under their own SHA-256, manifests, trends; and a round's inner documents."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any, Final

from searchblend.core.documents import encode
from searchblend.store.database import Database, marks

_TO_WIPE: Final = "to wipe"
"""the inner document that is there while something was dropped since the log was emptied"""


@dataclass(frozen=True)
class TrendRow:
    """One query of one published round; ``query`` is None for everything that is not listed."""

    place: int
    query: str | None
    probability: float | None
    low: float | None
    high: float | None
    variance: float | None
    optin: float | None
    client: float | None
    optin_weight: float | None
    influence: float | None
    """by how much one fabricated report can move the probability"""


_TREND: Final = ", ".join(each.name for each in fields(TrendRow))
"""the columns of a trend"""
_GATEWAY_KEYS: Final = "SELECT configuration, ends FROM gateway_keys"


class Artifacts:
    """Published files and inner documents in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, content: bytes, media_type: str) -> str:
        """Store a file; its name is the SHA-256 of its bytes."""
        name = hashlib.sha256(content).hexdigest()
        self._database.execute(
            "INSERT INTO artifacts (sha256, media_type, content) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (name, media_type, content),
        )
        return name

    def get(self, sha256: str) -> tuple[bytes, str] | None:
        rows = self._database.execute("SELECT content, media_type FROM artifacts WHERE sha256 = ?", (sha256,))
        return (bytes(rows[0][0]), rows[0][1]) if rows else None

    def size(self, sha256: str) -> int:
        """How many bytes a stored file has; 0 if there is none."""
        rows = self._database.execute("SELECT LENGTH(content) FROM artifacts WHERE sha256 = ?", (sha256,))
        return int(rows[0][0]) if rows else 0

    def attach(self, round_key: int, files: Mapping[str, str]) -> None:
        """Name artifacts of a round."""
        for name, sha256 in files.items():
            self._database.execute(
                "INSERT INTO round_artifacts (round_key, name, sha256) VALUES (?, ?, ?)", (round_key, name, sha256)
            )

    def of_round(self, round_key: int) -> dict[str, str]:
        rows = self._database.execute(
            "SELECT name, sha256 FROM round_artifacts WHERE round_key = ? ORDER BY name", (round_key,)
        )
        return dict(rows)

    def files(self, task: str) -> dict[int, dict[str, tuple[str, int]]]:
        """Published files of a task's rounds, by round key and name: SHA-256 and size."""
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

    def keep(self, round_key: int, name: str, content: bytes) -> None:
        """An inner document of a round, replaced if there is one."""
        self._database.execute(
            "INSERT INTO documents (round_key, name, content) VALUES (?, ?, ?) "
            "ON CONFLICT (round_key, name) DO UPDATE SET content = excluded.content",
            (round_key, name, content),
        )

    def kept(self, round_key: int, name: str) -> bytes | None:
        rows = self._database.execute(
            "SELECT content FROM documents WHERE round_key = ? AND name = ?", (round_key, name)
        )
        return bytes(rows[0][0]) if rows else None

    def keep_json(self, round_key: int, name: str, document: object) -> None:
        """An inner document of JSON; objects are encoded by their class."""
        self.keep(round_key, name, json.dumps(encode(document)).encode())

    def kept_json(self, round_key: int, name: str) -> Any:
        """What ``keep_json`` kept; None if there is no such document."""
        content = self.kept(round_key, name)
        return None if content is None else json.loads(content)

    def kept_under(self, round_key: int, prefix: str) -> dict[str, bytes]:
        """All whose names begin so."""
        rows = self._database.execute(
            "SELECT name, content FROM documents WHERE round_key = ? AND substr(name, 1, ?) = ?",
            (round_key, len(prefix), prefix),
        )
        return {name: bytes(content) for name, content in rows}

    def drop(self, round_key: int, name: str) -> None:
        """Remove an inner document. On SQLite its bytes stay in the log beside the file until ``wipe`` has run."""
        self._database.execute("DELETE FROM documents WHERE round_key = ? AND name = ?", (round_key, name))
        if self._database.dialect == "sqlite":
            self.keep(0, _TO_WIPE, secrets.token_bytes(8))

    def wipe(self) -> int:
        """SQLite: empty the log, so that what was dropped is in no file. Asked again until no one reads meanwhile.

        How many times: 0 or 1. PostgreSQL's log is not ours to empty (docs/explanation/threat-model.md).
        """
        mark = self.kept(0, _TO_WIPE) if self._database.dialect == "sqlite" else None
        if mark is None or self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
            return 0
        self._database.execute(
            "DELETE FROM documents WHERE round_key = 0 AND name = ? AND content = ?", (_TO_WIPE, mark)
        )
        return 1

    def add_manifest(self, task: str, sequence: int, expires: int, content: bytes) -> None:
        self._database.execute(
            "INSERT INTO manifests (task, sequence, expires, content) VALUES (?, ?, ?, ?)",
            (task, sequence, expires, content),
        )

    def manifest(self, task: str) -> tuple[int, int, bytes] | None:
        """Sequence, expiry and bytes of the newest one."""
        rows = self._database.execute(
            "SELECT sequence, expires, content FROM manifests WHERE task = ? ORDER BY sequence DESC LIMIT 1", (task,)
        )
        return (int(rows[0][0]), int(rows[0][1]), bytes(rows[0][2])) if rows else None

    def manifest_ends(self) -> dict[str, int]:
        """When the newest manifest of each task expires."""
        rows = self._database.execute("SELECT task, MAX(expires) FROM manifests GROUP BY task")
        return {task: int(expires) for task, expires in rows}

    def record_gateway_keys(self, configurations: Mapping[bytes, int], now: int) -> int:
        """Put key configurations of a gateway on record, each until a time, and take off those whose time is over.

        How many are new. One that is on record keeps its time.
        """
        known = {bytes(row[0]): int(row[1]) for row in self._database.execute(_GATEWAY_KEYS)}
        over = [(configuration,) for configuration, ends in known.items() if ends <= now]
        new = [row for row in configurations.items() if known.get(row[0], now) <= now < row[1]]
        if over:
            self._database.execute_many("DELETE FROM gateway_keys WHERE configuration = ?", over)
        if new:
            statement = "INSERT INTO gateway_keys (configuration, ends) VALUES (?, ?) ON CONFLICT DO NOTHING"
            self._database.execute_many(statement, new)
        return len(new)

    def drop_gateway_keys(self, configurations: Iterable[bytes]) -> None:
        for configuration in configurations:
            self._database.execute("DELETE FROM gateway_keys WHERE configuration = ?", (configuration,))

    def gateway_keys(self, now: int) -> list[bytes]:
        """The key configurations that devices may seal requests to, those that last longest first."""
        rows = self._database.execute(f"{_GATEWAY_KEYS} ORDER BY ends DESC, configuration")
        return [bytes(configuration) for configuration, ends in rows if ends > now]

    def add_trends(self, round_key: int, rows: Iterable[TrendRow]) -> None:
        self._database.execute_many(
            f"INSERT INTO trends (round_key, {_TREND}) VALUES (?, {marks(fields(TrendRow))})",
            [(round_key, *astuple(row)) for row in rows],
        )

    def trends(self, task: str) -> list[tuple[int, TrendRow]]:
        """Round number and row of every published round of a task, oldest first."""
        rows = self._database.execute(
            f"SELECT number, {_TREND} FROM trends JOIN rounds ON rounds.round_key = trends.round_key "
            "WHERE rounds.task = ? AND rounds.state = 'PUBLISHED' ORDER BY number, place",
            (task,),
        )
        return [(row[0], TrendRow(*row[1:])) for row in rows]

    def lists(self, keys: Sequence[int]) -> dict[int, list[TrendRow]]:
        """The published rows of the rounds with these keys, best first."""
        return {key: [] for key in keys} | self._trends(f"trends.round_key IN ({marks(keys)})", keys)

    def lines(self, task: str, queries: Sequence[str]) -> dict[int, list[TrendRow]]:
        """The published rows of these queries in every round of a task, by round key."""
        condition = f"rounds.task = ? AND rounds.state = 'PUBLISHED' AND trends.query IN ({marks(queries)})"
        return self._trends(condition, (task, *queries))

    def _trends(self, condition: str, values: Sequence[int | str]) -> dict[int, list[TrendRow]]:
        rows = self._database.execute(
            f"SELECT rounds.round_key, {_TREND} FROM trends JOIN rounds ON rounds.round_key = trends.round_key "
            f"WHERE {condition} ORDER BY trends.round_key, place",
            values,
        )
        by_round: dict[int, list[TrendRow]] = {}
        for key, *columns in rows:
            by_round.setdefault(int(key), []).append(TrendRow(*columns))
        return by_round
