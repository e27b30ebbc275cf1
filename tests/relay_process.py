"""A real ``searchblend relay`` in a process of its own, and what its log and its wire show."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path


class RelayProcess:
    """Started with ``--listen 127.0.0.1:0``; ``address`` is where devices ask."""

    def __init__(self, folder: Path, gateway: str, *arguments: str) -> None:
        self.log = folder / "relay.log"
        command = [sys.executable, "-m", "searchblend.cli", "relay", "--listen", "127.0.0.1:0", "--gateway", gateway]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *arguments], stdout=subprocess.PIPE, stderr=log, text=True, env=dict(os.environ)
            )
        assert self.process.stdout is not None
        with self.process.stdout as output:
            self.address = output.readline().strip()
            self.health = output.readline().strip().removeprefix("health: ")
        assert self.address, self.log.read_text()[-2000:]

    def wait_until_ready(self) -> None:
        """Until it has the gateway's key."""
        deadline = time.monotonic() + 240
        while self.status("/readyz") != 200:
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            assert time.monotonic() < deadline, "the relay never found its gateway"
            time.sleep(0.05)

    def status(self, path: str) -> int:
        try:
            with urllib.request.urlopen(self.health + path, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def metrics(self) -> str:
        with urllib.request.urlopen(f"{self.health}/metrics", timeout=60) as answer:
            content: bytes = answer.read()
        return content.decode()

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(240)


@contextlib.contextmanager
def relaying(folder: Path, gateway: str, *arguments: str) -> Iterator[RelayProcess]:
    relay = RelayProcess(folder, gateway, *arguments)
    try:
        yield relay
    finally:
        if relay.process.poll() is None:
            relay.process.kill()
            relay.process.wait(240)
