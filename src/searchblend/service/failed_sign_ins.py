"""Failed sign-ins: counted in the audit log without filling a disk, and stopped for an account that has too many.

They share rows of the log, so that no flood of them makes it long. After too many for one account nothing is tried for
it for a while; other accounts do not notice.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Final

from searchblend.service.api.answers import Refusal
from searchblend.service.api.writers import StoreThread
from searchblend.service.clock import Clock
from searchblend.store.service_store import ServiceStore

SIGN_IN_FAILED: Final = "sign-in failed"
SECONDS_BETWEEN_ROWS: Final = 600.0
MOST_FAILURES: Final = 10
LOCKED_SECONDS: Final = 300
_MOST_ACCOUNTS: Final = 10_000
_ACCOUNT_CHARACTERS: Final = 12
"""of a token, its first eight of 43 random ones among them: the account that it claims to be of. What is left to guess
has more than 200 bits, and no stranger can lock an account that they know nothing of"""


class AccountLock:
    """After too many failed attempts for one account nothing is tried for a while. Kept in memory, never logged.

    An account and not an address: behind a proxy all people have one address, and an attacker has many.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[bytes, deque[float]] = OrderedDict()

    def refuse_if_locked(self, token: str) -> None:
        failures = self._failures.get(_account(token), deque())
        while failures and failures[0] < self._clock() - LOCKED_SECONDS:
            failures.popleft()
        if len(failures) >= MOST_FAILURES:
            raise Refusal("rate-limited", f"too many failed attempts; try again in {LOCKED_SECONDS // 60} minutes")

    def failed(self, token: str) -> None:
        account = _account(token)
        self._failures.setdefault(account, deque(maxlen=MOST_FAILURES)).append(self._clock())
        self._failures.move_to_end(account)
        if len(self._failures) > _MOST_ACCOUNTS:
            self._failures.popitem(last=False)

    def forgive(self, token: str) -> None:
        self._failures.pop(_account(token), None)


def _account(token: str) -> bytes:
    return hashlib.sha256(token[:_ACCOUNT_CHARACTERS].encode("utf-8", "surrogateescape")).digest()


class FailedSignIns:
    """Those of one server process.

    The first one is written at once. Those that follow share a row, which is written when some minutes have passed, or
    when the server ends. Of whoever failed nothing is kept: no token, no address.
    """

    def __init__(
        self, thread: StoreThread, clock: Clock, on_error: Callable[[Exception], None], *, seconds: float
    ) -> None:
        self._thread, self._clock, self._on_error, self._seconds = thread, clock, on_error, seconds
        self._failed: Counter[str] = Counter()
        self.lock = AccountLock()
        self._waiting: asyncio.Task[None] | None = None
        self._writing: set[asyncio.Task[None]] = set()

    async def add(self, where: str) -> None:
        """``where``: the admin API or the console."""
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
        await asyncio.gather(*self._writing)
        await self._write()

    async def _wait(self) -> None:
        await asyncio.sleep(self._seconds)
        while self._failed:
            await self._write()
            await asyncio.sleep(self._seconds)

    async def _write(self) -> None:
        """A write outlives whoever waits for it: a request, or the wait that ``stop`` breaks off."""
        if self._failed:
            failed, self._failed = self._failed, Counter()
            writing = asyncio.create_task(self._record(failed))
            self._writing.add(writing)
            writing.add_done_callback(self._writing.discard)
            await asyncio.shield(writing)

    async def _record(self, failed: Counter[str]) -> None:
        now = self._clock.now()
        try:
            await self._thread.call(lambda store: record_failures(store, failed, now))
        except Exception as error:  # the log can wait, but the answer that the token is wrong cannot
            self._failed.update(failed)
            self._on_error(error)


def record_failures(store: ServiceStore, failed: Mapping[str, int], now: int) -> None:
    store.audit.append("unknown", SIGN_IN_FAILED, now, {"failures": dict(failed)})
