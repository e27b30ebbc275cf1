"""Figures of results and plans, where Matplotlib is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from searchblend.core.errors import UsageError
from searchblend.core.outlet import Where


def draw(figure_of: Callable[[Any], Any], file: Where | None) -> Any:
    """What ``figure_of`` makes with the module that has Matplotlib; also in ``file``, whose suffix is checked first."""
    try:
        from searchblend.synthetic import plan_plots
    except ModuleNotFoundError as error:
        raise UsageError("plots need matplotlib: pip install 'searchblend[plots]'") from error
    if file is not None:
        plan_plots.check_suffix(Path(file))
    figure = figure_of(plan_plots)
    if file is not None:
        plan_plots.save(figure, Path(file))
    return figure
