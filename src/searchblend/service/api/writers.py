"""The event loop never waits for a database: a store with a thread of its own, and two queues in front of one.

Reports are committed in groups: requests wait for the commit that holds their reports, and one thread commits all that
wait. While one commit is on its way to the disk the next group gathers, so the groups grow with the load by themselves.
What waits is bounded: beyond it a request is turned away before anything was kept.

Failed sign-ins share rows of the audit log, so that all are counted there and no flood of them can fill a disk. After
too many for one account nothing is tried for it for a while; other accounts do not notice.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
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
SIGN_IN_FAILED: Final = "sign-in failed"
SECONDS_BETWEEN_ROWS: Final = 600.0
MOST_FAILURES: Final = 10
LOCKED_SECONDS: Final = 300
_MOST_ACCOUNTS: Final = 10_000
_ACCOUNT_CHARACTERS: Final = 12
"""of a token, its first eight of 43 random ones among them: the account that it claims to be of. What is left to guess
has more than 200 bits, and no stranger can lock an account that they know nothing of"""


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
