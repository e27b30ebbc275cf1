"""What the HTTP interface answers, one class per document; the OpenAPI schemas are read off these classes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Annotated

from searchblend.accounting.totals import BudgetCap
from searchblend.core.documents import JsonObject, Matching, Natural, Sha256, encode
from searchblend.core.errors import InvalidParameter
from searchblend.service.review import Hit
from searchblend.service.round_model import RoundNumbers
from searchblend.service.task_settings import TaskSettings
from searchblend.store.artifacts import TrendRow
from searchblend.store.audit import AuditEntry, AuditRow
from searchblend.store.ledger_book import Book
from searchblend.store.rounds import Round, Task
from searchblend.store.states import State

TaskId = Annotated[str, Matching("[0-9a-f]{32}", "32 hexadecimal digits")]


@dataclass(frozen=True)
class WhoAmI:
    """Name and role of a token."""

    name: str
    role: str


@dataclass(frozen=True)
class TaskView:
    """A task. Settings that this version cannot read are shown as they are stored."""

    task: TaskId
    name: str
    killed: bool
    created: int
    settings: TaskSettings | JsonObject

    @classmethod
    def of(cls, task: Task) -> TaskView:
        return cls(task.task, task.name, task.killed, task.created, task.settings)


@dataclass(frozen=True)
class TaskList:
    """All tasks."""

    tasks: list[TaskView]


@dataclass(frozen=True)
class RoundView:
    """Where a round stands."""

    task: TaskId
    round: Natural
    state: State
    version: Natural
    budget_window: str
    optin_closes: int | None
    shred_by: int | None
    client_closes: int | None
    grace_until: int | None
    reports: int | None
    changed: int

    @classmethod
    def of(cls, round_: Round) -> RoundView:
        same = {each.name: getattr(round_, each.name) for each in fields(RoundView) if each.name != "round"}
        return cls(round=round_.number, **same)


@dataclass(frozen=True)
class RoundList:
    """The rounds of a task."""

    rounds: list[RoundView]


@dataclass(frozen=True)
class RoundDetail(RoundNumbers, RoundView):
    """A round with its public numbers."""

    @classmethod
    def with_numbers(cls, round_: Round, numbers: RoundNumbers) -> RoundDetail:
        return cls(**vars(RoundView.of(round_)), **vars(numbers))


@dataclass(frozen=True)
class Codes:
    """Enrolment codes, shown once."""

    codes: list[str]


@dataclass(frozen=True)
class CandidateList:
    """The private list that a reviewer decides on: pairs of a query and its URLs, and what the filters caught."""

    head: list[list[str | list[str]]]
    hits: list[Hit]
    opt_in_users: Natural


@dataclass(frozen=True)
class Blocklist:
    """Words that no published entry may contain."""

    words: list[str]

    def __post_init__(self) -> None:
        if not all(word.isprintable() for word in self.words):
            raise InvalidParameter("words", "expected printable strings")


@dataclass(frozen=True)
class BlocklistSize:
    """How many words the blocklist has now."""

    words: Natural


@dataclass(frozen=True)
class Debit:
    """What one release about one population cost."""

    release_id: str
    population: str
    window: str
    epsilon: float
    delta: float
    mechanism: str
    published: bool


@dataclass(frozen=True)
class LedgerView:
    """All debits, the cap, and the hash of the newest row."""

    cap: BudgetCap | None
    debits: list[Debit]
    head: Sha256

    @classmethod
    def of(cls, book: Book) -> LedgerView:
        debits = [
            Debit(
                entry.release_id,
                entry.population,
                entry.window,
                entry.spend.epsilon,
                entry.spend.delta,
                entry.spend.mechanism,
                entry.release_id in book.published,
            )
            for entry in book.entries.values()
        ]
        return cls(book.cap, debits, book.head)


@dataclass(frozen=True)
class AuditView:
    """The audit log; each row's hash covers the row before it."""

    rows: list[AuditEntry]


def audit_lines(rows: Iterable[AuditRow]) -> Iterator[str]:
    """One JSON object a line, in order: what log collectors read. A line has all that its hash is made of."""
    for row in rows:
        yield json.dumps(encode(row.entry), ensure_ascii=False, sort_keys=True) + "\n"


@dataclass(frozen=True)
class BatchAnswer:
    """How many reports of a batch were accepted, and why the others were refused, by position."""

    accepted: Natural
    refused: Mapping[str, str]


@dataclass(frozen=True)
class _OfRound:
    round: Natural


@dataclass(frozen=True)
class TrendView(TrendRow, _OfRound):
    """One query of one published round."""


@dataclass(frozen=True)
class TrendList:
    """All published trends of a task."""

    trends: list[TrendView]


@dataclass(frozen=True)
class RoundFiles:
    """The published files of a round: name and SHA-256."""

    files: Mapping[str, Sha256]
