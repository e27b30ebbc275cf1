"""A real server process, senders that repeat what was not answered, and the means to kill it."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from searchblend.service.process import VARIABLE

REPORT = "application/vnd.searchblend.report"
REPORTS = "application/vnd.searchblend.reports"
PATIENTLY = ("--database-seconds", "240", "--stop-seconds", "240")
"""beside other work; tests of what is slow give others, which come later and count, and attacks meet what is shipped"""


class ServerProcess:
    """``searchblend serve`` in a process of its own."""

    def __init__(self, folder: Path, where: str, *arguments: str, is_patient: bool = True) -> None:
        self.folder, self.log = folder, folder / "server.log"
        program = [sys.executable, "-m", "searchblend.cli", "serve", "--data-dir", str(folder)]
        self._command = [*program, *(PATIENTLY if is_patient else ()), *arguments]
        self._command += ["--database", where] if where.startswith("postgresql") else []
        self._started: subprocess.Popen[str] | None = None
        self.address = self.health = ""

    def start(self, crash_at: str | None = None, port: int = 0) -> str:
        health = free_port() if port else 0
        environment = {**os.environ, **({VARIABLE: crash_at} if crash_at else {})}
        with self.log.open("ab") as log:
            self._started = subprocess.Popen(
                [*self._command, "--port", str(port), "--health-port", str(health), "--poll-seconds", "0.1"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
            )
        assert self._started.stdout is not None
        with self._started.stdout as output:
            self.address = output.readline().strip()
            if self.address not in ("", "no port"):
                self.health = output.readline().strip().removeprefix("health: ")
        assert self.address, self.log.read_text()[-2000:]
        return self.address

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._started is not None, "the server was not started"
        return self._started

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.wait()

    def wait(self, seconds: float = 240) -> int:
        return self.process.wait(seconds)

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    @property
    def is_running(self) -> bool:
        return self._started is not None and self._started.poll() is None


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


class Senders:
    """Threads that send reports until each was acknowledged; every acknowledgement is written down.

    Each try goes to any of ``addresses``: what one server did not answer, another may count again.

    Args:
        path: Of the round.
        messages: The reports, in this order.
        threads: How many send.
        batch_share: Which share of the requests is a batch.
        seed: Of sizes and addresses.
    """

    def __init__(
        self, path: str, messages: Iterable[bytes], *, threads: int = 4, batch_share: float = 0.5, seed: int = 1
    ) -> None:
        self._path, self._messages = path, list(messages)
        self._n = len(self._messages)
        self._lock = threading.Lock()
        self._random = random.Random(seed)
        self._batch_share = batch_share
        self.acked: set[bytes] = set()
        self.repeated = 0
        self.refused: list[int] = []
        self.addresses: list[str] = []
        self._stop = threading.Event()
        self._released = 0
        self._taken = 0
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]

    def release(self, n: int) -> None:
        """Let so many more be sent."""
        self._released += n

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(240)

    def done(self) -> bool:
        with self._lock:
            return not self._messages and not any(thread.is_alive() for thread in self._threads)

    def caught_up(self) -> bool:
        """Whether all that was released has been acknowledged."""
        with self._lock:
            return len(self.acked) >= min(self._released, self._n)

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self.done() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert self.done(), "not everything was acknowledged"

    def _work(self) -> None:
        wire = _Connection()
        while not self._stop.is_set():
            group = self._take()
            if group is None:
                break
            if not group:
                time.sleep(0.01)
                continue
            while not self._stop.is_set():
                try:
                    status = self._send(wire.to(self._random.choice(self.addresses)), group)
                except (OSError, http.client.HTTPException):
                    wire.close()
                    self.repeated += 1
                    time.sleep(0.01)
                    continue
                if status == 200:
                    with self._lock:
                        self.acked |= {message[-16:] for message in group}
                    break
                if status != 503:
                    self.refused.append(status)
                    break
                time.sleep(0.01)
        wire.close()

    def _take(self) -> list[bytes] | None:
        """The next reports to send, nothing if they were not released yet, None at the end."""
        with self._lock:
            if not self._messages:
                return None
            if self._taken >= self._released:
                return []
            n = self._random.choice((5, 50, 200)) if self._random.random() < self._batch_share else 1
            group, self._messages = self._messages[:n], self._messages[n:]
            self._taken += len(group)
            return group

    def _send(self, connection: http.client.HTTPConnection, group: list[bytes]) -> int:
        path, kind = (f"{self._path}/reports", REPORT) if len(group) == 1 else (f"{self._path}/report-batches", REPORTS)
        connection.request("POST", path, b"".join(group), {"Content-Type": kind})
        answer = connection.getresponse()
        answer.read()
        return answer.status


class _Connection:
    """A connection that follows its server to a new port."""

    def __init__(self) -> None:
        self._address = ""
        self._open: http.client.HTTPConnection | None = None

    def to(self, address: str) -> http.client.HTTPConnection:
        if self._open is None or self._address != address:
            self.close()
            parts = urlsplit(address)
            self._address = address
            self._open = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        return self._open

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None


@contextlib.contextmanager
def running(server: ServerProcess) -> Iterator[ServerProcess]:
    server.start()
    try:
        yield server
    finally:
        if server.is_running:
            server.kill()
