"""A made-up search log of any size, with the published shape of the AOL or the Yandex log.

Users are made in chunks, each from its own generator (seed and number of the chunk), and written in order. So memory
is bounded by a few chunks, and the same seed gives the same bytes with any number of worker processes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from searchblend.core.errors import InvalidParameter, RunError, UsageError
from searchblend.synthetic.formats import AOL_HEADER, TABLE_HEADER
from searchblend.synthetic.output import parquet_file, text_files
from searchblend.synthetic.pieces import Job, LogRequest, Piece, gzip_member, jobs_of, make_piece

N_AOL_FILES: Final = 10
_HEADERS: Final = {"aol": AOL_HEADER, "yandex": b"", "tsv": TABLE_HEADER}
_TIME_TYPES: Final = {"aol": "TIMESTAMP", "yandex": "BIGINT"}


@dataclass(frozen=True)
class GeneratedLog:
    """What was made."""

    files: tuple[Path, ...]
    n_bytes: int
    counts: dict[str, int]


def generate_log(
    request: LogRequest,
    output: str,
    *,
    workers: int = 1,
    replace: bool = False,
    on_progress: Callable[[int, int], None] = lambda users, lines: None,
) -> GeneratedLog:
    """Write the log; ``on_progress`` hears how many users and lines are done.

    ``output`` is a file, gzip-compressed if it ends in ``.gz``. A directory, or a name that ends in ``/``, gets the
    ten files of the AOL collection.
    """
    if workers < 1:
        raise InvalidParameter("workers", "must be at least 1")
    paths = _paths(request, output)
    jobs = list(jobs_of(request, compress=paths[0].suffix == ".gz"))
    counts: Counter[str] = Counter()
    users_done = 0
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(_files(request, paths, replace=replace))
        pieces = stack.enter_context(contextlib.closing(_pieces(jobs, min(workers, len(jobs)))))
        for job, piece in zip(jobs, pieces, strict=True):
            files[job.number * len(files) // len(jobs)].write(piece.text)
            counts.update(piece.counts)
            users_done += job.n_users
            on_progress(users_done, counts["lines"])
    return GeneratedLog(tuple(paths), sum(path.stat().st_size for path in paths), dict(counts))


def _paths(request: LogRequest, output: str) -> list[Path]:
    path = Path(output)
    if not (output.endswith("/") or path.is_dir()):
        if request.format == "parquet" and path.suffix == ".gz":
            raise UsageError("output: Parquet is compressed already; leave out .gz")
        return [path]
    if request.format != "aol":
        raise UsageError(f"{output}: is a directory; only the AOL format has several files")
    return [path / f"user-ct-test-collection-{number:02d}.txt" for number in range(1, N_AOL_FILES + 1)]


def _files(
    request: LogRequest, paths: list[Path], *, replace: bool
) -> contextlib.AbstractContextManager[list[BinaryIO]]:
    if request.format == "parquet":
        columns = {"user": "BIGINT", "query": "VARCHAR", "url": "VARCHAR", "time": _TIME_TYPES[request.profile]}
        return parquet_file(paths[0], columns, replace=replace)
    header = _HEADERS[request.format]
    return text_files(paths, gzip_member(header) if paths[0].suffix == ".gz" else header, replace=replace)


def _pieces(jobs: Iterable[Job], workers: int) -> Generator[Piece, None, None]:
    """The pieces in order, a few ahead of the one that is being written."""
    if workers == 1:
        yield from map(make_piece, jobs)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    waiting: deque[Future[Piece]] = deque()
    try:
        for job in jobs:
            with _leaving_interrupts_to_the_parent():
                waiting.append(pool.submit(make_piece, job))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise RunError("a worker process ended unexpectedly (out of memory?); nothing was written") from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _leaving_interrupts_to_the_parent() -> Iterator[None]:
    """Workers that start here never hear Ctrl-C, which they would answer with a traceback, not even while they start.

    A child inherits what the thread that starts it has blocked. Another thread of the parent may still be told, so
    there the interrupt is kept until the workers have all they need.
    """
    told: list[int] = []
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda number, _: told.append(number)) if is_main else None
    try:
        yield
    finally:
        if is_main:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if told:
            signal.raise_signal(signal.SIGINT)
