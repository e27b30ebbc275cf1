"""Plots of forecasts: what a run lists at each ε, what a release publishes at each count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from searchblend.core.documents import JsonObject
from searchblend.pages.plots import COLORS, Figure, new_figure
from searchblend.synthetic.plan import Band, MethodForecast

_MOST: Final = 0.5
"""of the runs"""
_RANK_STYLES: Final = ("-", "--", "-.", ":")


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


def release_curve_figure(plan: JsonObject) -> Figure:
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
