"""One round: where it stands, what comes next, who took part, what it cost, and what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from searchblend.accounting.spend import Spend
from searchblend.blender.release import GroupSizes
from searchblend.blender.result import ResultRow, StatedCheck
from searchblend.pages.charts import Chart, Series
from searchblend.service.actions import JOB_ARROWS
from searchblend.service.arrivals import ArrivalStep, read_arrivals, step_of
from searchblend.service.console.words import REASONS, StateWords, deadline, number, span, words_of
from searchblend.service.round_model import RoundNumbers, settings_of
from searchblend.service.task_settings import TaskSettings
from searchblend.store.audit import AuditEntry
from searchblend.store.ledger_book import Book
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import ENDED, State
from searchblend.wire.release import decode_result

PER_PAGE: Final = 100
_ARRIVALS_HEIGHT: Final = 170
_WORKERS: Final = {arrow.job: arrow.worker for arrow in JOB_ARROWS}
_RESULT: Final = "result.json"
_REACHED: Final = {
    State.DRAFT: "Drafted",
    State.OPTIN_OPEN: "Opt-in window opened",
    State.OPTIN_CLOSED: "Opt-in window closed",
    State.HEADLIST_READY: "Head list drawn",
    State.SHREDDED: "Raw records shredded",
    State.REVIEWED: "List approved",
    State.CLIENT_OPEN: "Client window opened",
    State.CLIENT_GRACE: "Client window closed",
    State.CLOSED: "Last report taken",
    State.ESTIMATED: "Estimated",
    State.PUBLISHED: "Published",
    State.ABORTED: "Ended without a result",
}
_STEPS: Final = {
    State.DRAFT: "Draft",
    State.OPTIN_OPEN: "Opt-in",
    State.OPTIN_CLOSED: "Head list",
    State.SHREDDED: "Review",
    State.CLIENT_OPEN: "Clients",
    State.CLOSED: "Estimate",
    State.PUBLISHED: "Published",
}
"""the states that people care about"""
_WORDS: Final = {"round drafted": "Drafted", "opening asked for": "Opening asked for", "counts loaded": "Counts loaded"}


@dataclass(frozen=True)
class Live:
    """What changes while people look at it."""

    round: Round
    numbers: RoundNumbers
    working: str
    """the job that is under way, if one is"""
    attempts: int

    @property
    def words(self) -> StateWords:
        return words_of(self.round)

    @property
    def ends(self) -> int | None:
        return deadline(self.round)

    @property
    def refused(self) -> int:
        return sum(self.numbers.refusals.values())

    @property
    def arrived(self) -> int:
        """Everything that was taken or refused in this window."""
        return self.refused + self.taken

    @property
    def taken(self) -> int:
        is_optin = self.round.state is State.OPTIN_OPEN
        return self.numbers.opt_in_records if is_optin else self.numbers.reports_counted

    @property
    def worker(self) -> str:
        """Who has the job that is under way."""
        return _WORKERS.get(self.working, "service")

    @property
    def moves(self) -> bool:
        """Whether looking again makes sense."""
        return self.round.state not in ENDED

    @classmethod
    def read(cls, store: ServiceStore, round_: Round) -> Live:
        jobs = [(kind, attempts) for key, kind, attempts in store.jobs.waiting() if key == round_.key]
        return cls(round_, RoundNumbers.read(store, round_), *(jobs[0] if jobs else ("", 0)))


@dataclass(frozen=True)
class GroupDebit:
    """What a round cost each person of one group."""

    group: str
    window: str
    epsilon: float
    delta: float
    public: Spend | None
    """against those who see only what is published, once it is"""


@dataclass(frozen=True)
class SpentIn:
    """A population's ε in a window or a lifetime."""

    epsilon: float
    cap: float | None
    left: float | None

    @classmethod
    def of(cls, book: Book, population: str, window: str | None) -> SpentIn:
        budget = book.limit(window)
        epsilon = sum(spend.epsilon for spend in book.spends(population, window))
        return cls(epsilon, budget.epsilon if budget else None, book.left(population, window))


@dataclass(frozen=True)
class Spent:
    """A population's budget as a round sees it."""

    in_window: SpentIn
    in_lifetime: SpentIn
    of_round: list[GroupDebit]
    """the debits of this round"""

    @classmethod
    def of(cls, book: Book, round_: Round, population: str) -> Spent:
        groups = {f"{round_.name}/opt-in": "opt-in users", f"{round_.name}/clients": "clients"}
        return cls(
            SpentIn.of(book, population, round_.budget_window),
            SpentIn.of(book, population, None),
            [
                GroupDebit(
                    groups[release_id],
                    entry.window,
                    entry.spend.epsilon,
                    entry.spend.delta,
                    book.public_spends.get(release_id),
                )
                for release_id, entry in book.entries.items()
                if release_id in groups
            ],
        )


