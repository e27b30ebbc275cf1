"""What a round would give, before anyone is asked. The simulation itself comes from whoever starts the service."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from searchblend.core.documents import decode
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import MANY_RECORDS
from searchblend.pages.charts import Chart, Series
from searchblend.service.console.words import number, percent
from searchblend.service.task_settings import TaskSettings
from searchblend.wire.manifest import MOST_RECORDS

EPSILONS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
_MOST_SEARCHERS: Final = 50_000
METHODS: Final = {"best": "method best", "paper": "method paper"}


@dataclass(frozen=True)
class PlannerQuestion:
    """The sliders."""

    users: int = 100_000
    optin_percent: float = 5.0
    epsilon: float = 4.0
    delta_exponent: int = 5
    max_head_queries: int = 50
    records_per_optin: int = MOST_RECORDS

    def __post_init__(self) -> None:
        for slider in SLIDERS:
            value = getattr(self, slider.name)
            if not slider.least <= value <= slider.most:
                raise InvalidParameter(slider.name, f"expected {slider.least:g} to {slider.most:g}")

    @property
    def delta(self) -> float:
        return 10.0**-self.delta_exponent

    @property
    def simulated_records(self) -> int:
        """Of an opt-in user: one where there are too many of them to draw one by one while the operator waits."""
        return 1 if self.users * self.optin_percent / 100 > _MOST_SEARCHERS else self.records_per_optin

    @classmethod
    def of_form(cls, form: Mapping[str, str]) -> PlannerQuestion:
        values: dict[str, float] = {}
        for slider in SLIDERS:
            if entered := form.get(slider.name, "").strip():
                try:
                    values[slider.name] = float(entered) if slider.step < 1 else int(float(entered))
                except (ValueError, OverflowError):
                    raise InvalidParameter(slider.name, "expected a number") from None
        return decode(cls, values)


@dataclass(frozen=True)
class Slider:
    name: str
    label: str
    least: float
    most: float
    step: float
    unit: str


SLIDERS: Final = (
    Slider("users", "People in all", 5_000, 2_000_000, 5_000, ""),
    Slider("optin_percent", "Opt-in share", 0.5, 30, 0.5, "%"),
    Slider("epsilon", "ε for each group", 0.5, 8, 0.5, ""),
    Slider("delta_exponent", "δ = 10 to the minus", 4, 9, 1, ""),
    Slider("max_head_queries", "Longest list, M", 10, 500, 10, "queries"),
    Slider("records_per_optin", "Records of an opt-in user, method best", 1, MANY_RECORDS, 1, ""),
)

Curve = Sequence[Mapping[str, float] | None]
"""for each ε a {mean, low, high}, or None where most lists would be empty, or without that query"""
Forecast = Mapping[str, Mapping[str, Mapping[str, Curve]]]
"""``curves``: method → figure → curve"""
Planner = Callable[[PlannerQuestion, Sequence[float]], Forecast]


@dataclass(frozen=True)
class PlannerPage:
    question: PlannerQuestion
    charts: list[Chart]
    chosen: list[tuple[str, list[str]]]
    methods: list[str]


_FIGURES: Final = (
    ("head_queries", "Queries in the list", "queries", number),
    ("covered", "Share of all searches that they make up", "share", percent),
    ("within_1", "± of the most frequent query, as a part of its share", "±", percent),
    ("within_10", "± of the tenth query, as a part of its share", "±", percent),
)
"""what a round gives; ± is half of a 95 % interval"""


def planner_page(question: PlannerQuestion, forecast: Forecast) -> PlannerPage:
    epsilons = asked_epsilons(question)
    charts = [
        Chart(
            title=f"{title} over ε",
            x_label="ε for each group",
            y_label=label,
            xs=epsilons,
            x_names=[f"{epsilon:g}" for epsilon in epsilons],
            series=[_series(words, forecast["curves"][method][name]) for method, words in METHODS.items()],
            form=form,
            unit="percent" if form is percent else "plain",
        )
        for name, title, label, form in _FIGURES
    ]
    place = epsilons.index(question.epsilon)
    chosen = [
        (title, [_words(forecast["curves"][method][name][place], form) for method in METHODS])
        for name, title, _, form in _FIGURES
    ]
    return PlannerPage(question, [drawn for drawn in charts if not drawn.is_empty], chosen, list(METHODS.values()))


def question_near(settings: TaskSettings) -> PlannerQuestion:
    """The sliders as near as they come to a task: a round of as many people as it expects."""
    wanted = {
        "users": settings.expected_clients + settings.min_optin,
        "optin_percent": 100 * settings.min_optin / (settings.expected_clients + settings.min_optin),
        "epsilon": settings.epsilon,
        "delta_exponent": -math.log10(settings.delta),
        "max_head_queries": settings.max_head_queries,
        "records_per_optin": settings.records_per_optin,
    }
    near = {
        slider.name: min(max(round(wanted[slider.name] / slider.step) * slider.step, slider.least), slider.most)
        for slider in SLIDERS
    }
    return PlannerQuestion.of_form({name: str(value) for name, value in near.items()})


def asked_epsilons(question: PlannerQuestion) -> list[float]:
    return sorted({*EPSILONS, question.epsilon})


def _series(name: str, bands: Sequence[Mapping[str, float] | None]) -> Series:
    def column(figure: str) -> list[float | None]:
        return [band[figure] if band else None for band in bands]

    return Series(name, column("mean"), column("low"), column("high"))


def _words(band: Mapping[str, float] | None, form: Callable[[float | None], str]) -> str:
    if band is None:
        return "not listed"
    return f"{form(band['mean'])} ({form(band['low'])} to {form(band['high'])})"
