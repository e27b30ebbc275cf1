"""Charts of result pages and of the console, as SVG. Nothing of them is drawn anywhere else.

Figures of a result page follow the page: positions are shares of its width, text keeps its size, colours are its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, Final

from searchblend.core.visible import visible
from searchblend.pages.layout import foreign

_ROW: Final = 22
_PLOT: Final = 240
_WIDTH: Final = 1000
_TICKS: Final = 4
_FEW_POWERS: Final = 50
_POINTS: Final = 400
"""Of a curve; more cannot be told apart."""
WIDTH: Final = 760
HEIGHT: Final = 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 12, 34
_MOST_LABELS: Final = 9
COLOURS: Final = 8
"""Of lines that can be told apart; the style sheet has as many."""
Value = float | None


@dataclass(frozen=True)
class IntervalRow:
    """One row: a value with its interval, and where other estimates of the same lie (by class of the mark)."""

    name: str
    value: float
    low: float
    high: float
    shown: str
    marks: Sequence[tuple[str, float]] = ()


@dataclass(frozen=True)
class Mark:
    """A mark and what it means, for the legend."""

    kind: str
    meaning: str


def interval_rows(caption: str, bars: Sequence[IntervalRow], marks: Sequence[Mark], *, unit: float, suffix: str) -> str:
    """Values with intervals, one below the other; the axis starts at 0 and is labelled in ``unit``s."""
    if not bars:
        return ""
    largest = max(max(bar.high, *(position for _, position in bar.marks), bar.value) for bar in bars)
    ticks = nice_ticks(largest)
    end = max(ticks[-1], largest)
    grid = "".join(_vertical(tick / end, _ROW) for tick in ticks)
    rows = "".join(_row(bar, end, grid) for bar in bars)
    labels = "".join(_label(tick / end, f"{_tick(tick / unit)}{suffix}") for tick in ticks)
    legend = "".join(f"<li>{_legend_mark(mark.kind)}{escape(mark.meaning)}</li>" for mark in marks)
    return (
        f'<figure class="panel"><figcaption>{escape(caption)}</figcaption><ul class="legend">{legend}</ul>'
        f'<div class="rows">{rows}<div class="name"></div><svg height="18" aria-hidden="true">{labels}</svg>'
        '<div class="value"></div></div></figure>'
    )


def _row(bar: IntervalRow, end: float, grid: str) -> str:
    return (
        f'<div class="name" title="{escape(visible(bar.name))}">{foreign(bar.name)}</div>'
        f'<svg height="{_ROW}" aria-hidden="true">{grid}{_bar(bar, end)}</svg>'
        f'<div class="value">{escape(bar.shown)}</div>'
    )


def _label(share: float, text: str, y: int = 14) -> str:
    return f'<text x="{_percent(share)}" y="{y}" text-anchor="{_anchor(share)}">{escape(text)}</text>'


def _bar(bar: IntervalRow, end: float) -> str:
    middle = _ROW // 2
    low, high = max(bar.low, 0) / end, max(bar.high, 0) / end
    interval = f'<line class="interval" x1="{_percent(low)}" x2="{_percent(high)}" y1="{middle}" y2="{middle}"/>'
    others = "".join(_mark(kind, position / end, middle) for kind, position in bar.marks)
    return interval + others + _mark("dot", bar.value / end, middle)


def _mark(kind: str, position: float, y: int) -> str:
    x = _percent(min(max(position, 0), 1))
    if kind == "true":
        return f'<line class="true" x1="{x}" x2="{x}" y1="{y - 8}" y2="{y + 8}"/>'
    return f'<circle class="{kind}" cx="{x}" cy="{y}" r="{5 if kind == "dot" else 4}"/>'


def _legend_mark(kind: str) -> str:
    if kind == "interval":
        drawn = '<line class="interval" x1="5" x2="15" y1="8" y2="8"/>'
    elif kind == "true":
        drawn = '<line class="true" x1="10" x2="10" y1="1" y2="15"/>'
    else:
        drawn = f'<circle class="{kind}" cx="10" cy="8" r="{5 if kind == "dot" else 4}"/>'
    return f'<svg width="20" height="16" aria-hidden="true">{drawn}</svg>'


def rank_curve(caption: str, values: Sequence[tuple[float, float, float]], *, unit: float, suffix: str) -> str:
    """(value, low, high) in falling order against their rank, both axes logarithmic."""
    positive = [value for value, _, _ in values if value > 0]
    if len(positive) < 2:
        return ""
    bottom = 10 ** math.floor(math.log10(min(positive)))
    top = max(high for _, _, high in values)
    span = math.log10(top / bottom) or 1.0
    ranks = math.log10(len(values))

    def at(rank: int, value: float) -> str:
        height = math.log10(max(value, bottom) / bottom) / span
        return f"{_WIDTH * math.log10(rank) / ranks:.1f},{_PLOT * (1 - height):.1f}"

    numbered = [(rank, values[rank - 1]) for rank in spread_ranks(len(values))]
    line = " ".join(at(rank, value) for rank, (value, _, _) in numbered)
    upper = " ".join(at(rank, high) for rank, (_, _, high) in numbered)
    lower = " ".join(at(rank, low) for rank, (_, low, _) in reversed(numbered))
    heights = [(tick, _PLOT * (1 - math.log10(tick / bottom) / span)) for tick in log_ticks(bottom, top)]
    grid = "".join(f'<line class="grid" x1="0" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>' for _, y in heights)
    labels = "".join(f'<text x="2" y="{y - 4:.1f}">{_tick(tick / unit)}{suffix}</text>' for tick, y in heights)
    below = "".join(_label(math.log10(rank) / ranks, f"{rank:,.0f}.", _PLOT + 16) for rank in log_ticks(1, len(values)))
    return (
        f'<figure class="panel"><figcaption>{escape(caption)}</figcaption>'
        f'<svg class="plot" height="{_PLOT + 22}" role="img" aria-label="{escape(caption)}">'
        f'<svg x="0" y="0" width="100%" height="{_PLOT}" viewBox="0 0 {_WIDTH} {_PLOT}" preserveAspectRatio="none">'
        f'{grid}<polygon class="band" points="{upper} {lower}"/><polyline class="curve" points="{line}"/></svg>'
        f"{labels}{below}</svg></figure>"
    )


def shares_bar(caption: str, named: float, label: str, rest: str) -> str:
    """One bar: what the release names, and what it does not."""
    named = min(max(named, 0), 1)
    return (
        f'<figure class="panel"><figcaption>{escape(caption)}</figcaption>'
        f'<svg class="plot" height="46" role="img" aria-label="{escape(label)}, {escape(rest)}">'
        f'<rect class="rest" x="0" y="0" width="100%" height="20" rx="4"/>'
        f'<rect class="part" x="0" y="0" width="{_percent(named)}" height="20" rx="4"/>'
        f'<text x="0" y="38">{escape(label)}</text><text x="100%" y="38" text-anchor="end">{escape(rest)}</text>'
        "</svg></figure>"
    )


def nice_ticks(largest: float) -> list[float]:
    """0 and a few round steps up to ``largest`` or just beyond it."""
    if not largest > 0:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(largest / _TICKS))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if largest / (power * factor) <= _TICKS)
    return [step * i for i in range(math.ceil(largest / step) + 1)]


def spread_ranks(n: int) -> list[int]:
    """All ranks, or as many as a logarithmic axis can show: the first and the last are always there."""
    if n <= _POINTS:
        return list(range(1, n + 1))
    return sorted({round(n ** (i / (_POINTS - 1))) for i in range(_POINTS)})


def log_ticks(bottom: float, top: float) -> list[float]:
    """Powers of ten from ``bottom``, itself one, to ``top``; where those are few, 2 and 5 times them too."""
    factors = (1, 2, 5) if top / bottom < _FEW_POWERS else (1,)
    powers = range(math.floor(math.log10(top / bottom)) + 1)
    return [bottom * factor * 10**i for i in powers for factor in factors if bottom * factor * 10**i <= top]


def _tick(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _vertical(share: float, height: int) -> str:
    return f'<line class="grid" x1="{_percent(share)}" x2="{_percent(share)}" y1="0" y2="{height}"/>'


def _anchor(share: float) -> str:
    return "start" if share < 0.02 else "end" if share > 0.98 else "middle"


def _percent(share: float) -> str:
    return f"{100 * share:.3f}%"


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
class SeriesPaths:
    """A series as paths."""

    name: str
    colour: int
    lines: list[str]
    bands: list[str]
    dots: list[tuple[float, float]]
    dashed: bool


@dataclass(frozen=True)
class Chart:
    """Lines with bands: complete without a script, and a script may make it move.

    What the console's template draws, and the same numbers for the script and the table.
    """

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
    def drawn(self) -> list[SeriesPaths]:
        return [self._draw(i, series) for i, series in enumerate(self.series)]

    @property
    def data(self) -> dict[str, Any]:
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

    def _draw(self, i: int, series: Series) -> SeriesPaths:
        lines, bands, dots = [], [], []
        for run in _runs(series.values):
            points = [(self._x(self.xs[j]), self._y(series.values[j] or 0.0)) for j in run]
            lines.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points))
            dots += [(round(x, 1), round(y, 1)) for x, y in points]
            if series.low and series.high:
                upper = [f"{self._x(self.xs[j]):.1f} {self._y(_or(series.high[j], series.values[j])):.1f}" for j in run]
                lower = [f"{self._x(self.xs[j]):.1f} {self._y(_or(series.low[j], series.values[j])):.1f}" for j in run]
                bands.append("M" + "L".join([*upper, *reversed(lower)]) + "Z")
        return SeriesPaths(series.name, i % COLOURS, lines, bands, dots if len(self.xs) <= 30 else [], series.dashed)

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
