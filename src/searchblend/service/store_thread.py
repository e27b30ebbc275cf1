"""A store with a thread of its own, so that the event loop never waits for a database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from searchblend.store.service_store import ServiceStore, open_database

T = TypeVar("T")
DATABASE_SECONDS: Final = 15.0
_LONGEST_REST: Final = 2.0


class StoreThread:
    """Calls functions of the store one after another. None waits for the database longer than ``seconds``.

    With ``rest`` it pauses between calls, so many times as long as the last one took: what anybody may ask for, as
    often as they like, gets that share of the interpreter and no more.
    """

    def __init__(
        self,
        where: str,
        name: str,
        on_point: Callable[[str], None] = lambda point: None,
        seconds: float = DATABASE_SECONDS,
        rest: float = 0.0,
    ) -> None:
        self._where, self._on_point, self._seconds = where, on_point, seconds
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._store: ServiceStore | None = None
        self._rest, self._rests_until = rest, 0.0

    async def call(self, function: Callable[[ServiceStore], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._run, function)

    def _run(self, function: Callable[[ServiceStore], T]) -> T:
        started = time.monotonic()
        if started < self._rests_until:
            time.sleep(self._rests_until - started)
            started = time.monotonic()
        try:
            return self._call(function)
        finally:
            ended = time.monotonic()
            self._rests_until = ended + min(self._rest * (ended - started), _LONGEST_REST)

    def _call(self, function: Callable[[ServiceStore], T]) -> T:
        if self._store is None:
            self._store = ServiceStore(open_database(self._where, create=False, seconds=self._seconds), self._on_point)
        return function(self._store)

    async def close(self) -> None:
        def close(store: ServiceStore) -> None:
            store.close()

        if self._store is not None:
            await self.call(close)
        self._executor.shutdown(cancel_futures=True)
