"""The event loop never waits for a database: a store with a thread of its own, and a queue of reports before it.

Reports are committed in groups: requests wait for the commit that holds their reports, and one thread commits all that
wait. While one commit is on its way to the disk the next group gathers, so the groups grow with the load by themselves.
What waits is bounded: beyond it a request is turned away before anything was kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar

from searchblend.service.api.answers import Refusal
from searchblend.service.clock import Clock
from searchblend.service.telemetry import ServiceMetrics
from searchblend.store.reports import Arrivals, ReportOutcome
from searchblend.store.service_store import ServiceStore, open_database

T = TypeVar("T")
DATABASE_SECONDS: Final = 15.0
_LONGEST_REST: Final = 2.0
MOST_WAITING: Final = 20_000
MOST_IN_A_COMMIT: Final = 8_000
_FLUSH_SECONDS: Final = 1.0


class StoreThread:
    """Calls functions of the store one after another. None waits for the database longer than ``seconds``.

    With ``rest`` it pauses after each call, for that many times as long as the call took: what is public may be asked
    for without limit, and gets that share of the interpreter and no more.
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
        if self._store is not None:
            await self.call(ServiceStore.close)
        self._executor.shutdown(cancel_futures=True)


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

    async def add_all(self, group: Collection[Arrivals]) -> list[ReportOutcome]:
        """What became of each, or none of them is kept because too much waits already."""
        if self._n_waiting + sum(len(arrivals.ids) for arrivals in group) > self._most_waiting:
            raise Refusal("overloaded")
        return await asyncio.gather(*(self.add(arrivals) for arrivals in group))

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
        if self._refused:  # while the last ones were written
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
        arrivals, now, started = [arrival for arrival, _ in group], self._clock.now(), time.perf_counter()
        outcomes = await self._settle(lambda store: store.reports.add(arrivals, now), [future for _, future in group])
        if outcomes is not None:
            self._metrics.commit_took(time.perf_counter() - started)
            taken = sum(len(arrivals[i].ids) for i, outcome in enumerate(outcomes) if outcome is ReportOutcome.TAKEN)
            if taken:
                self._metrics.count("reports_total", taken, result="accepted")

    async def _commit_sealed(self) -> None:
        group, self._sealed = self._sealed, []
        now = self._clock.now()

        def add(store: ServiceStore) -> list[str]:
            with store.database.transaction(exclusive=False):
                return [store.contributions.add(each.round_key, each.tag, each.sealed, now) for each, _ in group]

        await self._settle(add, [future for _, future in group])

    async def _settle(
        self, commit: Callable[[ServiceStore], list[T]], waiting: Sequence[asyncio.Future[T]]
    ) -> list[T] | None:
        """Commit, and hand each waiting request its outcome; None if the commit failed, whose error they get."""
        try:
            outcomes = await self._thread.call(commit)
        except Exception as error:
            for future in waiting:
                if not future.done():
                    future.set_exception(error)
            return None
        for future, outcome in zip(waiting, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)
        return outcomes

    async def _flush(self) -> None:
        reasons, self._refused = dict(self._refused), Counter()
        try:
            await self._thread.call(lambda store: store.reports.refuse(reasons))
        except Exception:
            self._refused.update(reasons)  # statistics only: they can wait
            await asyncio.sleep(_FLUSH_SECONDS)
