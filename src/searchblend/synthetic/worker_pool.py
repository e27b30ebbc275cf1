"""Processes that work for a command, and what Ctrl-C does to them.

A terminal sends the interrupt to parent and workers alike. Python's own pool lets each worker answer it with a
traceback, and lets the parent wait for what is under way. Here a worker hears it in the middle of a task alone, where
it ends the task as an exception that cleans up; the parent prints what there is to say.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_INTERRUPTS: Final[list[int]] = []
"""what this worker was told"""


class WorkerPool(ProcessPoolExecutor):
    """Spawned workers; for a ``with``, which waits for what is under way and forgets the rest if it fails."""

    def __init__(self, workers: int, initializer: Callable[..., object] | None = None, *arguments: Any) -> None:
        super().__init__(workers, multiprocessing.get_context("spawn"), initializer, arguments)

    def submit(self, task: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        with _leaving_interrupts_to_the_parent():  # a task may start a worker
            return super().submit(_interruptible, task, args, kwargs)

    def __exit__(self, *exception: object) -> None:
        self.shutdown(cancel_futures=exception[0] is not None)


def _interruptible(task: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    """In a worker: a task that an interrupt ends. Those that wait in the worker's queue then end as they begin.

    Before the first task interrupts are blocked, between tasks they are remembered.
    """
    try:
        signal.signal(signal.SIGINT, _end_task)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        if _INTERRUPTS:
            raise KeyboardInterrupt
        return task(*args, **kwargs)
    finally:
        signal.signal(signal.SIGINT, lambda number, _: _INTERRUPTS.append(number))


def _end_task(number: int, _: object) -> NoReturn:
    _INTERRUPTS.append(number)
    raise KeyboardInterrupt


@contextlib.contextmanager
def _leaving_interrupts_to_the_parent() -> Iterator[None]:
    """Workers that start here never hear Ctrl-C, which they would answer with a traceback, not even while they start.

    A child inherits what the thread that starts it has blocked. Another thread of the parent may still be told, so
    there the interrupt is kept until the workers have all they need.
    """
    told: list[int] = []
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda number, _: told.append(number)) if is_main else None
    try:
        yield
    finally:
        if is_main:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if told:
            signal.raise_signal(signal.SIGINT)
