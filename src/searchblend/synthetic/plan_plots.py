"""Plots for publication. Only here is Matplotlib loaded, which comes with the extra ``plots``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from searchblend.core.errors import OutputError, UsageError
from searchblend.synthetic.plan import Band, MethodForecast

COLORS: Final = {"best": "#0b6e4f", "paper": "#b3541e"}
SUFFIXES: Final = (".png", ".svg")


def new_figure(columns: int = 1, rows: int = 1) -> tuple[Figure, list[Axes]]:
    figure, grid = plt.subplots(rows, columns, figsize=(5.2 * columns, 3.8 * rows), layout="constrained", squeeze=False)
    axes = list(grid.flat)
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
    finally:
        plt.close(figure)


def plan_figure(epsilons: Sequence[float], curves: Mapping[str, Sequence[MethodForecast]], title: str) -> Figure:
    """Query error and list length over ε, both methods, with the middle 80 % of the simulated runs."""
    figure, (errors, lengths) = new_figure(2)
    for method, forecasts in curves.items():
        draw_band(errors, epsilons, [forecast.query_l1 for forecast in forecasts], method)
        draw_band(lengths, epsilons, [forecast.head_queries for forecast in forecasts], method)
    errors.set(xlabel="ε", ylabel="L1 error of the queries", yscale="log")
    lengths.set(xlabel="ε", ylabel="queries in the head list", ylim=(0, None))
    errors.legend(frameon=False, title="method")
    figure.suptitle(title, fontsize=11)
    return figure


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
