"""Tasks and their rounds. A round changes state by compare-and-set, with an audit row, in one transaction."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, NamedTuple

from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter
from searchblend.store.audit import AuditLog
from searchblend.store.database import Database, marks
from searchblend.store.errors import StoreError, UnknownName, WrongState
from searchblend.store.states import PAST_RAW, State, may_follow

_TASK_ID: Final = re.compile(r"[0-9a-f]{32}")
_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""characters that show nothing, though ``str.isprintable`` accepts them: fillers, variation selectors"""
_FLOOR: Final = "least round number of "
_LOCK: Final = 60042404
"""apart from other users of advisory locks"""


@dataclass(frozen=True)
class Task:
    """A question that is asked round after round of the same population."""

    task: str
    """32 hexadecimal digits"""
    name: str
    settings: JsonObject
    killed: bool
    created: int


@dataclass(frozen=True)
class Round:
    """One round as it was read; changing it needs this version to be still the current one."""

    key: int
    task: str
    number: int
    state: State
    version: int
    settings: JsonObject
    budget_window: str
    """of the latest debit; before the first, of the drafting"""
    opened_by: str | None
    public_key: bytes | None
    key_signature: str | None
    """the curator's, over the round as it was opened"""
    optin_closes: int | None
    shred_by: int | None
    client_opens: int | None
    client_closes: int | None
    grace_until: int | None
    shape: JsonObject | None
    reports: int | None
    """how many reports were counted; set when the round is closed"""
    tokens: str | None
    """JSON of what pays for a report, if anything does; set when the round is opened to clients"""
    changed: int

    @property
    def name(self) -> str:
        return f"{self.task}/{self.number}"

    def __repr__(self) -> str:
        return f"Round({self.name}, {self.state}, version {self.version})"


_FIELDS: Final = tuple(each.name for each in fields(Round))
_ROUND: Final = f"SELECT round_{', '.join(_FIELDS)} FROM rounds"
_CHANGEABLE: Final = frozenset(_FIELDS) - {"key", "task", "number", "state", "version", "settings", "changed"}
_TASK: Final = "SELECT task, name, settings, killed, created FROM tasks"


class KeyFacts(NamedTuple):
    """What decides whether a round's private key is needed; none of it can be unreadable."""

    state: str
    shred_by: int | None
    """None also for what is not a number: SQLite keeps a string in a column of numbers"""


class RawLeft(NamedTuple):
    """What the row of a round says of its deadline; None for what is not a number, as above."""

    task: str
    number: int
    settings: JsonObject
    optin_closes: int | None
    shred_by: int | None


