"""Files of a synthetic log: they appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import duckdb

from searchblend.core.errors import OutputError


@contextlib.contextmanager
def text_files(paths: Sequence[Path], header: bytes, *, replace: bool) -> Iterator[list[BinaryIO]]:
    """Open files, each with the header; they take their names when the block ends without an error."""
    with _appearing(paths, replace=replace) as partial, contextlib.ExitStack() as opened:
        files: list[BinaryIO] = [opened.enter_context(path.open("wb")) for path in partial]
        for file in files:
            file.write(header)
        yield files


@contextlib.contextmanager
def parquet_file(path: Path, columns: Mapping[str, str], *, replace: bool) -> Iterator[list[BinaryIO]]:
    """One file that takes tab-separated lines and turns them into Parquet as they come; empty URLs become NULL."""
    with _appearing([path], replace=replace) as (partial,):
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


@contextlib.contextmanager
def _appearing(paths: Sequence[Path], *, replace: bool) -> Iterator[list[Path]]:
    """Names to write under, beside the destinations; moved there at the end, removed when the block fails."""
    folder = paths[0].parent
    where = paths[0] if len(paths) == 1 else folder
    staging: Path | None = None
    try:
        for path in paths:
            if path.exists() and not replace:
                raise OutputError(f"{path}: exists; choose another name or pass --force")
        folder.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{paths[0].name}.partial-", dir=folder))
        partial = [staging / path.name for path in paths]
        yield partial
        for name, path in zip(partial, paths, strict=True):
            name.replace(path)
    except OSError as error:
        raise OutputError(f"{where}: cannot be written: {error.strerror or error}") from error
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
