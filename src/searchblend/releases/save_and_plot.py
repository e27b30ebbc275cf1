"""Results as people save and draw them: the folders that the commands write, and one figure."""

from __future__ import annotations

from functools import singledispatch
from pathlib import Path
from typing import Any

from searchblend.blender.release import BlenderRelease
from searchblend.blender.result import result_of
from searchblend.clickgraph.release.release import ClickGraphRelease
from searchblend.core.errors import InvalidParameter
from searchblend.core.outlet import HowRead, Where
from searchblend.core.tables import ReleasedTables, short_promise
from searchblend.files.durable import release_folder
from searchblend.pages.draw import draw
from searchblend.releases.click_graph import click_graph_files
from searchblend.releases.hybrid import hybrid_files
from searchblend.releases.make_release import Files, now
from searchblend.releases.saved_release import SavedRelease
from searchblend.releases.select_values import HeavyValues
from searchblend.wire.values import encode_values


def save(result: Any, folder: Where, *, log: HowRead, html: bool, replace: bool) -> None:
    """Write the folder of a result, whole or not at all."""
    with release_folder(Path(folder), replace=replace) as release:
        for name, content in files_of(result, log, html).items():
            release.write(name, content)


@singledispatch
def files_of(result: object, log: HowRead, html: bool) -> Files:
    """The files of a release by name: those that a command writes."""
    raise InvalidParameter("result", f"expected a release, found {type(result).__name__}")


@files_of.register
def _(result: BlenderRelease, log: HowRead, html: bool) -> Files:
    return hybrid_files(result, result_of(result), dict(log), created=now(), html=html)


@files_of.register
def _(result: ClickGraphRelease, log: HowRead, html: bool) -> Files:
    return click_graph_files(result, created=now(), options=dict(log), html=html)[1]


@files_of.register
def _(result: HeavyValues, log: HowRead, html: bool) -> Files:
    _refuse("html", html, "a selection has no page")
    _refuse("log", bool(log), "a selection is from a table")
    return encode_values(result.counts, result.guarantee, design=result.design, created=now())


@files_of.register
def _(result: SavedRelease, log: HowRead, html: bool) -> Files:
    _refuse("html", html, "these files are as they were released; page_of_folder makes a page beside them")
    _refuse("log", bool(log), "the statement of these files is written already")
    return dict(result.files)


def _refuse(field: str, given: bool, reason: str) -> None:
    if given:
        raise InvalidParameter(field, reason)


def plot(result: Any, file: Where | None) -> Any:
    """The largest of a result's first table, with their intervals where it has some."""
    return draw(lambda plots: _figure(plots, result), file)


def _figure(plots: Any, result: ReleasedTables[Any]) -> Any:
    columns = {name: list(column) for name, column in result.columns().items()}
    names = columns["query"] if "query" in columns else columns["value"]
    listed = [place for place, name in enumerate(names) if name is not None]  # without ⋆
    low, high = (columns.get(short, columns.get(long, [])) for short, long in (("low", "lo95"), ("high", "hi95")))
    value, factor = ("probability", 100) if "probability" in columns else ("count", 1)
    unit = "share of searches, %" if value == "probability" else "count, with noise"
    return plots.released_figure(
        [names[place] for place in listed],
        [factor * columns[value][place] for place in listed],
        [(factor * low[place], factor * high[place]) for place in listed] if low else [],
        f"{unit} (line: 95 % interval)" if low else unit,
        f"Released, {short_promise(result.guarantee)}",
    )
