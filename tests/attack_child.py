"""What an attacker does to a server's process from outside: move its clock, stop it at a call, let it go on."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import psutil

from attack_service import wait_for
from service_process import ServerProcess

_LOOKS = 200
"""at the clock: a worker takes some in each pass, ten times a second"""
CHILD = Path(__file__).parent / "attack" / "child"


class WrongClock:
    """A clock that several processes share, and that is wrong by as much as the attacker says."""

    def __init__(self, folder: Path, seconds: float = 0) -> None:
        self._path = folder / "clock"
        self.move(seconds)

    def move(self, seconds: float) -> None:
        written = self._path.with_suffix(".new")
        written.write_text(str(seconds))
        written.replace(self._path)

    def wait_seen(self) -> None:
        """Until the processes have looked at it dozens of times more: what they do about it is done."""
        looks = self._path.with_name(self._path.name + ".looks")
        enough = (looks.stat().st_size if looks.exists() else 0) + _LOOKS
        wait_for(lambda: looks.exists() and looks.stat().st_size >= enough, "somebody to look at the clock")

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": _path(), "ATTACK_CLOCK": str(self._path)}


def stopping_at(place: str) -> dict[str, str]:
    """The environment of a process that stops at its first call of ``file.py:function``."""
    return {"PYTHONPATH": _path(), "ATTACK_STOP_AT": place}


def _path() -> str:
    return os.pathsep.join(filter(None, [str(CHILD), os.environ.get("PYTHONPATH")]))


def wait_stopped(server: ServerProcess) -> None:
    """The server, or the process that does its job."""
    wait_for(lambda: _stopped(server), "the server to stop where it was told to")


def let_go_on(server: ServerProcess) -> None:
    for process in _stopped(server):
        process.send_signal(signal.SIGCONT)


def _stopped(server: ServerProcess) -> list[psutil.Process]:
    process = psutil.Process(server.process.pid)
    stopped: list[psutil.Process] = []
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            stopped += [one] * (one.status() == psutil.STATUS_STOPPED)
    return stopped
