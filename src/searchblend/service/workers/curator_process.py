"""The curator's jobs, each in a process of its own that ends with the job.

A round's private key and opened records are in that process's memory and in no other: overwriting them is not in an
interpreter's power, but the operating system takes the whole memory away when the process ends. The process that waits
for it, and lives on for months, holds neither at any time.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from searchblend.core.documents import decode
from searchblend.core.errors import RunError, SearchblendError
from searchblend.service.actions import JOB_ARROWS
from searchblend.service.clock import Clock
from searchblend.service.process import crash_points, no_core_files
from searchblend.service.settings import ServeSettings
from searchblend.service.workers.curator import CURATOR, Curator
from searchblend.service.workers.signing_keys import keep_passed_on, make_curator_key, passed_on_passphrase
from searchblend.service.workers.vault import Vault
from searchblend.store.errors import LeaseLost, StoreUnavailable, WrongState
from searchblend.store.jobs import LeasedJob
from searchblend.store.service_store import ServiceStore, open_store
from searchblend.wire.canonical import json_bytes

_PASSED_ON: Final = {kind.__name__: kind for kind in (StoreUnavailable, LeaseLost, WrongState)}
"""errors that the worker handles each in its own way"""
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


def make_curator(settings: ServeSettings, store: ServiceStore, clock: Clock, *, anonymous_intake: bool) -> Curator:
    vault = Vault(settings.vault_folder)
    signer = make_curator_key(settings.vault_folder, settings.key_passphrase)
    return Curator(store, clock, vault, signer, anonymous_intake=anonymous_intake)


@dataclass(frozen=True)
class CuratorRequest:
    """What the child process is asked to do, on its standard input."""

    settings: ServeSettings
    now: int
    job: LeasedJob
    anonymous: bool
    passphrase: str = field(default="", repr=False)
    """what the parent has read from a descriptor"""


class FailedElsewhere(RunError):
    """A job failed in the curator's process; ``kind`` is the class that its error had there."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message or f"the curator's process: {kind}")


class CuratorProcess:
    """Runs the curator's jobs elsewhere, one after another."""

    kinds: Final = tuple(arrow.job for arrow in JOB_ARROWS if arrow.worker == CURATOR)

    def __init__(
        self,
        settings: ServeSettings,
        clock: Clock,
        excluded_jobs: Callable[[], Collection[tuple[int, str]]],
        *,
        anonymous_intake: bool,
    ) -> None:
        self._settings, self._clock, self.excluded_jobs = settings, clock, excluded_jobs
        self._anonymous_intake = anonymous_intake

    def run(self, job: LeasedJob) -> None:
        # By its standard input: every user may see the arguments of a process, and a URL may hold a password.
        passphrase = passed_on_passphrase(self._settings.key_passphrase)
        request = CuratorRequest(self._settings, self._clock.now(), job, self._anonymous_intake, passphrase)
        command = [sys.executable, "-P", "-m", "searchblend.service.workers.curator_process", str(os.getpid())]
        ended = subprocess.run(  # noqa: S603  # ourselves
            command,
            input=json_bytes(request),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
            check=False,
        )
        _raise_again(ended.stdout)


def _raise_again(answer: bytes) -> None:
    try:
        kind, message = json.loads(answer)
    except ValueError:
        raise RunError("the curator's process ended without an answer") from None
    if kind in _PASSED_ON:
        raise _PASSED_ON[kind](message)
    if kind:
        raise FailedElsewhere(kind, message)


class _GivenClock:
    """The time of whoever asked, which may know better than the machine's clock."""

    def __init__(self, now: int) -> None:
        self._ahead = now - time.monotonic()

    def now(self) -> int:
        return int(self._ahead + time.monotonic())


def _run(request: CuratorRequest, parent: int) -> tuple[str, str]:
    """Run the job; the class of the error that ended it, and its message if it is ours, which quotes no data."""
    settings, clock = request.settings, _GivenClock(request.now)
    keep_passed_on(settings.key_passphrase, request.passphrase)
    try:
        with open_store(settings.where, on_point=crash_points(and_then=parent)) as store:
            make_curator(settings, store, clock, anonymous_intake=request.anonymous).run(request.job)
    except SearchblendError as error:
        return type(error).__name__, str(error)
    except Exception as error:
        return type(error).__name__, ""
    return "", ""


def _end_with(parent: int) -> None:
    """If the process that waits for the job is killed, keys and records have no business here."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def main() -> None:
    no_core_files()
    parent = int(sys.argv[1])
    _end_with(parent)
    print(json.dumps(_run(decode(CuratorRequest, json.load(sys.stdin)), parent)))


if __name__ == "__main__":
    main()
