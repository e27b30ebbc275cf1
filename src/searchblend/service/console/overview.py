"""The first page: tasks, rounds in time, what waits for whom, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from searchblend.service.checkup import SHAPE_TROUBLE, STUCK_ATTEMPTS, conservation, overdue_shredding, settings_trouble
from searchblend.service.clock import DAY
from searchblend.service.console.words import StateWords, deadline, moment, percent, plain, span, words_of
from searchblend.service.round_model import settings_of
from searchblend.store.ledger_book import Book
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import ENDED, State

_MOST_REFUSED: Final = 0.05
_FEW_REPORTS: Final = 20
_NEAR_CAP: Final = 0.8
_SHOWN_ROUNDS: Final = 12
_TIMELINE_WIDTH: Final = 1000


@dataclass(frozen=True)
class Alert:
    """Something that the operator should look at."""

    level: str
    """``bad`` or ``warn``"""
    title: str
    detail: str
    link: str


@dataclass(frozen=True)
class Waiting:
    """A round that a person or a worker is to move on."""

    who: str
    task: Task
    round: Round
    words: StateWords
    ends: int | None


@dataclass(frozen=True)
class TimelineBar:
    """A stretch of a round on the timeline, in thousandths of its width."""

    x: float
    width: float
    kind: str
    label: str
    link: str


@dataclass(frozen=True)
class Lane:
    task: Task
    bars: list[TimelineBar]


@dataclass(frozen=True)
class TaskCard:
    task: Task
    rounds: int
    published: int
    latest: Round | None
    words: StateWords | None


@dataclass(frozen=True)
class Overview:
    cards: list[TaskCard]
    waiting: list[Waiting]
    alerts: list[Alert]
    lanes: list[Lane]
    ticks: list[tuple[float, int, str]]
    """place, moment and its name in UTC; the page says it in the reader's zone"""
    now_at: float


@dataclass(frozen=True)
class Figures:
    """All that the page is made of, read in a fixed number of statements."""

    tasks: list[Task]
    rounds: list[Round]
    counted: dict[int, tuple[int, int]]
    contributed: dict[int, int]
    refused: dict[int, dict[str, int]]
    signatures: dict[str, int]
    jobs: list[tuple[int, str, int]]
    book: Book
    unreadable: list[tuple[str, int]]
    """task and number of rounds in a state that this version does not know"""
    overdue: list[tuple[str, int, int]]
    """task, number and seconds of rounds whose raw records or key have outlived their deadline"""

    @classmethod
    def read(cls, store: ServiceStore, now: int) -> Figures:
        return cls(
            store.rounds.tasks(),
            store.rounds.rounds(),
            store.reports.counted_by_round(),
            store.contributions.count_by_round(),
            store.reports.refusals_by_round(),
            store.artifacts.manifest_ends(),
            store.jobs.waiting(),
            store.ledger.book(),
            store.rounds.unreadable(),
            overdue_shredding(store, now),
        )

    def of(self, task: Task) -> list[Round]:
        return [round_ for round_ in self.rounds if round_.task == task.task]


def overview(figures: Figures, now: int, role: str) -> Overview:
    """``role``: of who looks; what waits for them comes first."""
    names = {task.task: task for task in figures.tasks}
    open_rounds = [round_ for round_ in figures.rounds if round_.state not in ENDED]
    waiting = [
        Waiting(words_of(round_).who, names[round_.task], round_, words_of(round_), deadline(round_))
        for round_ in open_rounds
    ]
    lanes, ticks, now_at = _timeline(figures, now)
    return Overview(
        cards=[_card(figures, task) for task in figures.tasks],
        waiting=sorted(waiting, key=lambda entry: (entry.who != role, entry.who not in ("operator", "reviewer"))),
        alerts=list(alerts(figures, now)),
        lanes=lanes,
        ticks=ticks,
        now_at=now_at,
    )


