"""A store with a thread of its own, so that the event loop never waits for a database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from searchblend.store.service_store import ServiceStore, open_database

T = TypeVar("T")
DATABASE_SECONDS: Final = 15.0


class StoreThread:
    """Calls functions of the store one after another. None waits for the database longer than ``seconds``."""

    def __init__(
        self,
        where: str,
        name: str,
        on_point: Callable[[str], None] = lambda point: None,
        seconds: float = DATABASE_SECONDS,
    ) -> None:
        self._where, self._on_point, self._seconds = where, on_point, seconds
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._store: ServiceStore | None = None

    async def call(self, function: Callable[[ServiceStore], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._run, function)

    def _run(self, function: Callable[[ServiceStore], T]) -> T:
        if self._store is None:
            self._store = ServiceStore(open_database(self._where, create=False, seconds=self._seconds), self._on_point)
        return function(self._store)

    async def close(self) -> None:
        def close(store: ServiceStore) -> None:
            store.close()

        if self._store is not None:
            await self.call(close)
        self._executor.shutdown(cancel_futures=True)
