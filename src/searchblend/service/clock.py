"""What time it is, as an argument: tests move it by hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

DAY: Final = 86_400
"""seconds"""
TOLERATED_SECONDS: Final = 120
"""by so much the machine's clock may be put right within ``BELIEVED_SECONDS``"""
BELIEVED_SECONDS: Final = 3600
"""a jump that has lasted for so long is the right time"""


class Clock(Protocol):
    """Seconds since 1970, whole."""

    def now(self) -> int: ...


class SystemClock:
    """The machine's clock, as it is: for commands, which look once."""

    def now(self) -> int:
        return int(time.time())


def _boot_seconds() -> float:
    """Seconds since the machine was started, sleep included where the system counts it; no one can set them."""
    number = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if number is None else time.clock_gettime(number)


class SteadyClock:
    """The machine's clock, for servers: a jump is not followed before it has lasted.

    A clock that is wrong by a month for a few seconds must neither end rounds nor sign what devices refuse for a
    month; nor may it put off a deadline. So its distance to the seconds since the start of the machine, which no one
    sets, is remembered. While both agree the machine's clock is right; when it jumps, time goes on as before, until
    the jump is undone or has lasted. A process takes the machine's clock as it finds it: a restart believes a jump.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _boot_seconds) -> None:
        self._wall, self._steady, self._lock = wall, steady, threading.Lock()
        self._compared = steady()
        self._distance = wall() - self._compared
        self._jumped: tuple[float, float] | None = None
        """since when the clocks disagree, and the distance since then"""

    def now(self) -> int:
        with self._lock:
            return int(self._read())

    def trouble(self) -> str | None:
        """What is wrong with the machine's clock, if anything."""
        with self._lock:
            self._read()
            return "the machine's clock has jumped and is not believed yet" if self._jumped else None

    def _read(self) -> float:
        steady, wall = self._steady(), self._wall()
        distance = wall - steady
        if abs(distance - self._distance) <= TOLERATED_SECONDS:
            self._jumped = None
            if steady - self._compared >= BELIEVED_SECONDS:  # not at every look: many small steps are a jump as well
                self._compared, self._distance = steady, distance
            return wall
        if self._jumped is None or abs(distance - self._jumped[1]) > TOLERATED_SECONDS:
            self._jumped = steady, distance
        elif steady - self._jumped[0] >= BELIEVED_SECONDS:
            self._compared, self._distance, self._jumped = steady, distance, None
            return wall
        return steady + self._distance
