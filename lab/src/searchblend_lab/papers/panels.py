"""Curves over a setting: most figures of the paper are these. Cells in, a drawn figure and a tidy table out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MultipleLocator, NullFormatter

from searchblend.pages.plots import new_figure
from searchblend_lab.papers.algorithms import algorithm_named
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.experiment import (
    METHODS,
    NO_LIST,
    REACHED,
    Band,
    Finding,
    Outcome,
    Request,
    Table,
    hybrid,
    said_of_others,
    tidy,
)
from searchblend_lab.papers.people import People, people_named

SIZE_COLORS: Final = {10: "#1b6ca8", 25: "#c8553d", 50: "#2f7d4f", 100: "#7a4ea3", 500: "#b8860b"}
GROUP_COLORS: Final = {"blended": "#111111", "opt-in": "#c8553d", "clients": "#1b6ca8"}
METHOD_STYLES: Final[dict[str, Any]] = {"paper": "-", "best": (0, (4, 1.6))}
OTHER_STYLE: Final = (0, (1, 1.2))
X_LABELS: Final = {
    "optin": "users that opt in (%)",
    "epsilon": "privacy parameter ε",
    "query_fraction": "share of a client's budget for the query, $f_C$",
    "tilt": "how much the groups differ, sd of log odds",
    "fake": "fake clients (%)",
    "users": "users",
}
Y_LABELS: Final = {
    "query_l1": "L1 distance of the queries' shares",
    "ndcg": "NDCG",
}
PERCENT: Final = {"optin", "fake"}
_LEAST_ON_LOG: Final = 1e-9


@dataclass(frozen=True)
class Curve:
    """One line of a panel: a method, what is measured, and the settings that stay the same."""

    label: str
    method: str
    quantity: str
    color: str
    settings: Mapping[str, Scalar] = field(default_factory=dict, hash=False)
    banded: bool = True
    """whether the middle 80 % of the runs say something; not of a yes or no"""
    needs_list: bool = True
    """whether points where the head size is not reached are left out"""

    @property
    def settings_size(self) -> float:
        return float(self.settings.get("size") or 0)

    @property
    def style(self) -> Any:
        return METHOD_STYLES.get(self.method, OTHER_STYLE)


@dataclass(frozen=True)
class Panel:
    """One pair of axes: curves over ``x``."""

    title: str
    people: People
    x: str
    values: tuple[float, ...]
    curves: tuple[Curve, ...]
    ylabel: str
    yscale: str = "linear"
    xscale: str = "linear"
    published: tuple[tuple[str, tuple[tuple[float, float], ...]], ...] = ()
    """labelled points of the paper"""
    ylim: tuple[float | None, float | None] | None = None


@dataclass(frozen=True)
class Point:
    """One point of a curve."""

    x: float
    band: Band | None
    queries: float
    size: int

    @property
    def reached(self) -> bool:
        return self.queries >= REACHED * self.size


class Curves:
    """All points of all panels."""

    def __init__(self, points: Mapping[tuple[int, Curve], list[Point]], panels: Sequence[Panel]) -> None:
        self.all, self.panels = points, panels

    def points(self, panel: int, method: str, quantity: str, **settings: Scalar) -> list[Point]:
        """The points of the curve with these settings."""
        for (number, curve), points in self.all.items():
            same = all(curve.settings.get(name) == value for name, value in settings.items())
            if number == panel and curve.method == method and curve.quantity == quantity and same:
                return points
        raise KeyError((panel, method, quantity, settings))

    def means(self, panel: int, method: str, quantity: str, **settings: Scalar) -> dict[float, float]:
        """Mean by x, where the head size was reached."""
        points = self.points(panel, method, quantity, **settings)
        return {point.x: point.band.mean for point in points if point.band and point.reached}


Conclude = Callable[[Request, Curves], tuple[str, list[Finding]]]


@dataclass(frozen=True, kw_only=True)
class PanelExperiment:
    """An experiment that is a row of panels."""

    name: str
    title: str
    source: str
    about: str
    full_runs: int
    quick_runs: int
    panels: Callable[[Request], list[Panel]]
    conclusion: Conclude
    """what the curves show, and how it compares with the paper"""
    columns: int = 2
    printed: Callable[[Request, Results], list[str]] = lambda request, results: []

    def cells(self, request: Request) -> list[Cell]:
        return [
            cell
            for panel in self.panels(request)
            for curve in panel.curves
            for x in panel.values
            for cell in self._cells(request, panel, curve, x)
        ]

    def _cells(self, request: Request, panel: Panel, curve: Curve, x: float) -> list[Cell]:
        runs = self.n_runs(request, panel.people)
        settings = {**curve.settings, panel.x: int(x) if panel.x == "users" else x}
        return [hybrid(panel.people, curve.method, run, **settings) for run in range(runs)]

    def n_runs(self, request: Request, people: People) -> int:
        """People ten times as many have runs that vary less and cost more: half as many runs."""
        runs = request.n_runs(self.full_runs, self.quick_runs)
        return runs if request.runs or people.name != "yandex" else max(runs // 2, 2)

    def curves(self, request: Request, results: Results) -> Curves:
        """All points, for this experiment and for others that conclude from them."""
        panels = self.panels(request)
        points = {
            (number, curve): [self._point(request, panel, curve, x, results) for x in panel.values]
            for number, panel in enumerate(panels)
            for curve in panel.curves
        }
        return Curves(points, panels)

    def conclude(self, request: Request, results: Results) -> Outcome:
        curves = self.curves(request, results)
        rows = [
            _row(curves.panels[number], curve, point)
            for (number, curve), points in curves.all.items()
            for point in points
        ]
        text, findings = self._said(request, curves)
        tables = [own_table(request.algorithm, curves)] if request.algorithm else []
        figure = self._draw(curves.panels, curves.all)
        return Outcome(rows, figure, text, findings, tables, self.printed(request, results))

    def _said(self, request: Request, curves: Curves) -> tuple[str, list[Finding]]:
        """Other people than the paper's may reach too few lists for its sentences."""
        if request.people is None:
            return self.conclusion(request, curves)
        is_drawn = any(point.band and point.reached for points in curves.all.values() for point in points)
        try:
            if is_drawn and not request.log:
                return self.conclusion(request, curves)
        except (KeyError, ValueError, IndexError, ZeroDivisionError):
            is_drawn = False
        return said_of_others(people_named(request.people), nothing="" if is_drawn else NO_LIST), []

    def _point(self, request: Request, panel: Panel, curve: Curve, x: float, results: Results) -> Point:
        cells = self._cells(request, panel, curve, x)
        queries = results.values(cells, "queries")
        band = Band.of(results.values(cells, curve.quantity))
        size = int(dict(cells[0].settings)["size"] or 0) if curve.needs_list else 0
        return Point(x, band, sum(queries) / len(queries), size)

    def _draw(self, panels: Sequence[Panel], points: Mapping[tuple[int, Curve], list[Point]]) -> Figure:
        rows = -(-len(panels) // self.columns)
        figure, axes = new_figure(min(len(panels), self.columns), rows)
        for number, (panel, axis) in enumerate(zip(panels, axes, strict=False)):
            draw_panel(axis, panel, {curve: points[number, curve] for curve in panel.curves})
        for axis in axes[len(panels) :]:
            axis.set_visible(False)
        add_legend(figure, panels)
        return figure


def _row(panel: Panel, curve: Curve, point: Point) -> dict[str, Scalar]:
    where: dict[str, Scalar] = {"people": panel.people.label, "method": curve.method, panel.x: point.x}
    where |= {name: value for name, value in curve.settings.items() if name != "method"}
    return tidy(point.band, curve.quantity, **where) | {"mean_queries": point.queries, "reached": point.reached}


def draw_panel(axis: Axes, panel: Panel, points: Mapping[Curve, list[Point]]) -> None:
    factor = 100 if panel.x in PERCENT else 1
    for curve, of_curve in points.items():
        shown = [point if point.band and point.reached else None for point in of_curve]
        x = [factor * value for value in panel.values]
        nan = float("nan")
        means = [point.band.mean if point and point.band else nan for point in shown]
        lows = [point.band.low if point and point.band else nan for point in shown]
        highs = [point.band.high if point and point.band else nan for point in shown]
        axis.plot(x, means, color=curve.color, linestyle=curve.style, linewidth=1.5, marker="o", markersize=3)
        if curve.banded:
            least = _LEAST_ON_LOG if panel.yscale == "log" else -np.inf
            axis.fill_between(x, np.maximum(lows, least), highs, color=curve.color, alpha=0.13, linewidth=0)
    for label, published in panel.published:
        xs, ys = zip(*published, strict=True)
        axis.plot([factor * x for x in xs], ys, linestyle="none", **published_style(label))
    axis.set(xlabel=X_LABELS[panel.x], ylabel=panel.ylabel)
    axis.set_title(panel.title, fontsize=10, loc="left")
    if not any(point.band and point.reached for of_curve in points.values() for point in of_curve):
        axis.text(0.5, 0.5, "no list reached its size", ha="center", transform=axis.transAxes, color="#666666")
        return
    axis.set(xscale=panel.xscale, yscale=panel.yscale)
    if panel.yscale == "log":
        plain_log_ticks(axis.yaxis)
    if panel.xscale == "log" and panel.x in PERCENT:
        plain_log_ticks(axis.xaxis)
    if panel.x == "epsilon":
        axis.xaxis.set_major_locator(MultipleLocator(1))
    if panel.ylim:
        axis.set_ylim(*panel.ylim)
    elif panel.yscale == "linear" and panel.ylabel != "NDCG":
        axis.set_ylim(bottom=0)


def own_table(algorithm: str, curves: Curves) -> Table:
    """Someone's own algorithm beside ours: means over all points that all three reached."""
    rows = []
    for (number, curve), _ in curves.all.items():
        if curve.method != algorithm:
            continue
        means = {m: curves.means(number, m, curve.quantity, **curve.settings) for m in (algorithm, "paper", "best")}
        shared = [x for x in means[algorithm] if all(x in other for other in means.values())]
        shown = [f"{sum(m[x] for x in shared) / len(shared):.5f}" if shared else "–" for m in means.values()]
        what = ", ".join(f"{name} {value}" for name, value in curve.settings.items())
        rows.append((f"{curves.panels[number].title}: {curve.quantity}, {what}", *shown, str(len(shared))))
    name = algorithm_named(algorithm).name
    return Table(f"{name} beside ours, mean over points", ("", name, "paper", "best", "points"), tuple(rows))


def plain_log_ticks(axis: Axis) -> None:
    """0.002 and 0.005 between the powers of ten, written out."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def published_style(label: str) -> dict[str, Any]:
    marker = "D" if "BLENDER" in label else "s"
    return {"marker": marker, "markersize": 6, "markerfacecolor": "none", "markeredgecolor": "#cc0066", "zorder": 5}


def add_legend(figure: Figure, panels: Sequence[Panel]) -> None:
    """One legend for all panels: colours say what, line styles say which method, open marks are the paper's."""
    curves = sorted((curve for panel in panels for curve in panel.curves), key=lambda curve: curve.settings_size)
    colors = {curve.label: curve.color for curve in curves}
    styles = {curve.method: curve.style for curve in curves}
    handles = [Line2D([], [], color=color, marker="o", markersize=3, label=label) for label, color in colors.items()]
    handles += [
        Line2D([], [], color="#555555", linestyle=style, label=algorithm_label(method))
        for method, style in styles.items()
    ]
    labels = dict.fromkeys(label for panel in panels for label, _ in panel.published)
    handles += [Line2D([], [], linestyle="none", label=label, **published_style(label)) for label in labels]
    rows = -(-len(handles) // 6)
    figure.legend(
        handles=handles, loc="outside lower center", ncols=-(-len(handles) // rows), frameon=False, fontsize=9
    )


def algorithm_label(method: str) -> str:
    return method if method in METHODS else algorithm_named(method).name


def by_size(request: Request, people: People, quantity: str, sizes: Sequence[int] | None = None) -> tuple[Curve, ...]:
    """One curve per head size and method."""
    return tuple(
        Curve(f"head size {size}", method, quantity, SIZE_COLORS.get(size, "#444444"), {"size": size})
        for size in sizes or people.sizes
        for method in request.methods
    )


def by_group(request: Request, quantity: str, size: int) -> tuple[Curve, ...]:
    """Blended, opt-in alone and clients alone for the printed method, and the blend of the others."""
    groups = (("blended", quantity), ("opt-in", f"optin_{quantity}"), ("clients", f"client_{quantity}"))
    printed = [Curve(label, "paper", key, GROUP_COLORS[label], {"size": size}) for label, key in groups]
    others = [
        Curve("blended", method, quantity, GROUP_COLORS["blended"], {"size": size})
        for method in request.methods
        if method != "paper"
    ]
    return (*printed, *others)
