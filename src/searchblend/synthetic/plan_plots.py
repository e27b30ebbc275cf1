"""Plots for publication. Only here is Matplotlib loaded, which comes with the extra ``plots``.

Without ``pyplot``: a notebook's own choice of how figures are shown stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from matplotlib import figure as figures
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from searchblend.core.errors import OutputError, UsageError
from searchblend.core.visible import visible
from searchblend.synthetic.plan import Band, MethodForecast

COLORS: Final = {"best": "#0b6e4f", "paper": "#b3541e"}
_MOST: Final = 0.5
"""of the runs"""
_RANK_STYLES: Final = ("-", "--", "-.", ":")
SUFFIXES: Final = (".png", ".svg")
_BARS: Final = 20
_LONGEST_NAME: Final = 40


class Figure(figures.Figure):
    """A figure that a notebook shows by itself."""

    def _repr_png_(self) -> bytes:
        content = BytesIO()
        self.savefig(content, format="png", dpi=100)
        return content.getvalue()


def new_figure(columns: int = 1, rows: int = 1) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(5.2 * columns, 3.8 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", alpha=0.25)
    return figure, axes


def check_suffix(path: Path) -> None:
    """Refuse a plot that could not be drawn, before the work is done."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: expected a file name that ends in {' or '.join(SUFFIXES)}")


def save(figure: Figure, path: Path) -> None:
    check_suffix(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


def plan_figure(epsilons: Sequence[float], curves: Mapping[str, Sequence[MethodForecast]], title: str) -> Figure:
    """What users want over ε: queries listed, searches covered, ± at fixed ranks; bands are the middle 80 % of runs."""
    figure, (lengths, covered, exact) = new_figure(3)
    for method, forecasts in curves.items():
        draw_band(lengths, epsilons, [forecast.head_queries for forecast in forecasts], method)
        draw_band(covered, epsilons, [_percent(forecast.covered) for forecast in forecasts], method)
    for forecasts in curves.values():
        for place in _drawn_ranks(curves["best"]):
            _draw_rank(exact, epsilons, forecasts, place)
    lengths.set(xlabel="ε", ylabel="queries listed", ylim=(0, None))
    covered.set(xlabel="ε", ylabel="searches they make up, %", ylim=(0, None))
    exact.set(xlabel="ε", ylabel="± of a query's share, % of it", yscale="log")
    exact.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    exact.yaxis.set_major_formatter(ScalarFormatter())
    exact.yaxis.set_minor_formatter(NullFormatter())
    lengths.legend(frameon=False, title="method")
    exact.legend(frameon=False, title="true rank")
    figure.suptitle(title, fontsize=11)
    return figure


def _percent(band: Band) -> Band:
    return Band(100 * band.mean, 100 * band.low, 100 * band.high)


def _drawn_ranks(forecasts: Sequence[MethodForecast]) -> list[int]:
    """Places of the ranks that at least one ε lists in most runs."""
    places = range(len(forecasts[0].ranks))
    return [place for place in places if any(forecast.ranks[place].listed >= _MOST for forecast in forecasts)]


def _draw_rank(axis: Axes, epsilons: Sequence[float], forecasts: Sequence[MethodForecast], place: int) -> None:
    """Half of the 95 % interval as a part of the true share, where most runs list the query."""
    ranks = [forecast.ranks[place] for forecast in forecasts]
    values = [
        100 * rank.plus_minus.mean / rank.share if rank.plus_minus and rank.listed >= _MOST else float("nan")
        for rank in ranks
    ]
    method = forecasts[0].method
    label = f"{ranks[0].rank}" if method == "best" else None
    axis.plot(epsilons, values, _RANK_STYLES[place], marker="o", markersize=4, color=COLORS[method], label=label)


def draw_band(axis: Axes, x: Sequence[float], bands: Sequence[Band | None], label: str, **style: Any) -> None:
    """A line through the means with its band; gaps where there is nothing to show."""
    nan = float("nan")
    values = [(band.mean, band.low, band.high) if band else (nan, nan, nan) for band in bands]
    means, lows, highs = zip(*values, strict=True)
    color = COLORS.get(label)
    axis.plot(x, means, marker="o", markersize=4, color=color, label=label, **style)
    axis.fill_between(x, lows, highs, color=color, alpha=0.18, linewidth=0)


def release_curve_figure(plan: Mapping[str, Any]) -> Figure:
    """The probability of being published against the count."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    counts = [point["count"] for point in plan["curve"]]
    axes.plot(counts, [point["probability"] for point in plan["curve"]], color="#1f5fa8", linewidth=2)
    axes.axvline(plan["threshold"], color="#888888", linestyle="--", linewidth=1)
    axes.annotate(
        f"threshold {plan['threshold']:.4g}", (plan["threshold"], 0.03), xytext=(6, 0), textcoords="offset points"
    )
    for share, count in plan["quantiles"].items():
        axes.plot([count], [float(share)], "o", color="#c2410c")
        axes.annotate(
            f"{float(share):.0%} at {count}", (count, float(share)), xytext=(8, -4), textcoords="offset points"
        )
    axes.set_xlabel(f"count of a query in the limited log ({plan['unit']})")
    axes.set_ylabel("probability of being published")
    axes.set_ylim(-0.02, 1.02)
    axes.grid(alpha=0.25)
    title = f"{plan['algorithm']}, ε = {plan['epsilon']:.3g}, δ = {plan['budget_delta']:g}"
    axes.set_title(title, loc="left", fontsize=11)
    return figure


def released_figure(
    names: Sequence[str], values: Sequence[float], intervals: Sequence[tuple[float, float]], unit: str, title: str
) -> Figure:
    """The largest values as bars with their intervals, the first on top; ``intervals`` may be empty."""
    shown = min(len(names), _BARS)
    figure = Figure(figsize=(7, 1.2 + 0.26 * shown), layout="constrained")
    axes = figure.add_subplot()
    places = list(range(shown))
    axes.barh(places, values[:shown], color=COLORS["best"], alpha=0.75, height=0.7)
    for place, (low, high) in zip(places, intervals, strict=False):
        axes.plot([max(low, 0), high], [place, place], color="#222222", linewidth=1.2)
    axes.set_yticks(places, [_short(name) for name in names[:shown]], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.set_xlim(0, None)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
    left_out = f", {shown} of {len(names):,} shown" if shown < len(names) else ""
    axes.set_title(title + left_out, loc="left", fontsize=11, parse_math=False)
    return figure


def _short(name: str) -> str:
    string = visible(name)
    return string if len(string) <= _LONGEST_NAME else f"{string[: _LONGEST_NAME - 1]}…"
