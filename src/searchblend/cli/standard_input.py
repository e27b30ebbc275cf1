"""``-`` as a log: standard input, kept in a private file for as long as the command runs."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from searchblend.cli.printing import note_step
from searchblend.core.errors import OutputError, UsageError

if TYPE_CHECKING:
    from searchblend.logs.options import ReadOptions

STANDARD_INPUT: Final = "-"
_FILE: Final = "standard-input"
_ENDINGS: Final = ("SIGTERM", "SIGHUP")


@contextlib.contextmanager
def with_standard_input(reading: ReadOptions) -> Iterator[ReadOptions]:
    """How to read the log, with a path in place of ``-``.

    A log is read more than once, so one that comes by a pipe is written to a file first. The file
    is gone when the block is left, also by an interrupt or a signal to terminate.
    """
    if reading.paths != STANDARD_INPUT:
        yield reading
        return
    from searchblend.logs.relational import private_directory

    if reading.engine == "spark":
        raise UsageError("LOG -: only with --engine duckdb; a cluster cannot read this machine's standard input")
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("LOG -: standard input is a terminal; pipe a log into it, or name a file")
    with _ended_by_exceptions():
        folder = private_directory(reading.temp_directory)
        try:
            _keep(folder / _FILE)
            yield replace(reading, paths=folder / _FILE)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _keep(path: Path) -> None:
    note_step("standard input")
    try:
        with path.open("xb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    except OSError as error:
        raise OutputError(
            f"{path}: standard input cannot be kept: {error.strerror}; choose another place with --temp-directory"
        ) from error


@contextlib.contextmanager
def _ended_by_exceptions() -> Iterator[None]:
    """A signal that would end the process at once ends the block instead, so that its files are removed."""

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in _ENDINGS if is_main and hasattr(signal, name)]
    handlers = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
