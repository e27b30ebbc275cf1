"""``searchblend generate``: a synthetic log with the published shape of a real one."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from searchblend.cli.arguments import positive_int
from searchblend.cli.printing import print_json, print_line, progress_bar

if TYPE_CHECKING:
    from searchblend.synthetic.generator import GeneratedLog
    from searchblend.synthetic.pieces import LogRequest

EXAMPLES = """\
examples:
  searchblend generate --profile aol --users 657426 -o aol.txt        the size of the AOL log: 36 M lines, 2.4 GB
  searchblend generate --profile aol --users 20000 -o logs/           the ten files of the collection, small
  searchblend generate --profile yandex --users 100000 -o train.gz    sessions, queries and clicks by number
  searchblend generate --profile aol --users 20000 --format parquet -o log.parquet
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", choices=["aol", "yandex"], required=True, help="whose published figures to follow")
    parser.add_argument("--users", type=positive_int, required=True, metavar="N", help="synthetic users")
    parser.add_argument("--format", choices=["aol", "yandex", "tsv", "parquet"], help="how to write it (the profile's)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same bytes (1)")
    parser.add_argument(
        "--habits", action="store_true", help="people who repeat queries and mend their spelling (profile aol)"
    )
    parser.add_argument("--workers", type=positive_int, metavar="W", help="processes (as many as there are cores)")
    parser.add_argument(
        "-o", "--output", required=True, metavar="PATH", help="file, .gz if it ends so; DIR/ for the ten AOL files"
    )
    parser.add_argument("--force", action="store_true", help="replace what is at PATH")
    parser.add_argument("--json", action="store_true", help="print what was made as one JSON document")


def run(options: argparse.Namespace) -> None:
    from searchblend.synthetic.generator import generate_log
    from searchblend.synthetic.pieces import LogRequest

    request = LogRequest(
        options.profile, options.users, options.format or options.profile, options.seed, options.habits
    )
    started = time.perf_counter()
    with _progress(request.n_users) as on_progress:
        log = generate_log(
            request,
            options.output,
            workers=options.workers or _available_cores(),
            replace=options.force,
            on_progress=on_progress,
        )
    _show(request, log, time.perf_counter() - started, as_json=options.json)


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _progress(n_users: int) -> Iterator[Callable[[int, int], None]]:
    """A bar with users, lines per second and the time left; silent when stderr is not a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("making users"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with progress_bar(*columns) as progress:
        task = progress.add_task("", total=n_users, rate="")
        started = time.perf_counter()

        def on_progress(users: int, lines: int) -> None:
            rate = lines / (time.perf_counter() - started)
            progress.update(task, completed=users, rate=f"{rate:,.0f} lines/s")

        yield on_progress


def _show(request: LogRequest, log: GeneratedLog, seconds: float, *, as_json: bool) -> None:
    if as_json:
        document: dict[str, Any] = {
            "profile": request.profile,
            "format": request.format,
            "users": request.n_users,
            "seed": request.seed,
            "files": [str(path) for path in log.files],
            "bytes": log.n_bytes,
            **log.counts,
            "seconds": round(seconds, 3),
        }
        print_json(document)
        return
    lines = log.counts["lines"]
    where = str(log.files[0]) if len(log.files) == 1 else f"{log.files[0].parent}/ ({len(log.files)} files)"
    print_line(
        f"{request.n_users:,} synthetic users, {lines:,} lines, {log.n_bytes / 1e9:.2f} GB in {seconds:.1f} s "
        f"({lines / seconds:,.0f} lines/s): {where}",
    )
