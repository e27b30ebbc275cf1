"""One round: where it stands, what comes next, who took part, what it cost, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from searchblend.accounting.spend import Spend
from searchblend.accounting.totals import remaining
from searchblend.blender.release import GroupSizes
from searchblend.blender.result import ResultRow, StatedCheck
from searchblend.service.actions import JOB_ARROWS
from searchblend.service.console.state_words import REASONS, StateWords, deadline, words_of
from searchblend.service.round_model import settings_of, shape_of
from searchblend.service.task_settings import TaskSettings
from searchblend.store.audit import AuditEntry
from searchblend.store.ledger_book import Book
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import ENDED, NEXT, State
from searchblend.wire.release import decode_result

PER_PAGE: Final = 100
_WORKERS: Final = {arrow.job: arrow.worker for arrow in JOB_ARROWS}
_RESULT: Final = "result.json"
_WORDS: Final = {"round drafted": "Drafted", "opening asked for": "Opening asked for", "counts loaded": "Counts loaded"}


@dataclass(frozen=True)
class Live:
    """What changes while people look at it."""

    round: Round
    words: StateWords
    ends: int | None
    optin_records: int
    reports: int
    refusals: dict[str, int]
    counted: int
    expected: int
    working: str
    """the job that is under way, if one is"""
    attempts: int

    @property
    def refused(self) -> int:
        return sum(self.refusals.values())

    @property
    def arrived(self) -> int:
        """Everything that was taken or refused in this window."""
        taken = self.optin_records if self.round.state is State.OPTIN_OPEN else self.reports
        return taken + self.refused

    @property
    def worker(self) -> str:
        """Who has the job that is under way."""
        return _WORKERS.get(self.working, "service")

    @property
    def conserves(self) -> bool:
        return self.counted == self.expected

    @property
    def moves(self) -> bool:
        """Whether looking again makes sense."""
        return self.round.state not in ENDED

    @classmethod
    def read(cls, store: ServiceStore, round_: Round) -> Live:
        """Four statements, whatever the round holds."""
        reports = store.reports.n_seen(round_.key) if round_.reports is None else round_.reports
        per_report = shape_of(round_).counts_per_report if round_.shape else 0
        law = store.reports.conservation(round_.key, per_report, round_.reports)
        jobs = [(kind, attempts) for key, kind, attempts in store.jobs.waiting() if key == round_.key]
        return cls(
            round=round_,
            words=words_of(round_),
            ends=deadline(round_),
            optin_records=store.contributions.count(round_.key),
            reports=reports,
            refusals=store.reports.refusals(round_.key),
            counted=law.counted if round_.state is not State.ABORTED else 0,
            expected=law.expected if round_.state is not State.ABORTED else 0,
            working=jobs[0][0] if jobs else "",
            attempts=jobs[0][1] if jobs else 0,
        )


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
class Spent:
    """A population's budget as a round sees it."""

    population: str
    window: str
    window_epsilon: float
    lifetime_epsilon: float
    window_left: float | None
    lifetime_left: float | None
    window_cap: float | None
    lifetime_cap: float | None
    of_round: list[GroupDebit]
    """the debits of this round"""

    @classmethod
    def of(cls, book: Book, round_: Round, settings: TaskSettings) -> Spent:
        population, window = settings.population, round_.budget_window
        spends = {name: book.spends(population, name) for name in (window, None)}
        cap = book.cap
        budgets = {window: cap.window if cap else None, None: cap.lifetime if cap else None}

        def left(name: str | None) -> float | None:
            budget = budgets[name]
            if budget is None:
                return None
            return (
                remaining(spends[name], budget, planned=bool(cap and cap.planned))[0]
                if spends[name]
                else budget.epsilon
            )

        def limit(name: str | None) -> float | None:
            budget = budgets[name]
            return budget.epsilon if budget else None

        return cls(
            population=population,
            window=window,
            window_epsilon=sum(spend.epsilon for spend in spends[window]),
            lifetime_epsilon=sum(spend.epsilon for spend in spends[None]),
            window_left=left(window),
            lifetime_left=left(None),
            window_cap=limit(window),
            lifetime_cap=limit(None),
            of_round=[
                GroupDebit(
                    group="opt-in users" if entry.release_id.endswith("/opt-in") else "clients",
                    window=entry.window,
                    epsilon=entry.spend.epsilon,
                    delta=entry.spend.delta,
                    public=book.public_spends.get(entry.release_id),
                )
                for entry in book.entries.values()
                if entry.release_id in (f"{round_.name}/opt-in", f"{round_.name}/clients")
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
    """the way of a round: state, title, and ``done``, ``now`` or ``ahead``"""
    history: list[HistoryEvent]
    why: str
    """why it ended without a result"""
    spent: Spent
    result: PublishedResult | None
    files: dict[str, str]
    can_draft: bool
    optin_users: int | None
    """as far as is known: sealed records now, or those that were there when the window closed"""


def read_round(store: ServiceStore, task_name: str, number: int, *, first: int, containing: str) -> RoundPage:
    task = store.rounds.task(task_name)
    round_ = store.rounds.round(task.task, number)
    settings = settings_of(round_)
    files = store.artifacts.of_round(round_.key) if round_.state is State.PUBLISHED else {}
    content = store.artifacts.get(files[_RESULT]) if _RESULT in files else None
    history = [_event(row) for row in store.figures.history(task.task) if row.detail.get("round") == number]
    last = store.rounds.rounds(task.task)[-1]
    live = Live.read(store, round_)
    return RoundPage(
        task=task,
        round=round_,
        live=live,
        settings=settings,
        states=_way(round_, history),
        history=history,
        why=next((event.why for event in reversed(history) if event.why), ""),
        spent=Spent.of(store.ledger.book(), round_, settings),
        result=PublishedResult.of(content[0], first=first, containing=containing) if content else None,
        files=files,
        optin_users=live.optin_records
        or next((event.figures["records"] for event in history if "records" in event.figures), None),
        can_draft=last.number == number and round_.state in ENDED and not task.killed,
    )


def _event(entry: AuditEntry) -> HistoryEvent:
    detail = entry.detail
    moved = State(detail["to"]) if "to" in detail else None
    words = step_title(moved) if moved else _WORDS.get(entry.action, entry.action.capitalize())
    reason = detail.get("reason", "") if moved is State.ABORTED else ""
    figures = {name: detail[name] for name in ("records", "refused", "queries", "deleted", "reports") if name in detail}
    why, removed = REASONS.get(reason, reason), detail.get("removed", {})
    return HistoryEvent(entry.when, entry.actor, words, moved, why, figures, removed)


def step_title(state: State) -> str:
    from_step = {State.OPTIN_OPEN: "Opt-in window opened", State.CLIENT_OPEN: "Client window opened"}
    names = {
        State.OPTIN_CLOSED: "Opt-in window closed",
        State.HEADLIST_READY: "Head list drawn",
        State.SHREDDED: "Raw records shredded",
        State.REVIEWED: "List approved",
        State.CLIENT_GRACE: "Client window closed",
        State.CLOSED: "Last report taken",
        State.ESTIMATED: "Estimated",
        State.PUBLISHED: "Published",
        State.ABORTED: "Ended without a result",
        State.DRAFT: "Drafted",
    }
    return {**from_step, **names}[state]


def _way(round_: Round, history: list[HistoryEvent]) -> list[tuple[State, str, str]]:
    """The states that people care about, in order; an aborted round stops where it was."""
    shown = {
        State.DRAFT: "Draft",
        State.OPTIN_OPEN: "Opt-in",
        State.OPTIN_CLOSED: "Head list",
        State.SHREDDED: "Review",
        State.CLIENT_OPEN: "Clients",
        State.CLOSED: "Estimate",
        State.PUBLISHED: "Published",
    }
    order = [State.DRAFT]
    while order[-1] in NEXT:
        order.append(NEXT[order[-1]])
    moved = [event.state for event in history if event.state not in (None, State.ABORTED)]
    at = round_.state if round_.state is not State.ABORTED else (moved[-1] if moved else State.DRAFT)
    place = max(i for i, state in enumerate(shown) if order.index(state) <= order.index(at))
    ended = round_.state is State.ABORTED
    marks = [
        "done" if i < place else ("stopped" if ended else "now") if i == place else "ahead" for i in range(len(shown))
    ]
    if round_.state is State.PUBLISHED:
        marks[-1] = "done"
    return [(state, title, mark) for (state, title), mark in zip(shown.items(), marks, strict=True)]
