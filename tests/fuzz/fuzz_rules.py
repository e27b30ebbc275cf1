"""What every input may lead to: an answer or an error that we document. Everything else is a finding.

A *canary* stands in the values of every seed (queries, URLs, user ids). It must never come back in an error's message,
and neither may a control character, with which a file could write on somebody's terminal.
"""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Callable, Iterator

from searchblend.core.errors import InvalidColumns, SearchblendError

CANARY = "zqcanary"
LONGEST_MESSAGE = 4000


class Finding(AssertionError):
    """A property that did not hold."""


def demand(holds: bool, what: str) -> None:
    if not holds:
        raise Finding(what)


def check_message(message: str, *, may_name_columns: bool = False) -> None:
    """No raw value, no terminal escape, no book."""
    demand(may_name_columns or CANARY not in message.casefold(), "a raw value stands in a message")
    bad = [hex(ord(c)) for c in message if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"]
    demand(not bad, f"a message with control characters {bad[:5]}")
    demand(len(message) <= LONGEST_MESSAGE, f"a message of {len(message)} characters")


@contextlib.contextmanager
def documented_errors_only() -> Iterator[None]:
    """Passes over the errors of errors.py, after a look at their message; all others go on."""
    try:
        yield
    except SearchblendError as error:
        # A first line with one of the expected names is a header, and its other names may be shown.
        check_message(str(error), may_name_columns=isinstance(error, InvalidColumns))


def refused(job: Callable[[], object]) -> bool:
    """Whether a job ends in a documented error."""
    try:
        job()
    except SearchblendError as error:
        check_message(str(error))
        return True
    return False
