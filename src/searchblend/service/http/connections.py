"""Bounds on what strangers may hold of this process: connections, time, and bytes of half-sent requests.

A connection is *waiting* while its peer has to act: it has sent nothing yet, a part of a request, nothing more since
the last answer, or it does not read. Every wait has a deadline. Where there are too many connections, or too many bytes
of half-sent requests, the longest wait ends first: new connections are served, however many silent ones there are.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

MOST_HELD_BYTES: Final = 128 * 2**20
"""of requests that are not answered yet, and of answers that are not read yet, in all connections together"""
SILENT: Final = "silent"
HALF_SENT: Final = "half-sent"
IDLE: Final = "idle"
NOT_READING: Final = "not-reading"
CROWDED: Final = "crowded"
"""why a connection was cut; the names are values of a metric's label"""


class Connection(Protocol):
    """Something with a socket."""

    held_bytes: int
    """of its request"""
    answer: bytes
    """what is being sent; several connections may send the same object"""

    def abort(self) -> None:
        """Close at once, whatever was not sent yet."""
        ...


class Connections:
    """All connections of a server. Belongs to the thread of its event loop.

    Args:
        most: how many may be open
        seconds: how long a peer may take to send a request, to send the next one, to take the next piece of an answer
        on_cut: called with the reason when a connection is cut
        now: the clock
    """

    def __init__(
        self,
        most: int = 4_000,
        seconds: float = 30.0,
        on_cut: Callable[[str], None] = lambda reason: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds = seconds
        self._most, self._on_cut, self._now = most, on_cut, now
        self._open: set[Connection] = set()
        self._waiting: dict[Connection, tuple[str, float]] = {}
        """reason and deadline, the longest wait first"""
        self._held = 0
        self._answers: Counter[int] = Counter()
        """how many connections send the answer with this identity"""

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> None:
        self._open.add(connection)
        self.wait(connection, SILENT)
        if len(self._open) > self._most:
            self._cut(next(iter(self._waiting)), CROWDED)

    def remove(self, connection: Connection) -> None:
        self.release(connection)
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def wait(self, connection: Connection, reason: str) -> None:
        """From now on it is the peer's turn."""
        self._waiting.pop(connection, None)
        if connection in self._open:
            self._waiting[connection] = reason, self._now() + self.seconds

    def work(self, connection: Connection) -> None:
        """From now on it is ours."""
        self._waiting.pop(connection, None)

    def hold(self, connection: Connection, n_bytes: int) -> None:
        """Bytes of a request that came in; they count until it is answered."""
        connection.held_bytes += n_bytes
        self._held += n_bytes
        self._make_room(connection)

    def hold_answer(self, connection: Connection, answer: bytes) -> None:
        """It counts until it is sent; once, however many connections send the same bytes."""
        connection.answer = answer
        self._answers[id(answer)] += 1
        if self._answers[id(answer)] == 1:
            self._held += len(answer)
        self._make_room(connection)

    def release(self, connection: Connection) -> None:
        """The request is answered, or will never be."""
        self._held -= connection.held_bytes
        if connection.answer:
            name = id(connection.answer)
            self._answers[name] -= 1
            if not self._answers[name]:
                del self._answers[name]
                self._held -= len(connection.answer)
        connection.held_bytes, connection.answer = 0, b""

    def _make_room(self, last: Connection) -> None:
        while self._held > MOST_HELD_BYTES and last in self._open:
            self._cut(next((one for one in self._waiting if one.held_bytes or one.answer), last), CROWDED)

    def sweep(self) -> None:
        """Cut those whose time is over."""
        now = self._now()
        for connection, (reason, deadline) in list(self._waiting.items()):
            if deadline <= now:
                self._cut(connection, reason)

    def close_waiting(self) -> None:
        """At the end of the server: whoever is being answered may read to the end, within the time that is left."""
        for connection, (reason, _) in list(self._waiting.items()):
            if reason != NOT_READING:
                self._cut(connection, reason)

    def close_all(self) -> None:
        for connection in list(self._open):
            self.remove(connection)
            connection.abort()

    def _cut(self, connection: Connection, reason: str) -> None:
        self.remove(connection)
        connection.abort()
        self._on_cut(reason)
