"""The loop that moves rounds on: the clock's arrows, leased jobs, manifests. Any number of workers may run.

One round's trouble is its own: whatever a step does, the others are taken in the same pass. A job that the database
interrupted is taken up again within seconds; one that fails by itself is tried a few times, and then ends its round.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, Protocol

from searchblend.blender.release import HeadFigures
from searchblend.core.errors import RunError
from searchblend.service.actions import JOB_ARROWS
from searchblend.service.clock import Clock
from searchblend.service.lifecycle import REVIEWED, Lifecycle
from searchblend.service.process import Stop
from searchblend.service.round_model import decode_figures
from searchblend.service.telemetry import Logbook, ServiceMetrics, kind_of
from searchblend.store.errors import LeaseLost, StoreError, StoreUnavailable, WrongState
from searchblend.store.jobs import LeasedJob
from searchblend.store.rounds import Round
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import ENDED

LEASE_SECONDS: Final = 300
MOST_ATTEMPTS: Final = 8
"""of a job that fails by itself: about four minutes of trying"""
INTERRUPTED_SECONDS: Final = 2
"""until a job that the database interrupted is tried again"""
POSTPONED_SECONDS: Final = 30
"""until a job that waits for someone outside is tried again"""
WORKER: Final = "worker"
_LONGEST_WAIT: Final = 300
_NEVER_GIVEN_UP: Final = "shred"
"""also the one job that is done whatever the state of its round"""
_BEFORE: Final = {arrow.job: arrow.before for arrow in JOB_ARROWS}
Step = Callable[[LeasedJob, Round], None]


class Postponed(RunError):
    """What a job needs is not in the service's hands, and away: it is tried again however long that takes."""


class Runner(Protocol):
    """Something that runs jobs of some kinds."""

    @property
    def kinds(self) -> tuple[str, ...]: ...

    def run(self, job: LeasedJob) -> None: ...

    def excluded_jobs(self) -> Collection[tuple[int, str]]:
        """Round key and kind of jobs that another process has to do."""
        ...


