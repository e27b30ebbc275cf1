"""A synthetic search log of any size, with the published shape of the AOL or the Yandex log.

Users are made in chunks, each from its own generator (seed and number of the chunk), and written in order. So memory
is bounded by a few chunks, and the same seed gives the same bytes with any number of worker processes.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import duckdb
import numpy as np

from searchblend.core.errors import InvalidParameter, OutputError, RunError, UsageError
from searchblend.files.durable import whole_files
from searchblend.synthetic.pieces import (
    AOL_HEADER,
    TABLE_HEADER,
    Job,
    LogRequest,
    Piece,
    gzip_member,
    jobs_of,
    make_piece,
)
from searchblend.synthetic.population import AOL
from searchblend.synthetic.worker_pool import WorkerPool

N_AOL_FILES: Final = 10
_HEADERS: Final = {"aol": AOL_HEADER, "yandex": b"", "tsv": TABLE_HEADER}
_TIME_TYPES: Final = {"aol": "TIMESTAMP", "yandex": "BIGINT"}
_MEAN_EXTRA_LINES: Final = 1.5


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
    """Write the log; ``on_progress`` is called with how many users and lines are done.

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
        return _parquet_file(paths[0], columns, replace=replace)
    header = _HEADERS[request.format]
    return _text_files(paths, gzip_member(header) if paths[0].suffix == ".gz" else header, replace=replace)


@contextlib.contextmanager
def _text_files(paths: Sequence[Path], header: bytes, *, replace: bool) -> Iterator[list[BinaryIO]]:
    """Open files, each with the header; they take their names when the block ends without an error."""
    with whole_files(paths, replace=replace) as partial, contextlib.ExitStack() as opened:
        files: list[BinaryIO] = [opened.enter_context(path.open("wb")) for path in partial]
        for file in files:
            file.write(header)
        yield files


@contextlib.contextmanager
def _parquet_file(path: Path, columns: Mapping[str, str], *, replace: bool) -> Iterator[list[BinaryIO]]:
    """One file that takes tab-separated lines and turns them into Parquet as they come; empty URLs become NULL."""
    with whole_files([path], replace=replace) as (partial,):
        read_end, write_end = os.pipe()
        copy = _Copy(read_end, partial, path, columns)
        copy.start()
        try:
            with os.fdopen(write_end, "wb") as file:
                yield [file]
        except BrokenPipeError as error:
            copy.join()
            raise copy.failure or OutputError(f"{path}: cannot be written") from error
        finally:
            copy.join()
        if copy.failure:
            raise copy.failure


class _Copy(threading.Thread):
    """DuckDB reads the pipe and writes Parquet; one thread, so that the same lines give the same file."""

    def __init__(self, read_end: int, partial: Path, path: Path, columns: Mapping[str, str]) -> None:
        super().__init__(name="parquet")
        self._read_end, self._partial, self._path, self._columns = read_end, partial, path, columns
        self.failure: OutputError | None = None

    def run(self) -> None:
        try:
            with duckdb.connect(config={"threads": 1, "memory_limit": "1GB"}) as connection:
                connection.execute(self._statement())
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            self.failure = OutputError(f"{self._path}: cannot be written: {reason}")
        finally:
            os.close(self._read_end)

    def _statement(self) -> str:
        types = ", ".join(f"'{name}': '{kind}'" for name, kind in self._columns.items())
        target = str(self._partial).replace("'", "''")
        return (
            f"COPY (SELECT * REPLACE (nullif(url, '') AS url) FROM read_csv('/dev/fd/{self._read_end}', "  # noqa: S608
            f"auto_detect = false, header = false, delim = '\t', quote = '', escape = '', columns = {{{types}}})) "
            f"TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
        )


def _pieces(jobs: Iterable[Job], workers: int) -> Generator[Piece, None, None]:
    """The pieces in order, a few ahead of the one that is being written."""
    if workers == 1:
        yield from map(make_piece, jobs)
        return
    waiting: deque[Future[Piece]] = deque()
    try:
        with WorkerPool(workers) as pool:
            for job in jobs:
                waiting.append(pool.submit(make_piece, job))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise RunError("a worker process ended unexpectedly (out of memory?); nothing was written") from error


def write_aol_like_log(path: Path, n_users: int, *, seed: int) -> None:
    """The log of ``searchblend demo``: a TSV with header ``user query url``, one to a few lines per person."""
    generator = np.random.Generator(np.random.PCG64(seed))
    lines_per_user = 1 + generator.poisson(_MEAN_EXTRA_LINES, n_users)
    numbers = AOL.record_numbers(int(lines_per_user.sum()), generator)
    users = np.repeat(np.arange(1, n_users + 1), lines_per_user)
    records = AOL.records
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            file.write("user\tquery\turl\n")
            for user, number in zip(users.tolist(), numbers.tolist(), strict=True):
                query, url = records[number]
                file.write(f"{user}\t{query}\t{url}\n")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error
