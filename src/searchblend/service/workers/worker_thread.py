"""A worker beside the HTTP server: what keeps it from starting is tried again, and others can ask whether it works."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from searchblend.service.logbook import Logbook
from searchblend.service.workers.worker import Worker


class WorkerThread:
    """``begin`` opens a store and gives its worker; it is called until it succeeds."""

    def __init__(
        self, begin: Callable[[], contextlib.AbstractContextManager[Worker]], logbook: Logbook, *, every: float
    ) -> None:
        self._begin, self._logbook, self._every = begin, logbook, every
        self._stop, self._begun = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)

    def is_working(self) -> bool:
        """Whether the clock's arrows, shredding and manifests are somebody's business now."""
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
            except Exception as error:  # without its worker a server would take records that nobody destroys in time
                self._logbook.failure("worker cannot work", error)
                self._stop.wait(self._every)
            finally:
                self._begun.clear()
