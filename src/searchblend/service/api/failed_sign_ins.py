"""Failed sign-ins, for the audit log: all are counted there, and no flood of them can fill a disk.

The first one is written at once. Those that follow share a row, which is written when some minutes have passed, or
when the server ends. Of whoever failed nothing is kept: no token, no address.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from searchblend.service.clock import Clock
from searchblend.service.store_thread import StoreThread
from searchblend.store.service_store import ServiceStore

SIGN_IN_FAILED: Final = "sign-in failed"
NOBODY: Final = "unknown"
SECONDS_BETWEEN_ROWS: Final = 600.0


class FailedSignIns:
    """Of one server process."""

    def __init__(
        self, thread: StoreThread, clock: Clock, on_error: Callable[[Exception], None], *, seconds: float
    ) -> None:
        self._thread, self._clock, self._on_error, self._seconds = thread, clock, on_error, seconds
        self._failed: Counter[str] = Counter()
        self._waiting: asyncio.Task[None] | None = None

    async def add(self, where: str) -> None:
        """``where``: by which of our doors somebody tried to come in."""
        self._failed[where] += 1
        if self._waiting is None or self._waiting.done():
            self._waiting = asyncio.create_task(self._wait())
            await self._write()

    async def stop(self) -> None:
        """Write what waits."""
        if self._waiting:
            self._waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._waiting
        await self._write()

    async def _wait(self) -> None:
        await asyncio.sleep(self._seconds)
        while self._failed:
            await self._write()
            await asyncio.sleep(self._seconds)

    async def _write(self) -> None:
        if not self._failed:
            return
        failed, self._failed = self._failed, Counter()
        now = self._clock.now()
        try:
            await self._thread.call(lambda store: record_failures(store, failed, now))
        except Exception as error:  # the log can wait, but who tries to sign in must hear that the token is wrong
            self._failed.update(failed)
            self._on_error(error)


def record_failures(store: ServiceStore, failed: Mapping[str, int], now: int) -> None:
    store.audit.append(NOBODY, SIGN_IN_FAILED, now, {"failures": dict(failed)})