class Rounds:
    """Tasks and rounds in a database.

    A row that this version cannot read is its own task's trouble: damaged settings are empty ones, which no use of
    them accepts, and a round in an unknown state is left out of lists (``unreadable`` names it).
    """

    def __init__(self, database: Database, audit: AuditLog) -> None:
        self._database, self._audit = database, audit

    def add_task(self, task: str, name: str, settings: JsonObject, *, actor: str, now: int) -> Task:
        """A new task. Its name must look like no other's: people choose tasks by what they see."""
        _check_task_name(name)
        with self._database.transaction():
            if any(task == other.task or _appearance(name) == _appearance(str(other.name)) for other in self.tasks()):
                raise StoreError("a task with this name or id already exists")
            self._database.execute(
                "INSERT INTO tasks (task, name, settings, created) VALUES (?, ?, ?, ?)",
                (task, name, json.dumps(settings, sort_keys=True), now),
            )
            self._audit.append(actor, "task created", now, {"task": task})
        return self.task(task)

    def tasks(self) -> list[Task]:
        return [_task(row) for row in self._database.execute(f"{_TASK} ORDER BY created, task")]

    def task(self, name: str) -> Task:
        """By id, else by name."""
        order = "ORDER BY CASE WHEN task = ? THEN 0 ELSE 1 END"
        rows = self._database.execute(f"{_TASK} WHERE task = ? OR name = ? {order}", (name, name, name))
        if not rows:
            raise UnknownName("no such task")
        return _task(rows[0])

    def kill(self, task: str, *, actor: str, now: int) -> None:
        """Stop a task for good: the manifest says so, and nothing is taken any more."""
        with self._database.transaction():
            self._database.execute("UPDATE tasks SET killed = 1 WHERE task = ?", (task,))
            self._audit.append(actor, "task killed", now, {"task": task})

    def add_round(self, task: str, settings: JsonObject, budget_window: str, *, actor: str, now: int) -> Round:
        with self._database.transaction():
            key = self._database.execute("SELECT COALESCE(MAX(round_key), 0) + 1 FROM rounds")[0][0]
            number = self._next_number(task)
            self._database.execute(
                "INSERT INTO rounds (round_key, task, number, state, version, settings, budget_window, changed) "
                "VALUES (?, ?, ?, ?, 1, ?, ?, ?)",
                (key, task, number, State.DRAFT, json.dumps(settings, sort_keys=True), budget_window, now),
            )
            self._audit.append(actor, "round drafted", now, {"task": task, "round": number})
        return self.round(task, number)

    def round(self, task: str, number: int) -> Round:
        return self._one("task = ? AND number = ?", (task, number))

    def by_key(self, key: int) -> Round:
        return self._one("round_key = ?", (key,))

    def _one(self, condition: str, values: tuple[Any, ...]) -> Round:
        rows = self._database.execute(f"{_ROUND} WHERE {condition}", values)
        if not rows:
            raise UnknownName("no such round")
        return _round(rows[0])

    def rounds(self, task: str | None = None, states: Collection[State] = tuple(State)) -> list[Round]:
        of_task, values = (" AND task = ?", (task,)) if task is not None else ("", ())
        rows = self._database.execute(
            f"{_ROUND} WHERE state IN ({marks(states)}){of_task} ORDER BY task, number", (*states, *values)
        )
        return [_round(row) for row in rows]

    def unreadable(self) -> list[tuple[str, int]]:
        """Task and number of rounds whose state is none of this version's."""
        rows = self._database.execute(
            f"SELECT task, number FROM rounds WHERE state NOT IN ({marks(State)}) ORDER BY task, number", tuple(State)
        )
        return [(task, int(number)) for task, number in rows]

    def key_facts(self, task: str, number: int) -> KeyFacts | None:
        rows = self._database.execute(
            "SELECT state, shred_by FROM rounds WHERE task = ? AND number = ?", (task, number)
        )
        return KeyFacts(rows[0][0], _number(rows[0][1])) if rows else None

    def raw_left(self) -> list[RawLeft]:
        """Rounds of which raw records or the private key may be left, and what says until when they may be.

        The state is compared as a string: a round that cannot be read still has its deadline.
        """
        rows = self._database.execute(
            "SELECT task, number, settings, optin_closes, shred_by FROM rounds "
            f"WHERE state NOT IN ({marks(PAST_RAW)}) "
            "OR EXISTS (SELECT 1 FROM jobs WHERE jobs.round_key = rounds.round_key AND kind = 'shred') "
            "OR EXISTS (SELECT 1 FROM contributions WHERE contributions.round_key = rounds.round_key) "
            "ORDER BY task, number",
            tuple(PAST_RAW),
        )
        return [
            RawLeft(task, int(number), _object(text), _number(closes), _number(shred_by))
            for task, number, text, closes, shred_by in rows
        ]

    def published(self, name: str) -> tuple[Task, tuple[int, int]]:
        """A task, and what changes whenever one of its rounds is published: how many are, and the newest."""
        task = self.task(name)
        n, newest = self._database.execute(
            "SELECT COUNT(*), COALESCE(MAX(round_key), 0) FROM rounds WHERE task = ? AND state = ?",
            (task.task, State.PUBLISHED.value),
        )[0]
        return task, (int(n), int(newest))

    def skip_numbers(self, n: int) -> None:
        """Leave out the next numbers of every task: after a restore some of them may have been used."""
        for task in self.tasks():
            floor = self._next_number(task.task) + n
            self._database.execute(
                "INSERT INTO documents (round_key, name, content) VALUES (0, ?, ?) "
                "ON CONFLICT (round_key, name) DO UPDATE SET content = excluded.content",
                (f"{_FLOOR}{task.task}", str(floor).encode()),
            )

    def _next_number(self, task: str) -> int:
        rows = self._database.execute("SELECT COALESCE(MAX(number), 0) + 1 FROM rounds WHERE task = ?", (task,))
        floors = self._database.execute(
            "SELECT content FROM documents WHERE round_key = 0 AND name = ?", (f"{_FLOOR}{task}",)
        )
        return max(int(rows[0][0]), int(bytes(floors[0][0])) if floors else 1)

    def lock(self, round_: Round) -> None:
        """Wait for reports that are being committed; none is taken until this transaction ends."""
        if self._database.dialect == "postgresql":
            self._database.execute(f"SELECT pg_advisory_xact_lock({_LOCK}, CAST(? AS integer))", (round_.key,))

    def advance(
        self,
        before: Round,
        to: State,
        *,
        actor: str,
        now: int,
        detail: JsonObject | None = None,
        **changes: Any,
    ) -> Round:
        """Take one arrow, if the round is still as it was read; call it inside the transaction of its consequences."""
        if not may_follow(before.state, to):
            raise WrongState(f"round {before.number}: cannot go from {before.state} to {to}")
        note = {"from": before.state, "to": to, **(detail or {})}
        return self._write(before, to, actor=actor, now=now, what="round moved", detail=note, changes=changes)

    def amend(
        self, before: Round, *, actor: str, now: int, what: str, detail: JsonObject | None = None, **changes: Any
    ) -> Round:
        """Change a round without moving it, if it is still as it was read.

        Args:
            before: The round as it was read.
            actor: Who changes it.
            now: When.
            what: Its name in the audit log.
            detail: What else the audit log keeps of it.
            changes: New values of columns.
        """
        return self._write(before, before.state, actor=actor, now=now, what=what, detail=detail or {}, changes=changes)

    def _write(
        self,
        before: Round,
        to: State,
        *,
        actor: str,
        now: int,
        what: str,
        detail: JsonObject,
        changes: JsonObject,
    ) -> Round:
        unknown = set(changes) - _CHANGEABLE
        if unknown:
            raise StoreError(f"round: cannot change {', '.join(sorted(unknown))}")
        values = {name: json.dumps(value) if name == "shape" and value else value for name, value in changes.items()}
        assignments = "".join(f", {name} = ?" for name in values)
        with self._database.transaction():
            self.lock(before)
            rows = self._database.execute(
                f"UPDATE rounds SET state = ?, version = version + 1, changed = ?{assignments} "
                "WHERE round_key = ? AND state = ? AND version = ? RETURNING version",
                (to, now, *values.values(), before.key, before.state, before.version),
            )
            if not rows:
                raise WrongState(f"round {before.number}: another caller has moved it on")
            self._audit.append(actor, what, now, {"task": before.task, "round": before.number, **detail})
            return self.by_key(before.key)


