"""A made-up search log of any size, with the published shape of the AOL or the Yandex log.

Users are made in chunks, each from its own generator (seed and number of the chunk), and written in order. So memory
is bounded by a few chunks, and the same seed gives the same bytes with any number of worker processes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from searchblend.errors import InvalidParameter, RunError, UsageError
from searchblend.evaluation.generate_aol import aol_chunk
from searchblend.evaluation.generate_formats import (
    AOL_HEADER,
    TABLE_HEADER,
    aol_table,
    aol_text,
    yandex_table,
    yandex_text,
)
from searchblend.evaluation.generate_output import gzip_member, parquet_file, text_files
from searchblend.evaluation.generate_yandex import sessions_per_user, yandex_chunk

PROFILES: Final = ("aol", "yandex")
FORMATS: Final = ("aol", "yandex", "tsv", "parquet")
N_AOL_FILES: Final = 10
_MOST_USERS_PER_CHUNK: Final = 4_096
_FEWEST_CHUNKS: Final = 20
_HEADERS: Final = {"aol": AOL_HEADER, "yandex": b"", "tsv": TABLE_HEADER}
_TIME_TYPES: Final = {"aol": "TIMESTAMP", "yandex": "BIGINT"}


@dataclass(frozen=True)
class LogRequest:
    """What to make: of whom, how many users, written how."""

    profile: str
    n_users: int
    format: str
    seed: int = 1

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise InvalidParameter("profile", f"must be one of {', '.join(PROFILES)}")
        if self.format not in FORMATS:
            raise InvalidParameter("format", f"must be one of {', '.join(FORMATS)}")
        if self.format in PROFILES and self.format != self.profile:
            raise InvalidParameter("format", f"{self.format} needs the profile {self.format}; tsv and parquet fit both")
        if self.n_users < 1:
            raise InvalidParameter("users", "must be at least 1")
        if self.seed < 0:
            raise InvalidParameter("seed", "must not be negative")


@dataclass(frozen=True)
class GeneratedLog:
    """What was made."""

    files: tuple[Path, ...]
    n_bytes: int
    counts: dict[str, int]


@dataclass(frozen=True)
class Job:
    """One chunk of users; whoever does it needs nothing else."""

    request: LogRequest
    number: int
    first_user: int
    n_users: int
    first_session: int
    compress: bool


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
    jobs = list(_jobs(request, compress=paths[0].suffix == ".gz"))
    counts: Counter[str] = Counter()
    users_done = 0
    with _files(request, paths, replace=replace) as files, contextlib.closing(_pieces(jobs, workers)) as pieces:
        for job, (text, found) in zip(jobs, pieces, strict=True):
            files[job.number * len(files) // len(jobs)].write(text)
            counts.update(found)
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


def _jobs(request: LogRequest, *, compress: bool) -> Iterator[Job]:
    """Chunks of a size that depends on the number of users alone; sessions are numbered through."""
    size = min(_MOST_USERS_PER_CHUNK, -(-request.n_users // _FEWEST_CHUNKS))
    first_session = 0
    for number, first_user in enumerate(range(0, request.n_users, size)):
        n_users = min(size, request.n_users - first_user)
        yield Job(request, number, first_user, n_users, first_session, compress)
        if request.format == "yandex":
            first_session += int(sessions_per_user(n_users, _generator(request.seed, number)).sum())


def _generator(seed: int, number: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,))))


def make_piece(job: Job) -> tuple[bytes | bytearray, dict[str, int]]:
    """The text of one chunk, and what it counts."""
    generator, request = _generator(job.request.seed, job.number), job.request
    if request.profile == "aol":
        lines = aol_chunk(job.first_user, job.n_users, request.n_users, generator)
        text, counts = (aol_text(lines) if request.format == "aol" else aol_table(lines)), lines.counts
    else:
        sessions = yandex_chunk(job.first_user, job.n_users, generator)
        counts = sessions.counts
        text = yandex_text(sessions, job.first_session) if request.format == "yandex" else yandex_table(sessions)
    return (gzip_member(text) if job.compress else text), counts


def _pieces(jobs: Iterable[Job], workers: int) -> Iterator[tuple[bytes | bytearray, dict[str, int]]]:
    """The pieces in order, a few ahead of the one that is being written."""
    if workers == 1:
        yield from map(make_piece, jobs)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _leave_interrupts_to_the_parent)
    waiting: deque[Future[tuple[bytes | bytearray, dict[str, int]]]] = deque()
    try:
        for job in jobs:
            waiting.append(pool.submit(make_piece, job))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise RunError("a worker process ended unexpectedly (out of memory?); nothing was written") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
