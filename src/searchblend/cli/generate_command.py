"""``searchblend generate``: a made-up log with the published shape of a real one."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from searchblend.cli.tables import messages, output, say
from searchblend.synthetic.generator import GeneratedLog, generate_log
from searchblend.synthetic.pieces import LogRequest


def run(options: argparse.Namespace) -> None:
    request = LogRequest(options.profile, options.users, options.format or options.profile, options.seed)
    started = time.perf_counter()
    with _progress(request.n_users) as on_progress:
        made = generate_log(
            request,
            options.output,
            workers=options.workers or _available_cores(),
            replace=options.force,
            on_progress=on_progress,
        )
    _show(request, made, time.perf_counter() - started, as_json=options.json)


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _progress(n_users: int) -> Iterator[Callable[[int, int], None]]:
    """A bar with users, lines per second and the time left; silent when stderr is not a terminal."""
    columns = (
        SpinnerColumn(),
        TextColumn("making users"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages, transient=True, disable=not messages.is_terminal) as progress:
        task = progress.add_task("", total=n_users, rate="")
        started = time.perf_counter()

        def on_progress(users: int, lines: int) -> None:
            rate = lines / (time.perf_counter() - started)
            progress.update(task, completed=users, rate=f"{rate:,.0f} lines/s")

        yield on_progress


def _show(request: LogRequest, made: GeneratedLog, seconds: float, *, as_json: bool) -> None:
    if as_json:
        document: dict[str, Any] = {
            "profile": request.profile,
            "format": request.format,
            "users": request.n_users,
            "seed": request.seed,
            "files": [str(path) for path in made.files],
            "bytes": made.n_bytes,
            **made.counts,
            "seconds": round(seconds, 3),
        }
        output.file.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
        return
    lines = made.counts["lines"]
    where = str(made.files[0]) if len(made.files) == 1 else f"{made.files[0].parent}/ ({len(made.files)} files)"
    say(
        f"{request.n_users:,} made-up users, {lines:,} lines, {made.n_bytes / 1e9:.2f} GB in {seconds:.1f} s "
        f"({lines / seconds:,.0f} lines/s): {where}",
    )