@dataclass(frozen=True)
class PublishedResult:
    """What a published round says, one page of it."""

    groups: GroupSizes
    check: StatedCheck | None
    flagged: frozenset[str]
    rows: list[tuple[int, ResultRow]]
    """place in the whole list, and the query"""
    rest: ResultRow
    urls: dict[str, list[ResultRow]]
    n_rows: int
    first: int
    most: float

    @classmethod
    def of(cls, content: bytes, *, first: int, containing: str) -> PublishedResult:
        result = decode_result(content)
        listed = result.trends[:-1]
        wanted = [
            (place, row) for place, row in enumerate(listed, 1) if containing.lower() in (row.query or "").lower()
        ]
        first = max(0, min(first, len(wanted) - 1)) // PER_PAGE * PER_PAGE
        rows = wanted[first : first + PER_PAGE]
        shown = {row.query for _, row in rows}
        urls: dict[str, list[ResultRow]] = {}
        for row in result.records:
            if row.query is not None and row.query in shown and row.url is not None:
                urls.setdefault(row.query, []).append(row)
        check = result.group_check
        return cls(
            groups=result.groups,
            check=check,
            flagged=frozenset(check.flagged_queries) if check else frozenset(),
            rows=rows,
            rest=result.trends[-1],
            urls=urls,
            n_rows=len(wanted),
            first=first,
            most=max((row.interval[1] or 0.0 for row in listed), default=1.0) or 1.0,
        )


@dataclass(frozen=True)
class HistoryEvent:
    """One line of what happened to a round."""

    when: int
    who: str
    what: str
    state: State | None
    """that the round moved to"""
    why: str
    figures: Mapping[str, int]
    removed: Mapping[str, int]


@dataclass(frozen=True)
class RoundPage:
    task: Task
    round: Round
    live: Live
    settings: TaskSettings
    states: list[tuple[State, str, str]]
    """the steps of a round: state, title, and ``done``, ``now``, ``stopped`` or ``ahead``"""
    history: list[HistoryEvent]
    why: str
    """why it ended without a result"""
    spent: Spent
    result: PublishedResult | None
    files: Mapping[str, str]
    can_draft: bool
    optin_users: int | None
    """as far as is known: sealed records now, or those that were there when the window closed"""
    arrivals: Chart | None
    """from the second step of a window on"""


def read_round(store: ServiceStore, task_name: str, number: int, *, first: int, containing: str) -> RoundPage:
    task = store.rounds.task(task_name)
    round_ = store.rounds.round(task.task, number)
    settings = settings_of(round_)
    live = Live.read(store, round_)
    files = live.numbers.files
    content = store.artifacts.get(files[_RESULT]) if _RESULT in files else None
    history = [_event(row) for row in store.audit.of_task(task.task) if row.detail.get("round") == number]
    last = store.rounds.rounds(task.task)[-1]
    return RoundPage(
        task=task,
        round=round_,
        live=live,
        settings=settings,
        states=_progress(round_, history),
        history=history,
        why=next((event.why for event in reversed(history) if event.why), ""),
        spent=Spent.of(store.ledger.book(), round_, settings.population),
        result=PublishedResult.of(content[0], first=first, containing=containing) if content else None,
        files=files,
        optin_users=live.numbers.opt_in_records
        or next((event.figures["records"] for event in history if "records" in event.figures), None),
        can_draft=last.number == number and round_.state in ENDED and not task.killed,
        arrivals=_arrivals(read_arrivals(store, round_, live.taken), step_of(round_)),
    )


def _arrivals(steps: Sequence[ArrivalStep], seconds: int) -> Chart | None:
    if len(steps) < 2:
        return None
    begins = [datetime.fromtimestamp(step.begins, UTC) for step in steps]
    return Chart(
        title=f"Messages taken in each {span(seconds)}",
        x_label="begin of each step, UTC",
        y_label="messages",
        xs=[float(step.begins) for step in steps],
        x_names=[f"{at.day} {at:%b %H:%M}" for at in begins],
        series=[Series("messages", [step.n for step in steps])],
        form=number,
        unit="plain",
        height=_ARRIVALS_HEIGHT,
    )


def _event(entry: AuditEntry) -> HistoryEvent:
    detail = entry.detail
    moved = State(detail["to"]) if "to" in detail else None
    words = _REACHED[moved] if moved else _WORDS.get(entry.action, entry.action.capitalize())
    reason = detail.get("reason", "") if moved is State.ABORTED else ""
    figures = {
        name: detail[name]
        for name in ("records", "refused", "queries", "deleted", "reports", "hours")
        if name in detail
    }
    why, removed = REASONS.get(reason, reason), detail.get("removed", {})
    return HistoryEvent(entry.when, entry.actor, words, moved, why, figures, removed)


def _progress(round_: Round, history: list[HistoryEvent]) -> list[tuple[State, str, str]]:
    """Every step with its mark; an aborted round stops where it was."""
    order = list(State)
    is_aborted = round_.state is State.ABORTED
    reached = [event.state for event in history if event.state not in (None, State.ABORTED)] or [State.DRAFT]
    at = order.index(reached[-1] if is_aborted else round_.state)
    place = max(i for i, state in enumerate(_STEPS) if order.index(state) <= at)
    mark = "stopped" if is_aborted else "done" if round_.state is State.PUBLISHED else "now"
    marks = ["done"] * place + [mark] + ["ahead"] * (len(_STEPS) - place - 1)
    return [(state, title, mark) for (state, title), mark in zip(_STEPS.items(), marks, strict=True)]