class RoundJobs:
    """Runs the jobs that the table of arrows gives to one worker; ``steps`` has a function for each."""

    def __init__(self, store: ServiceStore, clock: Clock, name: str, steps: Mapping[str, Step]) -> None:
        self._store, self._clock, self._name, self._steps = store, clock, name, steps
        self._lifecycle = Lifecycle(store, clock)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self._steps)

    def run(self, job: LeasedJob) -> None:
        """A job whose round has left the state that its arrow begins in was overtaken: it ends, and nothing is done."""
        round_ = self._store.rounds.by_key(job.round_key)
        if job.kind == _NEVER_GIVEN_UP or round_.state is _BEFORE[job.kind]:
            self._steps[job.kind](job, round_)
        else:
            with self._store.transaction():
                self._store.jobs.finish(job)

    def excluded_jobs(self) -> Collection[tuple[int, str]]:
        return ()

    def _reviewed_list(self, round_: Round) -> HeadFigures:
        content = self._store.artifacts.kept(round_.key, REVIEWED)
        if content is None:
            raise StoreError("the reviewed list is missing")
        return decode_figures(content)

    def _give_up(self, job: LeasedJob, round_: Round, reason: str, numbers: Mapping[str, int] | None = None) -> None:
        """End the round; ``numbers`` go to the audit log, which only the operator's people read."""
        with self._store.transaction():
            self._store.jobs.finish(job)
            self._lifecycle.abort(round_, actor=self._name, reason=reason, detail=numbers)


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
        first: Sequence[Callable[[], int]] = (),
        logbook: Logbook,
        metrics: ServiceMetrics,
    ) -> None:
        self._store, self._clock, self._runners = store, clock, runners
        self._lifecycle, self._logbook, self._metrics = Lifecycle(store, clock), logbook, metrics
        ticks = [lambda: self._lifecycle.tick(self._tick_failed)] if tick else []
        # ``first``: what asks no database, since the rest of a pass ends when that is away, and what jobs rest on.
        self._steps: list[Callable[[], int]] = [*first, *ticks, self._run_jobs, *each_time]
        self._interrupted: list[LeasedJob] = []

    def run_once(self) -> int:
        """Everything that can be done now; how many things were. A step that fails keeps no other from its turn."""
        done = 0
        for step in self._steps:
            try:
                done += step()
            except StoreUnavailable:
                raise
            except Exception as error:  # the others' deadlines must be kept whatever one step does
                self._logbook.failure("worker failed", error)
        return done

    def run_until(self, stop: Stop, *, every: float) -> None:
        while not stop.is_set():
            try:
                done = self.run_once()
            except StoreUnavailable as error:
                self._logbook.failure("database out of reach", error)
                done = 0
            if not done:
                stop.wait(every)

    def _run_jobs(self) -> int:
        self._give_back_interrupted()
        kinds = {kind: runner for runner in self._runners for kind in runner.kinds}
        done = 0
        while job := self._lease(list(kinds)):
            self._run(kinds[job.kind], job)
            done += 1
        return done

    def _lease(self, kinds: list[str]) -> LeasedJob | None:
        if not kinds:
            return None
        exclude = [job for runner in self._runners for job in runner.excluded_jobs()]
        return self._store.jobs.lease(kinds, self._clock.now(), LEASE_SECONDS, exclude=exclude)

    def _run(self, runner: Runner, job: LeasedJob) -> None:
        try:
            runner.run(job)
        except StoreUnavailable:
            self._interrupted.append(job)
            raise
        except Postponed as error:
            self._logbook.failure("job postponed", error, job=job.kind)
            self._store.jobs.give_back(job, self._clock.now() + POSTPONED_SECONDS, counted=False)
        except (LeaseLost, WrongState) as error:
            self._logbook.failure("job overtaken", error, job=job.kind)
            self._retry_later(job)
        except Exception as error:  # a job may fail in any way; the loop and the other jobs go on
            self._logbook.failure("job failed", error, job=job.kind, attempt=job.attempts)
            self._metrics.count("jobs_total", result="failed")
            if job.attempts < MOST_ATTEMPTS or job.kind == _NEVER_GIVEN_UP:
                self._retry_later(job)
            else:
                self._end_round(job, error)
        else:
            self._logbook.write("job done", job=job.kind, attempt=job.attempts)
            self._metrics.count("jobs_total", result="done")

    def _end_round(self, job: LeasedJob, error: Exception) -> None:
        """The job fails for good: its round ends, and the audit log says at which job and by which kind of error."""
        detail = {"job": job.kind, "attempts": job.attempts, "error": kind_of(error)}
        with self._store.transaction():
            self._store.jobs.finish(job)
            round_ = self._store.rounds.by_key(job.round_key)
            if round_.state not in ENDED:
                self._lifecycle.abort(round_, actor=WORKER, reason="job-failed", detail=detail)

    def _retry_later(self, job: LeasedJob) -> None:
        self._store.jobs.give_back(job, self._clock.now() + min(2**job.attempts, _LONGEST_WAIT))

    def _give_back_interrupted(self) -> None:
        """Jobs whose database was away: they need not wait for the end of their leases, and no attempt is counted."""
        while self._interrupted:
            self._store.jobs.give_back(self._interrupted[-1], self._clock.now() + INTERRUPTED_SECONDS, counted=False)
            self._interrupted.pop()

    def _tick_failed(self, error: Exception, task: str) -> None:
        self._logbook.failure("tick failed", error, task=task)


class WorkerThread:
    """``begin`` opens a store and gives its worker; it is called until it succeeds."""

    def __init__(
        self, begin: Callable[[], contextlib.AbstractContextManager[Worker]], logbook: Logbook, *, every: float
    ) -> None:
        self._begin, self._logbook, self._every = begin, logbook, every
        self._stop, self._begun = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)

    def is_working(self) -> bool:
        """Whether anything takes care of the clock's arrows, shredding and manifests now."""
        return self._thread.is_alive() and self._begun.is_set()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self._begin() as worker:
                    self._begun.set()
                    worker.run_until(self._stop, every=self._every)
            except Exception as error:  # without its worker a server would take records that are not destroyed in time
                self._logbook.failure("worker cannot work", error)
                self._stop.wait(self._every)
            finally:
                self._begun.clear()