def holds_open(
    database: Database,
    round_key: int,
    *,
    states: Collection[State],
    until: Literal["optin_closes", "grace_until"],
    now: int,
) -> bool:
    """Whether a round takes messages now; its state stays as it is until this transaction ends.

    Any number of transactions may hold a round open at once; ``Rounds.lock`` waits for them. SQLite has one writer at a
    time. In PostgreSQL it is a lock by the round's key and not by its row: locking a row needs the right to change it,
    and whoever takes reports has no business with that.

    A row that cannot be read is a round that takes nothing, and no error: messages of other rounds are in the same
    transaction.
    """
    if database.dialect == "postgresql":
        database.execute(f"SELECT pg_advisory_xact_lock_shared({_LOCK}, CAST(? AS integer))", (round_key,))
    rows = database.execute(
        f"SELECT state, {until}, killed FROM rounds JOIN tasks ON tasks.task = rounds.task WHERE round_key = ?",
        (round_key,),
    )
    if not rows:
        return False
    state, deadline, killed = rows[0]
    if state not in states or killed:
        return False
    return deadline is None or (isinstance(deadline, int) and now < deadline)


def _check_task_name(name: str) -> None:
    if not name.isprintable() or name != name.strip() or _BLANK.search(name):
        raise InvalidParameter("name", "expected one line without invisible characters, and no space at either end")
    if _TASK_ID.fullmatch(_appearance(name)):
        raise InvalidParameter("name", "expected a name that does not look like an id (32 hexadecimal digits)")


def _appearance(name: str) -> str:
    """The same for names that differ in width, case or spaces alone, or in how an accent is written."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).split())


def _task(row: tuple[Any, ...]) -> Task:
    task, name, settings, killed, created = row
    return Task(task, name, _object(settings), bool(killed), created)


def _round(row: tuple[Any, ...]) -> Round:
    values = dict(zip(_FIELDS, row, strict=True))
    try:
        state = State(values["state"])
    except ValueError:
        raise StoreError(f"round {values['number']}: is in a state that this version does not know") from None
    shape = (_object(values["shape"]) or None) if values["shape"] else None
    return Round(**{**values, "state": state, "settings": _object(values["settings"]), "shape": shape})


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _object(content: str) -> JsonObject:
    """A JSON object; an empty one for anything else, or what could not be shown again (NaN, half a character)."""
    try:
        document = json.loads(content)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
