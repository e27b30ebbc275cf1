"""Loaded by servers under attack, from PYTHONPATH: the attacker moves their clock and stops them where he likes.

``ATTACK_CLOCK``: a file with the seconds by which the machine's clock is wrong; each look at the clock adds a byte to
the file of that name with ``.looks`` behind it, so that the attacker knows when it was believed. ``ATTACK_STOP_AT``:
``file.py:function``; at its first call the process stops (SIGSTOP) until the attacker lets it go on.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

_right_time = time.time


def _wrong_time() -> float:
    with open(os.environ["ATTACK_CLOCK"]) as file:  # noqa: PTH123  # before anything else is imported
        wrong_by = float(file.read() or 0)
    with open(os.environ["ATTACK_CLOCK"] + ".looks", "ab") as looks:  # noqa: PTH123
        looks.write(b".")
    return _right_time() + wrong_by


def _stop_at(place: str) -> Callable[[FrameType, str, object], None]:
    file, _, function = place.partition(":")

    def profile(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == function and code.co_filename.endswith(file):
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGSTOP)

    return profile


if "ATTACK_CLOCK" in os.environ:
    time.time = _wrong_time
if "ATTACK_STOP_AT" in os.environ:
    threading.setprofile(_stop_at(os.environ["ATTACK_STOP_AT"]))
    sys.setprofile(_stop_at(os.environ["ATTACK_STOP_AT"]))
