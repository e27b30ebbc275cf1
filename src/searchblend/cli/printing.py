"""What commands print: sentences, tables, JSON documents and progress.

Light to import, so that ``--help`` is instant: Rich and ``json`` are loaded by the first thing that is printed.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from searchblend.core.visible import visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, ProgressColumn
    from rich.table import Table


@cache
def output() -> Console:
    """Standard output; 110 characters wide where it is not a terminal."""
    return _terminal(width=None if sys.stdout.isatty() else 110)


@cache
def messages() -> Console:
    """Standard error: progress, notes and warnings."""
    return _terminal(stderr=True)


def _terminal(**options: Any) -> Console:
    """Shows what others wrote, such as a pack's queries, without obeying it: no cursor or direction of theirs."""
    from rich.console import Console
    from rich.text import Text

    class Terminal(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(visible(text), **options)

    return Terminal(highlight=False, markup=False, emoji=False, **options)


def print_line(text: str, style: str | None = None) -> None:
    """A sentence on stdout, left in one line: the terminal wraps it, ``grep`` finds it."""
    output().print(text, style=style, soft_wrap=True, markup=False)


def warn(text: str, style: str = "yellow") -> None:
    """A sentence on stderr, left in one line."""
    messages().print(text, style=style, soft_wrap=True)


def new_table(title: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left", title_style="bold")


def print_table(*parts: RenderableType) -> None:
    """A table on stdout, or whatever else Rich renders."""
    output().print(*parts)


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

    with Progress(*columns, console=messages(), transient=transient, disable=not messages().is_terminal) as progress:
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
            lambda step: progress.update(task, description=step),
        )


@contextlib.contextmanager
def step_progress() -> Iterator[Callable[[str], None]]:
    """One callback, ``on_step(what)``: a spinner and the step under way, for work of unknown length."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with progress_bar(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda step: progress.update(task, description=step)
