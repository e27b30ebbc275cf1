"""Plots for publication. Only here is Matplotlib loaded, which comes with the extra ``plots``.

Without ``pyplot``: a notebook's own choice of how figures are shown stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Final

from matplotlib import figure as figures
from matplotlib.axes import Axes

from searchblend.core.errors import OutputError, UsageError
from searchblend.core.visible import visible

COLORS: Final = {"best": "#0b6e4f", "paper": "#b3541e"}
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


def check_place(path: Path) -> None:
    """Refuse a plot that could not be drawn, before the work is done."""
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: expected a file name that ends in {' or '.join(SUFFIXES)}")


def save(figure: Figure, path: Path) -> None:
    check_place(path)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


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
