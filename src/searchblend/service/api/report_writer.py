"""Group commit: requests wait for the commit that holds their reports, and one thread commits all that wait.

While one commit is on its way to the disk the next group gathers, so the groups grow with the load by themselves. What
waits is bounded: beyond it a request is turned away before anything was kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from searchblend.service.api.answers import Refusal
from searchblend.service.clock import Clock
from searchblend.service.metrics import ServiceMetrics
from searchblend.service.store_thread import StoreThread
from searchblend.store.reports import Arrivals, ReportOutcome
from searchblend.store.service_store import ServiceStore

MOST_WAITING: Final = 20_000
MOST_IN_A_COMMIT: Final = 8_000
_FLUSH_SECONDS: Final = 1.0


@dataclass(frozen=True)
class SealedArrival:
    """A sealed opt-in record, waiting for a commit."""

    round_key: int
    tag: bytes
    sealed: bytes


class ReportWriter:
    """The one who writes reports, in each server process."""

    def __init__(
        self,
        thread: StoreThread,
        clock: Clock,
        metrics: ServiceMetrics,
        *,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._thread = thread
        self._clock, self._metrics, self._most_waiting = clock, metrics, most_waiting
        self._waiting: deque[tuple[Arrivals, asyncio.Future[ReportOutcome]]] = deque()
        self._n_waiting = 0
        self._sealed: list[tuple[SealedArrival, asyncio.Future[str]]] = []
        self._refused: Counter[tuple[int, str]] = Counter()
        self._wake: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self) -> None:
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Commit what waits, then close."""
        self._stopping = True
        if self._wake and self._task:
            self._wake.set()
            await self._task
        await self._thread.close()

    async def add(self, arrivals: Arrivals) -> ReportOutcome:
        """What became of them; returns after the commit."""
        n = len(arrivals.ids)
        if self._n_waiting + n > self._most_waiting or self._stopping or self._wake is None:
            raise Refusal("overloaded")
        future: asyncio.Future[ReportOutcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((arrivals, future))
        self._n_waiting += n
        self._wake.set()
        return await future

    async def contribute(self, arrival: SealedArrival) -> str:
        """What became of a sealed record (``Contributions.add``); returns after the commit."""
        if len(self._sealed) >= self._most_waiting or self._stopping or self._wake is None:
            raise Refusal("overloaded")
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._sealed.append((arrival, future))
        self._wake.set()
        return await future

    def refuse(self, round_key: int, reason: str, n: int = 1) -> None:
        """Count a refusal; written with one of the next commits."""
        self._refused[round_key, reason] += n
        self._metrics.count("reports_total", n, result=reason)

    @property
    def n_waiting(self) -> int:
        return self._n_waiting

    async def _run(self) -> None:
        assert self._wake is not None
        while not (self._stopping and not self._waiting and not self._sealed):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _FLUSH_SECONDS)
            self._wake.clear()
            while self._waiting or self._sealed:
                if self._waiting:
                    await self._commit(self._take())
                if self._sealed:
                    await self._commit_sealed()
            if self._refused:
                await self._flush()

    def _take(self) -> list[tuple[Arrivals, asyncio.Future[ReportOutcome]]]:
        group: list[tuple[Arrivals, asyncio.Future[ReportOutcome]]] = []
        size = 0
        while self._waiting and (not group or size + len(self._waiting[0][0].ids) <= MOST_IN_A_COMMIT):
            group.append(self._waiting.popleft())
            size += len(group[-1][0].ids)
        self._n_waiting -= size
        return group

    async def _commit(self, group: list[tuple[Arrivals, asyncio.Future[ReportOutcome]]]) -> None:
        arrivals, now = [entry for entry, _ in group], self._clock.now()

        def add(store: ServiceStore) -> list[ReportOutcome]:
            return store.reports.add(arrivals, now)

        started = time.perf_counter()
        try:
            outcomes = await self._thread.call(add)
        except Exception as error:
            _fail([future for _, future in group], error)
            return
        self._metrics.commit_took(time.perf_counter() - started)
        for (entry, future), outcome in zip(group, outcomes, strict=True):
            if outcome is ReportOutcome.TAKEN:
                self._metrics.count("reports_total", len(entry.ids), result="accepted")
            if not future.done():
                future.set_result(outcome)

    async def _commit_sealed(self) -> None:
        group, self._sealed = self._sealed, []
        now = self._clock.now()

        def add(store: ServiceStore) -> list[str]:
            with store.database.transaction(exclusive=False):
                return [
                    store.contributions.add(arrival.round_key, arrival.tag, arrival.sealed, now) for arrival, _ in group
                ]

        try:
            outcomes = await self._thread.call(add)
        except Exception as error:
            _fail([future for _, future in group], error)
            return
        for (_, future), outcome in zip(group, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)

    async def _flush(self) -> None:
        reasons, self._refused = dict(self._refused), Counter()

        def refuse(store: ServiceStore) -> None:
            store.reports.refuse(reasons)

        try:
            await self._thread.call(refuse)
        except Exception:
            self._refused.update(reasons)  # statistics only: they can wait
            await asyncio.sleep(_FLUSH_SECONDS)


def _fail(futures: Sequence[asyncio.Future[Any]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
