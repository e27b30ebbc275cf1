"""The errors that all parts share; every error raised on purpose derives from ``SearchblendError``.

    SearchblendError
    ├── UsageError             the caller asked for something that cannot be asked      (exit code 2)
    │   ├── InvalidParameter   a parameter is out of its range or breaks a theorem's condition
    │   └── InvalidColumns     the column map does not fit the file's header
    └── RunError               the request was fine, the run could not be completed     (exit code 1)
        ├── InputError         a log cannot be read: says file, line and field
        ├── EmptyHeadList      no record passed the privacy threshold
        ├── MessageError       a head list, report or vector that must be refused
        └── OutputError        the results cannot be written

Parts that have more to distinguish derive their own beside their code: store/errors.py,
device/device_errors.py, wire/report.py, wire/ohttp.py, core/randomness.py, clickgraph/use/absorbing_walk.py,
logs/duckdb/session.py, service/issuer/books.py, service/log_audit.py, service/workers/curator_process.py,
service/workers/signing_keys.py, service/workers/vault.py and service/workers/worker.py.

No message holds a raw query, URL or user id: an error says *where* (file, line, field) and *what was
expected*, never the content itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LONGEST_LIST: Final = 200


def listed(names: Iterable[object]) -> str:
    """Names of fields or columns as a message may show them: nothing unprintable, and not a book."""
    string = ", ".join(map(str, names))
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in string[:LONGEST_LIST])
    return shown if len(string) <= LONGEST_LIST else f"{shown}…"


class SearchblendError(Exception):
    """Base of all errors raised on purpose."""

    exit_code = 1


class UsageError(SearchblendError):
    """The caller asked for something that cannot be asked."""

    exit_code = 2


class InvalidParameter(UsageError):
    """A parameter out of its range, or against a theorem's condition."""

    def __init__(self, field: str, expected: str) -> None:
        self.field = field
        self.expected = expected
        super().__init__(f"{field}: {expected}")


class InvalidColumns(UsageError):
    """The column map does not fit the header of a log."""


class RunError(SearchblendError):
    """The request was fine; the run could not be completed."""


class InputError(RunError):
    """A log that cannot be read."""

    def __init__(self, path: object, problem: str, *, line: int | None = None, field: str | None = None) -> None:
        self.path = path
        self.line = line
        self.field = field
        where = f"{path}" if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {problem}" if field is None else f"{where}: {field}: {problem}")


class EmptyHeadList(RunError):
    """No record passed the privacy threshold, so there is nothing to estimate."""


class MessageError(RunError):
    """A message (head list, report) that must be refused."""


class OutputError(RunError):
    """The results cannot be written."""
