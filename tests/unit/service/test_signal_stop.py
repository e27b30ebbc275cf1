"""A signal ends a loop wherever it meets it: with an Event in its place the script below waits for ever."""

from __future__ import annotations

import subprocess
import sys

from searchblend.service.process import SignalStop

STORM = """
import signal
from searchblend.service.process import SignalStop

for trial in range(3000):
    stop = SignalStop()
    signal.signal(signal.SIGALRM, lambda *_: stop.set())
    signal.setitimer(signal.ITIMER_REAL, 1e-5 + trial % 97 * 2e-6)
    while not stop.wait(1e-5):
        pass
    assert stop.is_set()
"""


def test_a_signal_at_any_moment_ends_who_waits():
    subprocess.run([sys.executable, "-c", STORM], check=True, timeout=240)


def test_waiting_ends_with_its_time_too():
    stop = SignalStop()
    assert not stop.wait(0.01)
    stop.set()
    assert stop.wait(3600)