def _card(figures: Figures, task: Task) -> TaskCard:
    rounds = figures.of(task)
    latest = rounds[-1] if rounds else None
    published = sum(round_.state is State.PUBLISHED for round_ in rounds)
    return TaskCard(task, len(rounds), published, latest, words_of(latest) if latest else None)


def alerts(figures: Figures, now: int) -> Iterator[Alert]:
    """Everything of the list that is so now; worst first."""
    names = {task.task: task.name for task in figures.tasks}
    for task, number, late in figures.overdue:
        yield Alert(
            "bad",
            "Shredding is overdue",
            f"{names[task]}, round {number}: raw records and their key should have been gone {span(late)} ago. "
            "Is the curator running?",
            f"/console/tasks/{task}/rounds/{number}",
        )
    yield from _unreadable_alerts(figures, names)
    for round_ in figures.rounds:
        where, link = f"{names[round_.task]}, round {round_.number}", round_link(round_)
        yield from _conservation_alert(figures, round_, where, link)
        yield from _refusal_alert(figures, round_, where, link)
    yield from _signature_alerts(figures, now)
    yield from _cap_alerts(figures, now)
    for key, kind, attempts in figures.jobs:
        if attempts > STUCK_ATTEMPTS:
            stuck = next((round_ for round_ in figures.rounds if round_.key == key), None)
            link = round_link(stuck) if stuck else "/console"
            yield Alert(
                "bad", "A job does not succeed", f"{kind}: {attempts} attempts; the server's log says why.", link
            )


def _unreadable_alerts(figures: Figures, names: Mapping[str, str]) -> Iterator[Alert]:
    for task in figures.tasks:
        if why := settings_trouble(task):
            detail = f"{task.name}: {why}. Was it made by another version? The other tasks go on without it."
            yield Alert("bad", "A task cannot be read", detail, "/console")
    for name, number in figures.unreadable:
        detail = f"{names[name]}, round {number}: is in a state that this version does not know."
        yield Alert("bad", "A round cannot be read", detail, "/console")


def _conservation_alert(figures: Figures, round_: Round, where: str, link: str) -> Iterator[Alert]:
    if not round_.shape or round_.state is State.ABORTED:
        return
    law = conservation(round_, figures.counted)
    if law is None:
        yield Alert("bad", "A round cannot be read", f"{where}: {SHAPE_TROUBLE}.", link)
    elif not law.holds:
        detail = (
            f"{where}: {law.counted:,} counts where {law.expected:,} are expected. The round will not be estimated."
        )
        yield Alert("bad", "Conservation check failed", detail, link)


def _refusal_alert(figures: Figures, round_: Round, where: str, link: str) -> Iterator[Alert]:
    if round_.state in ENDED:
        return
    refused = sum(figures.refused.get(round_.key, {}).values())
    taken = figures.counted.get(round_.key, (0, 0))[1] + figures.contributed.get(round_.key, 0)
    if refused >= _FEW_REPORTS and refused > _MOST_REFUSED * (refused + taken):
        share = refused / (refused + taken)
        yield Alert("warn", "Many messages are refused", f"{where}: {percent(share)} of {refused + taken:,}.", link)


def _signature_alerts(figures: Figures, now: int) -> Iterator[Alert]:
    for task in figures.tasks:
        expires, link = figures.signatures.get(task.task), f"/console/tasks/{task.task}"
        if task.killed:
            continue
        if expires is None:
            if now - task.created > 60:
                yield Alert("warn", "Never signed", f"{task.name}: is the publisher running?", link)
        elif expires - now < DAY:
            yield Alert(
                "bad" if expires <= now else "warn",
                "Signature near its end" if expires > now else "Signature has expired",
                f"{task.name}: devices stop trusting the manifest on {moment(expires)}. Is the publisher running?",
                link,
            )


