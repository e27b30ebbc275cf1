"""Places where a test may kill the process: named in SEARCHBLEND_CRASH_AT, met once, and the process is gone.

Nothing happens unless that variable is set. A kill is the one way to test that a restart continues the work.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Final

VARIABLE: Final = "SEARCHBLEND_CRASH_AT"


def crash_points() -> Callable[[str], None]:
    """The hook that this process was started with: ``name`` or ``name@7`` for the seventh time."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return lambda point: None
    name, _, times = wanted.partition("@")
    left = [int(times or 1)]

    def reached(point: str) -> None:
        if point == name:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return reached
