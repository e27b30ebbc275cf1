"""Hands text files to a database: clean ones as they are, all others through the gate and a named pipe."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from searchblend.logs.formats.files import WHOLE, Span
from searchblend.logs.formats.gate import FileCheck, Gate, OnBytes, check_clean
from searchblend.logs.formats.layout import LineRules
from searchblend.logs.formats.remote import LogFile

_RETRY_SECONDS: Final = 0.002
_BEGINNING: Final = 1 << 20
"""How much of a file is checked before the database begins to read it."""

Known = dict[LogFile, FileCheck | None]
"""What a check of all bytes of a file has shown; None if it needs cleaning."""


class WrongGuess(Exception):
    """A file is not what its beginning promised: what the database read of it is void."""

    def __init__(self, known: Known) -> None:
        self.known = known
        super().__init__("a file was read in the wrong way")


@dataclass
class Feed:
    """The names under which a database finds some files, and what the gate counted in them."""

    names: list[Path | str] = field(default_factory=list)
    checks: list[FileCheck] = field(default_factory=list)
    gated: bool = False
    """Whether every file went through the gate."""
    mended: str | None = None
    """the table of what Parquet files hold, where some strings are not UTF-8"""

    @property
    def ascii_only(self) -> bool:
        """Whether all files are ASCII, as far as is known beforehand."""
        return all(check.ascii_only for check in self.checks)

    @property
    def no_odd_bytes(self) -> bool:
        return all(check.no_odd_bytes for check in self.checks)


class Feeder:
    """Makes the feeds of one reading, in a private directory.

    The names in it are ours: a database would take a star or a bracket in a file's own name for a pattern.

    A file that begins like a clean one is given to the database at once, and checked in full meanwhile. If it turns out
    to need cleaning, ``running`` raises ``WrongGuess`` and all is read again, with what is known then.
    """

    def __init__(
        self,
        directory: Path,
        on_bytes: OnBytes = lambda n: None,
        *,
        name: str = "input",
        known: Known | None = None,
    ) -> None:
        self._directory, self._name = directory, name
        self._on_bytes = on_bytes
        self._known: Known = dict(known or {})
        self._guesses: list[tuple[LogFile, FileCheck, Callable[[], FileCheck | None]]] = []
        self._pipes: list[tuple[Path, Gate]] = []
        self._wrong_guess = False
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self._opened: set[Path] = set()
        self._opening = threading.Lock()
        self._names = 0

    def feed(self, paths: Sequence[LogFile], rules: LineRules, *, odd_bytes: bytes = b"") -> Feed:
        """Checks the beginning of each file and decides how it is read.

        The gate changes the separator of files that may have quotes, so if one of those needs it, all go through.
        """
        guesses = [self._guess(path, rules, odd_bytes) for path in paths]
        feed = Feed(gated=rules.quotes and None in guesses)
        for path, guess in zip(paths, guesses, strict=True):
            if guess is not None and isinstance(path, Path) and not feed.gated:
                feed.names.append(self.link(path))
                feed.checks.append(guess)
            else:
                self._add_gate(feed, Gate(path, rules))
        return feed

    def feed_span(self, path: LogFile, rules: LineRules, span: Span = WHOLE) -> tuple[Feed, Gate]:
        """A part of a file, through the gate."""
        feed, gate = Feed(gated=rules.quotes), Gate(path, rules, span)
        self._add_gate(feed, gate)
        return feed, gate

    def _add_gate(self, feed: Feed, gate: Gate) -> None:
        name = self._new_name()
        os.mkfifo(name, mode=0o600)
        self._pipes.append((name, gate))
        feed.names.append(name)
        feed.checks.append(gate.check)

    def _guess(self, path: LogFile, rules: LineRules, odd_bytes: bytes) -> FileCheck | None:
        if path in self._known:
            return self._known[path]
        guess = check_clean(path, rules, odd_bytes=odd_bytes, only=_BEGINNING)
        if guess is not None:

            def check_all() -> FileCheck | None:
                return check_clean(path, rules, odd_bytes=odd_bytes, on_bytes=self._report_bytes)

            self._guesses.append((path, guess, check_all))
        return guess

    def _new_name(self) -> Path:
        self._names += 1
        return self._directory / f"{self._name}_{self._names}"

    def link(self, path: Path) -> Path:
        """A name of ours for a file that is read as it is."""
        name = self._new_name()
        name.symlink_to(path.resolve())
        return name

    @contextmanager
    def running(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Fills the pipes while the statement inside reads them; a file's failure becomes the statement's."""
        checking = threading.Thread(target=self._check_guesses, args=(interrupt,), daemon=True)
        filling = {
            name: threading.Thread(target=self._fill, args=(name, gate, interrupt), daemon=True)
            for name, gate in self._pipes
        }
        for thread in (checking, *filling.values()):
            thread.start()
        try:
            yield
        except Exception:
            checking.join()  # the statement may have failed over bytes that it should not have seen
            self._reraise()
            raise
        else:
            checking.join()
        finally:
            self._release(filling)
            for thread in (checking, *filling.values()):
                thread.join()
        self._reraise()

    def _reraise(self) -> None:
        if self._failure is not None:
            raise self._failure from None
        if self._wrong_guess:
            raise WrongGuess(self._known)

    def _check_guesses(self, interrupt: Callable[[], None]) -> None:
        try:
            for path, guess, check_all in self._guesses:
                check = self._known[path] = check_all()
                if check is None or guess.ascii_only > check.ascii_only or guess.no_odd_bytes > check.no_odd_bytes:
                    self._wrong_guess = True
                    interrupt()
                else:
                    guess.lines, guess.bytes = check.lines, check.bytes
        except _Stopped:
            pass
        except BaseException as error:  # as in _fill
            self._failure = self._failure or error
            interrupt()

    def _report_bytes(self, n: int) -> None:
        if self._stop.is_set():
            raise _Stopped
        self._on_bytes(n)

    def _fill(self, name: Path, gate: Gate, interrupt: Callable[[], None]) -> None:
        pipe = self._open(name)
        if pipe is None:
            return
        try:
            for block in gate.blocks(self._on_bytes):
                _write(pipe, block)
        except BrokenPipeError:
            pass  # the statement ended early, with an error of its own
        except BaseException as error:  # whatever it is, the statement that waits for this file must end
            self._failure = self._failure or error
            interrupt()
        finally:
            os.close(pipe)

    def _open(self, name: Path) -> int | None:
        """The pipe, once it is read; None if it never will be. The thread sleeps until then: with many files, asking
        again and again would take more time than reading them."""
        while True:
            try:
                pipe = os.open(name, os.O_WRONLY)
                break
            except OSError:  # too many files are open at the moment
                if self._stop.wait(_RETRY_SECONDS):
                    return None
        with self._opening:
            if not self._stop.is_set():
                self._opened.add(name)
                return pipe
        os.close(pipe)
        return None

    def _release(self, filling: dict[Path, threading.Thread]) -> None:
        """Ends the threads that wait for a reader of their pipe by being it. The others' readers are the database's: if
        it is gone, their pipes are broken, and a reader more would keep them waiting. A thread whose pipe was
        removed is left to end with the process."""
        with self._opening:
            self._stop.set()
            waiting = [name for name in filling if name not in self._opened]
        for name in waiting:
            reader = _open_reader(name)
            if reader is None:
                del filling[name]
                continue
            filling[name].join()
            os.close(reader)


def _open_reader(pipe: Path) -> int | None:
    """None if the pipe is gone."""
    while True:
        try:
            return os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                return None
        time.sleep(_RETRY_SECONDS)  # other threads of this process give theirs back


class _Stopped(Exception):
    """The result is not needed any more."""


def _write(pipe: int, block: bytes) -> None:
    left = memoryview(block)
    while left:
        left = left[os.write(pipe, left) :]
