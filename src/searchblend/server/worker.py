"""The loop that moves rounds on: the clock's arrows, leased jobs, manifests. Any number of workers may run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Protocol

from searchblend.errors import SearchblendError
from searchblend.server.clock import Clock
from searchblend.server.lifecycle import Lifecycle
from searchblend.server.logbook import Logbook
from searchblend.server.metrics import Metrics
from searchblend.store.jobs import Job
from searchblend.store.service_store import ServiceStore
from searchblend.store.store_errors import LeaseLost, StoreUnavailable, WrongState

LEASE_SECONDS: Final = 300
_LONGEST_WAIT: Final = 300


class Runner(Protocol):
    """Something that runs jobs of some kinds."""

    @property
    def KINDS(self) -> tuple[str, ...]: ...  # noqa: N802  # a constant of its classes

    def run(self, job: Job) -> None: ...


class Worker:
    """One thread's work."""

    def __init__(
        self,
        store: ServiceStore,
        clock: Clock,
        runners: list[Runner],
        *,
        tick: bool,
        each_time: list[Callable[[], int]],
        logbook: Logbook,
        metrics: Metrics,
    ) -> None:
        self._store, self._clock, self._runners = store, clock, runners
        self._lifecycle = Lifecycle(store, clock) if tick else None
        self._each_time, self._logbook, self._metrics = each_time, logbook, metrics

    def run_once(self) -> int:
        """Everything that can be done now; how many things were."""
        done = 0
        if self._lifecycle:
            done += self._lifecycle.tick()
        while self._run_job():
            done += 1
        for step in self._each_time:
            done += step()
        return done

    def run_until(self, stop: threading.Event, *, every: float) -> None:
        while not stop.is_set():
            try:
                done = self.run_once()
            except StoreUnavailable as error:
                self._logbook.failure("database out of reach", error)
                done = 0
            except Exception as error:  # the loop must outlive whatever a job does
                self._logbook.failure("worker failed", error)
                done = 0
            if not done:
                stop.wait(every)

    def _run_job(self) -> bool:
        kinds = {kind: runner for runner in self._runners for kind in runner.KINDS}
        job = self._store.jobs.lease(list(kinds), self._clock.now(), LEASE_SECONDS) if kinds else None
        if job is None:
            return False
        try:
            kinds[job.kind].run(job)
        except (LeaseLost, WrongState) as error:
            self._logbook.failure("job overtaken", error, job=job.kind)
            self._retry_later(job)
        except StoreUnavailable:
            raise
        except (SearchblendError, ArithmeticError, ValueError, KeyError) as error:
            self._logbook.failure("job failed", error, job=job.kind, attempt=job.attempts)
            self._metrics.count("jobs_total", result="failed")
            self._retry_later(job)
        else:
            self._logbook.write("job done", job=job.kind, attempt=job.attempts)
            self._metrics.count("jobs_total", result="done")
        return True

    def _retry_later(self, job: Job) -> None:
        self._store.jobs.give_back(job, self._clock.now() + min(2**job.attempts, _LONGEST_WAIT))
