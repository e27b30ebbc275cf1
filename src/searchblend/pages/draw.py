"""Drawing where Matplotlib may be absent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from searchblend.core.errors import UsageError
from searchblend.core.outlet import Where


def draw(figure_of: Callable[[Any], Any], file: Where | None) -> Any:
    """What ``figure_of`` makes with the module that has Matplotlib; also in ``file``, whose suffix is checked first."""
    try:
        from searchblend.pages import plots
    except ModuleNotFoundError as error:
        raise UsageError("plots need matplotlib: pip install 'searchblend[plots]'") from error
    if file is not None:
        plots.check_place(Path(file))
    figure = figure_of(plots)
    if file is not None:
        plots.save(figure, Path(file))
    return figure