def _cap_alerts(figures: Figures, now: int) -> Iterator[Alert]:
    for task in figures.tasks:
        if task.killed or settings_trouble(task):
            continue
        settings = settings_of(task)
        for scope, window in (("this window", settings.window_at(now)), ("a lifetime", None)):
            budget, left = figures.book.limit(window), figures.book.left(settings.population, window)
            if budget is None or left is None:
                continue
            if left < settings.epsilon or left < (1 - _NEAR_CAP) * budget.epsilon:
                detail = (
                    f"{task.name}: ε = {plain(left)} of {plain(budget.epsilon)} is left for {scope}; "
                    f"a round costs ε = {plain(settings.epsilon)} in each group."
                )
                yield Alert("warn", "Ledger near its cap", detail, "/console/budget")


def round_link(round_: Round) -> str:
    return f"/console/tasks/{round_.task}/rounds/{round_.number}"


def _timeline(figures: Figures, now: int) -> tuple[list[Lane], list[tuple[float, int, str]], float]:
    shown = {task.task: figures.of(task)[-_SHOWN_ROUNDS:] for task in figures.tasks}
    spans = [_stretches(round_, now) for rounds in shown.values() for round_ in rounds]
    moments = [at for stretches in spans for begin, end, _ in stretches for at in (begin, end)]
    if not moments:
        return [], [], 0.0
    begins, ends = min(moments), max([*moments, now])
    room = max((ends - begins) * 0.02, 1.0)
    first, last = begins - room, ends + room

    def x(at: float) -> float:
        return round(_TIMELINE_WIDTH * (at - first) / (last - first), 1)

    lanes = [
        Lane(
            task,
            [
                TimelineBar(
                    x(begin),
                    max(x(end) - x(begin), 3.0),
                    kind,
                    f"Round {round_.number}: {words_of(round_).title}",
                    round_link(round_),
                )
                for round_ in shown[task.task]
                for begin, end, kind in _stretches(round_, now)
            ],
        )
        for task in figures.tasks
        if shown[task.task]
    ]
    at = [int(first + (last - first) * i / 4) for i in range(5)]
    return lanes, [(x(tick), tick, name) for tick, name in zip(at, tick_names(at), strict=True)], x(now)


def tick_names(moments: Sequence[int]) -> list[str]:
    """Days, or where a day would stand there twice the times, with the day only where it changes; seconds if needed."""
    days, times = zip(*(moment(at).split(", ") for at in moments), strict=True)
    if len(set(days)) == len(days):
        return list(days)
    if len(set(zip(days, times, strict=True))) < len(times):
        times = tuple(time.replace(" UTC", f":{at % 60:02} UTC") for time, at in zip(times, moments, strict=True))
    return [
        time.removesuffix(" UTC") if i and day == days[i - 1] else f"{day.rpartition(' ')[0]}, {time}"
        for i, (day, time) in enumerate(zip(days, times, strict=True))
    ]


def _stretches(round_: Round, now: int) -> list[tuple[int, int, str]]:
    """From, to and kind: opt-in window, client window, ended; a draft or an abort is a mark where it happened."""
    stretches: list[tuple[int, int, str]] = []
    if round_.optin_closes is not None and not settings_trouble(round_):
        opened = round_.optin_closes - settings_of(round_).optin_seconds
        end = (
            round_.optin_closes
            if round_.state is State.OPTIN_OPEN
            else min(round_.optin_closes, round_.client_opens or round_.changed)
        )
        stretches.append((opened, max(end, opened), "optin"))
    if round_.client_opens is not None:
        end = round_.grace_until or round_.client_closes or now
        end = end if round_.state in (State.CLIENT_OPEN, State.CLIENT_GRACE) else min(end, round_.changed)
        stretches.append((round_.client_opens, max(end, round_.client_opens), "client"))
    if round_.state in ENDED or not stretches:
        kind = {State.PUBLISHED: "published", State.ABORTED: "aborted"}.get(round_.state, "draft")
        stretches.append((round_.changed, round_.changed, kind))
    return stretches
