"""The ledger for people: what was charged, both totals, and what the next round would cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlencode

from searchblend.accounting.spend import Spend
from searchblend.accounting.totals import BudgetCap, Totals, default_delta, total_of
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget
from searchblend.pages.charts import Chart, Series
from searchblend.service.checkup import settings_trouble
from searchblend.service.console.planner_page import question_near
from searchblend.service.console.words import plain
from searchblend.service.round_model import settings_of, tasks_now
from searchblend.store.ledger_book import Book, Entry, charged, planned_round
from searchblend.store.rounds import Task
from searchblend.store.service_store import ServiceStore

_POINTS: Final = 12
_SHOWN: Final = 60


@dataclass(frozen=True)
class Scope:
    """A window or the lifetime of a population."""

    name: str
    releases: int
    totals: Totals
    cap: Budget | None
    left: float | None
    public: Totals | None
    """of a client of every round, against those who see only what is published"""

    @property
    def used(self) -> float | None:
        """Share of the cap."""
        return None if self.cap is None or self.left is None else 1 - self.left / self.cap.epsilon


@dataclass(frozen=True)
class NextRound:
    """What one more round of a task would do."""

    task: Task
    epsilon: float
    delta: float
    window: str
    window_after: float
    lifetime_after: float
    allowed: bool
    forecast: str
    """the planner's sliders for such a round"""


@dataclass(frozen=True)
class PopulationBudget:
    population: str
    lifetime: Scope
    windows: list[Scope]
    chart: Chart
    entries: list[tuple[Entry, bool]]
    """newest first, and whether it was published"""
    n_entries: int


@dataclass(frozen=True)
class BudgetPage:
    cap: BudgetCap | None
    cap_words: list[str]
    planned: bool
    populations: list[PopulationBudget]
    next_rounds: list[NextRound]
    rows: int


def cap_of_form(form: Mapping[str, str]) -> BudgetCap:
    """What the form asks for; a limit whose two fields are empty is none."""
    limits = {}
    for name in ("per_window", "lifetime"):
        entered = [form.get(f"{name}_{part}", "").strip() for part in ("epsilon", "delta")]
        limits[name] = _limit(name, *entered) if any(entered) else None
    if not any(limits.values()):
        raise InvalidParameter("per_window", "expected a cap for each window, for a lifetime, or both")
    return BudgetCap(limits["per_window"], limits["lifetime"])


def _limit(name: str, epsilon: str, delta: str) -> Budget:
    try:
        values = float(epsilon), float(delta)
    except ValueError:
        values = 0.0, 0.0
    if not (0 < values[0] < math.inf and 0 < values[1] < 1):
        raise InvalidParameter(name, "expected ε above 0 and δ between 0 and 1, for example 8 and 1e-4")
    return Budget(*values)


def read_budget(store: ServiceStore) -> tuple[Book, list[Task]]:
    return store.ledger.book(), tasks_now(store)


def budget_page(book: Book, tasks: list[Task], now: int) -> BudgetPage:
    populations = list(dict.fromkeys(entry.population for entry in book.entries.values()))
    cap = book.cap
    words = []
    for name, budget in (("each window", cap.window if cap else None), ("a lifetime", cap.lifetime if cap else None)):
        if budget:
            words.append(f"ε = {plain(budget.epsilon)}, δ = {plain(budget.delta)} for {name}")
    return BudgetPage(
        cap=cap,
        cap_words=words,
        planned=bool(cap and cap.planned),
        populations=[_population(book, population) for population in populations],
        next_rounds=[_next_round(book, task, now) for task in tasks if not task.killed and not settings_trouble(task)],
        rows=book.length,
    )


def _population(book: Book, population: str) -> PopulationBudget:
    entries = [entry for entry in book.entries.values() if entry.population == population]
    windows = list(dict.fromkeys(entry.window for entry in entries))
    return PopulationBudget(
        population=population,
        lifetime=_scope(book, population, None),
        windows=[_scope(book, population, window) for window in reversed(windows[-_POINTS:])],
        chart=_chart(entries),
        entries=[(entry, entry.release_id in book.published) for entry in reversed(entries[-_SHOWN:])],
        n_entries=len(entries),
    )


def _scope(book: Book, population: str, window: str | None) -> Scope:
    spends = book.spends(population, window)
    left = book.left(population, window)
    in_public = book.spends_in_public(population, window)
    public = _totals(tuple(in_public)) if in_public != spends else None
    return Scope(window or "lifetime", len(spends), _totals(tuple(spends)), book.limit(window), left, public)


@lru_cache(maxsize=512)
def _totals(spends: tuple[Spend, ...]) -> Totals:
    """Loss distributions take a while; the same releases always add up to the same."""
    return total_of(spends, default_delta(spends))


def _chart(entries: list[Entry]) -> Chart:
    n, step = len(entries), 1
    while n > step * _POINTS:
        step *= 2  # so that most points stay where they were when a release is added, and are remembered
    places = sorted({1, *range(step, n + 1, step), n})
    totals = [_totals(tuple(charged(entries[:place]))) for place in places]
    return Chart(
        title="Total ε of a lifetime, charge by charge",
        x_label="charges",
        y_label="ε in all",
        xs=[float(place) for place in places],
        x_names=[str(place) for place in places],
        series=[
            Series("plain sum", [total.summed_epsilon for total in totals]),
            Series("privacy loss distributions", [total.loss_distribution_epsilon for total in totals], dashed=True),
        ],
        form=plain,
        unit="plain",
    )


def _next_round(book: Book, task: Task, now: int) -> NextRound:
    settings = settings_of(task)
    window = settings.window_at(now + settings.optin_seconds)  # of its first debit
    planned = planned_round(settings.population, window, settings.params.budget)
    after = {name: book.spends(settings.population, name, planned) for name in (window, None)}
    return NextRound(
        task=task,
        epsilon=settings.epsilon,
        delta=settings.delta,
        window=window,
        window_after=sum(entry.epsilon for entry in after[window]),
        lifetime_after=sum(entry.epsilon for entry in after[None]),
        allowed=(book.cap is not None or settings.uncapped) and book.exceeded_by(planned) is None,
        forecast=urlencode(asdict(question_near(settings))),
    )
