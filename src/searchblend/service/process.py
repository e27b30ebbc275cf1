"""What this process may have of the operating system, how a signal ends it, and where a test may kill it.

No core files, and open files enough for its connections. A crash point is named in SEARCHBLEND_CRASH_AT and met once,
and the process is gone; nothing happens unless that variable is set. A kill is the one way to test that a restart
continues the work.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Final, Protocol

if sys.platform != "win32":  # where the system sets no such limits
    import resource

VARIABLE: Final = "SEARCHBLEND_CRASH_AT"
SPARE_FILES: Final = 256
"""for databases, logs, keys, the health listener, and connections that are being closed"""
_FEWEST: Final = 16
_LOOK_SECONDS: Final = 0.1


class Stop(Protocol):
    """What a loop asks whether to go on: a ``threading.Event``, or a ``SignalStop``."""

    def is_set(self) -> bool: ...

    def wait(self, seconds: float, /) -> bool: ...


class SignalStop:
    """Set by a signal's handler. An Event has a lock, which the thread that is interrupted may be holding: setting it
    from a handler then waits forever. So there is none here, and who waits looks again and again."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float, /) -> bool:
        end = time.monotonic() + seconds
        while not self._is_set and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
        return self._is_set


def no_core_files() -> None:
    """A core file would hold what is only ever in memory."""
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def affordable_connections(wanted: int) -> int:
    """As many as there may be open files for, after asking for more; at most ``wanted``."""
    if sys.platform == "win32":
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = float("inf") if hard == resource.RLIM_INFINITY else hard
    needed = wanted + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = int(min(needed, most))
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(_FEWEST, min(wanted, soft - SPARE_FILES))


def crash_points(*, and_then: int | None = None) -> Callable[[str], None]:
    """The hook that this process was started with: ``name`` or ``name@7`` for the seventh time.

    ``and_then``: a process that goes as well, because this one is a part of it.
    """
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return lambda point: None
    name, _, times = wanted.partition("@")
    left = [int(times or 1)]

    def reached(point: str) -> None:
        if point == name:
            left[0] -= 1
            if left[0] == 0:
                if and_then is not None:
                    os.kill(and_then, signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)

    return reached
