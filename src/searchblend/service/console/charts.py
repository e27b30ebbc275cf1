"""Lines with bands, laid out here: the drawing is complete without a script, and a script may make it move."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from searchblend.core.documents import JsonObject

WIDTH: Final = 760
HEIGHT: Final = 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 12, 34
_MOST_LABELS: Final = 9
COLOURS: Final = 8
"""how many lines can be told apart; the style sheet has as many"""

Value = float | None


@dataclass(frozen=True)
class Series:
    """One line; ``low`` and ``high`` are its band, if it has one. None is a gap."""

    name: str
    values: Sequence[Value]
    low: Sequence[Value] | None = None
    high: Sequence[Value] | None = None
    dashed: bool = False
    """for a line that may lie on another"""


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class DrawnChart:
    """A series as paths."""

    name: str
    colour: int
    lines: list[str]
    bands: list[str]
    dots: list[tuple[float, float]]
    dashed: bool


@dataclass(frozen=True)
class Chart:
    """What the template draws, and the same numbers for the script and the table."""

    title: str
    x_label: str
    y_label: str
    xs: Sequence[float]
    x_names: Sequence[str]
    series: Sequence[Series]
    form: Callable[[Value], str]
    """how a value is written"""
    unit: str
    """how the script writes it: ``percent`` or ``plain``"""
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def is_empty(self) -> bool:
        return not any(value is not None for series in self.series for value in series.values)

    @cached_property
    def top(self) -> float:
        values = [value for series in self.series for row in (series.values, series.high or ()) for value in row]
        most = max((value for value in values if value is not None and math.isfinite(value)), default=0.0)
        return _nice(most) if most > 0 else 1.0

    @property
    def y_ticks(self) -> list[Tick]:
        return [Tick(self._y(self.top * i / 4), self.form(self.top * i / 4)) for i in range(5)]

    @property
    def x_ticks(self) -> list[Tick]:
        every = max(1, math.ceil(len(self.xs) / _MOST_LABELS))
        return [Tick(self._x(x), name) for x, name in list(zip(self.xs, self.x_names, strict=True))[::every]]

    @property
    def plot(self) -> dict[str, float]:
        """The inner rectangle."""
        return {"left": _LEFT, "right": self.width - _RIGHT, "top": _TOP, "bottom": self.height - _BOTTOM}

    @cached_property
    def drawn(self) -> list[DrawnChart]:
        return [self._draw(i, series) for i, series in enumerate(self.series)]

    @property
    def data(self) -> JsonObject:
        """For the script."""
        return {
            "x": list(self.xs),
            "names": list(self.x_names),
            "unit": self.unit,
            "xLabel": self.x_label,
            "yLabel": self.y_label,
            "series": [
                {
                    "name": series.name,
                    "dashed": series.dashed,
                    "values": list(series.values),
                    "low": list(series.low) if series.low else None,
                    "high": list(series.high) if series.high else None,
                }
                for series in self.series
            ],
        }

    def _draw(self, i: int, series: Series) -> DrawnChart:
        lines, bands, dots = [], [], []
        for run in _runs(series.values):
            points = [(self._x(self.xs[j]), self._y(series.values[j] or 0.0)) for j in run]
            lines.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points))
            dots += [(round(x, 1), round(y, 1)) for x, y in points]
            if series.low and series.high:
                upper = [f"{self._x(self.xs[j]):.1f} {self._y(_or(series.high[j], series.values[j])):.1f}" for j in run]
                lower = [f"{self._x(self.xs[j]):.1f} {self._y(_or(series.low[j], series.values[j])):.1f}" for j in run]
                bands.append("M" + "L".join([*upper, *reversed(lower)]) + "Z")
        return DrawnChart(series.name, i % COLOURS, lines, bands, dots if len(self.xs) <= 30 else [], series.dashed)

    def _x(self, x: float) -> float:
        first, last = (self.xs[0], self.xs[-1]) if len(self.xs) else (0.0, 0.0)
        share = (x - first) / (last - first) if last > first else 0.5
        return _LEFT + share * (self.width - _LEFT - _RIGHT)

    def _y(self, value: float) -> float:
        value = min(max(value, 0.0), self.top)
        return _TOP + (1 - value / self.top) * (self.height - _TOP - _BOTTOM)


def _or(value: Value, other: Value) -> float:
    return value if value is not None else other or 0.0


def _runs(values: Sequence[Value]) -> list[list[int]]:
    """Stretches without a gap."""
    runs: list[list[int]] = [[]]
    for i, value in enumerate(values):
        if value is None or not math.isfinite(value):
            runs.append([])
        else:
            runs[-1].append(i)
    return [run for run in runs if run]


def _nice(most: float) -> float:
    """A round number not below it, a multiple of four of something short."""
    step = 10.0 ** math.floor(math.log10(most))
    return next(step * factor for factor in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if step * factor >= most)
