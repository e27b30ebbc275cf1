"""Progress on stderr: bytes while reading, then the step of the run. Silent when stderr is not a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from searchblend.cli.tables import messages


@contextlib.contextmanager
def run_progress() -> Iterator[tuple[Callable[[int, int], None], Callable[[str], None]]]:
    """Two callbacks: ``on_progress(bytes done, bytes in all)`` and ``on_step(name)``."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages, transient=True, disable=not messages.is_terminal) as progress:
        task = progress.add_task("reading", total=None)
        yield (
            lambda done, total: progress.update(task, completed=done, total=total),
            lambda step: progress.update(task, description=step),
        )


@contextlib.contextmanager
def step_progress() -> Iterator[Callable[[str], None]]:
    """One callback, ``on_step(what)``: a spinner and the step under way, for work whose length nobody knows."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True, disable=not messages.is_terminal) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda step: progress.update(task, description=step)
