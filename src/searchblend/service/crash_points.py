"""Places where a test may kill the process: named in SEARCHBLEND_CRASH_AT, met once, and the process is gone.

Nothing happens unless that variable is set. A kill is the one way to test that a restart continues the work.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Final

VARIABLE: Final = "SEARCHBLEND_CRASH_AT"


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
