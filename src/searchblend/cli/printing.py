"""What commands print: sentences, tables, JSON documents and progress.

Light to import, so that ``--help`` is instant: Rich and ``json`` are loaded by the first thing that is printed.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, ProgressColumn, TaskID
    from rich.table import Table
    from rich.text import Text

    from searchblend.cli.terminal import Terminal


@cache
def output() -> Terminal:
    """Standard output; 110 characters wide where it is not a terminal and ``COLUMNS`` does not say otherwise."""
    from searchblend.cli.terminal import Terminal

    return Terminal(
        highlight=False,
        markup=False,
        emoji=False,
        width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 110,
    )


@cache
def messages() -> Terminal:
    """Standard error: progress, notes and warnings."""
    from searchblend.cli.terminal import Terminal

    return Terminal(stderr=True, highlight=False, markup=False, emoji=False)


def speak(*, quiet: bool, verbose: bool) -> None:
    """How much is said on stderr, for ``-q`` and ``-v``."""
    _SPOKEN.update(quiet=quiet, verbose=verbose)


_SPOKEN = {"quiet": False, "verbose": False}


def print_line(text: str, style: str | None = None) -> None:
    """A sentence on stdout, left in one line: the terminal wraps it, ``grep`` finds it."""
    output().print(text, style=style, soft_wrap=True, markup=False)


def warn(text: str, style: str = "yellow") -> None:
    """A sentence on stderr, left in one line; none with ``-q``."""
    if not _SPOKEN["quiet"]:
        messages().print(text, style=style, soft_wrap=True)


def note_step(step: str) -> None:
    """With ``-v`` a line for each step, also where stderr is not a terminal."""
    if _SPOKEN["verbose"]:
        warn(f"searchblend: {step}", "dim")


def new_table(
    title: str,
    columns: Iterable[str] = (),
    rows: Iterable[Sequence[RenderableType]] = (),
    *,
    words: Collection[str] = (),
    caption: str | None = None,
) -> Table:
    """A table whose columns are figures, at the right, but for those that are named as ``words``."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption=caption,
        caption_justify="left",
        title_style="bold",
    )
    for name in columns:
        table.add_column(name, justify="left" if name in words else "right")
    for row in rows:
        table.add_row(*row)
    return table


def print_table(*parts: RenderableType) -> None:
    """Tables on stdout as wide as it is, or whatever else Rich renders."""
    from rich.table import Table

    for part in parts:
        if isinstance(part, Table):
            title, part.title = part.title, None
            print_line(str(title), style="bold")
            fit(part, output())
        output().print(part)


def fit(table: Table, console: Console) -> None:
    """Drop columns of figures, the last first, until the names have room; names are folded and never cut."""
    from rich.measure import Measurement

    for column in table.columns:
        column.overflow, column.no_wrap = "fold", column.justify == "right"

    def width() -> int:
        wide = console.options.update(max_width=10_000)
        natural = Measurement.get(console, wide, table).maximum
        folded = [
            max(0, Measurement.get(console, wide, cell).maximum - NAME_WIDTH)
            for column in table.columns
            if not column.no_wrap
            for cell in [max((str(cell) for cell in column.cells), key=len, default="")]
        ]
        return natural - sum(folded)

    figures = [column for column in table.columns if column.no_wrap]
    while len(figures) > 1 and width() > console.width:
        table.columns.remove(figures.pop())


NAME_WIDTH: Final = 24
"""what a column of words keeps of its width while columns of figures can go"""


def styled(text: str, style: str) -> Text:
    """For a cell of a table."""
    from rich.text import Text

    return Text(output().plain(text), style=style)


def word(value: Any) -> str:
    """A value of a document as people write it."""
    import json

    if value in (None, [], {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def write(text: str) -> None:
    """Exactly these characters on stdout."""
    output().file.write(text)


def print_json(document: Any) -> None:
    """One JSON document on stdout. A figure that JSON cannot write is an error, not ``NaN``."""
    write(json_text(document))


def json_text(document: Any) -> str:
    import json

    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


@contextlib.contextmanager
def progress_bar(*columns: ProgressColumn | str, transient: bool = True) -> Iterator[Progress]:
    """Progress on stderr, silent when stderr is not a terminal; Rich's own columns if none are named."""
    from rich.progress import Progress

    silent = _SPOKEN["quiet"] or not messages().is_terminal
    with Progress(*columns, console=messages(), transient=transient, disable=silent) as progress:
        yield progress


@contextlib.contextmanager
def run_progress() -> Iterator[tuple[Callable[[int, int], None], Callable[[str], None]]]:
    """Two callbacks: ``on_progress(bytes done, bytes in all)`` while reading, and ``on_step(name)``."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with progress_bar(*columns) as progress:
        task = progress.add_task("reading", total=None)
        yield (
            lambda done, total: progress.update(task, completed=done, total=total),
            lambda step: _show_step(progress, task, step),
        )


@contextlib.contextmanager
def step_progress() -> Iterator[Callable[[str], None]]:
    """One callback, ``on_step(what)``: a spinner and the step under way, for work of unknown length."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with progress_bar(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda step: _show_step(progress, task, step)


def _show_step(progress: Progress, task: TaskID, step: str) -> None:
    note_step(step)
    progress.update(task, description=step)
