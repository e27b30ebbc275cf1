"""HTTP for one service, on the standard library: every request ends in time, every answer has a largest size.

Nothing is followed, nothing is remembered between requests, and no header says who asks. A connection is used again
while it lasts; when the service has closed it in the meantime the same bytes are sent once more.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult

from searchblend.device.device_errors import NoAnswer
from searchblend.wire.addresses import service_address

_CHUNK: Final = 64 << 10
_STALE: Final = (http.client.RemoteDisconnected, ConnectionError)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """names in lower case"""
    body: bytes


def check_address(address: str, *, plain_http: bool = False, field: str = "server") -> SplitResult:
    """A service's address: https, or http on this machine (or where ``plain_http`` allows it)."""
    over_http = "expected https: over http anyone on the way sees who reports"
    return service_address(field, address, plain_http=plain_http, over_http=over_http)


class Transport:
    """One service. Not for several threads at once."""

    def __init__(self, address: str, *, seconds: float = 20.0, plain_http: bool = False) -> None:
        self._parts = check_address(address, plain_http=plain_http)
        self.address = address
        self._seconds = seconds
        self._open: http.client.HTTPConnection | None = None

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        at_most: int,
    ) -> Answer:
        """The answer, of at most ``at_most`` bytes; else ``NoAnswer``: the request may have arrived or not."""
        used_before = self._open is not None
        try:
            return self._once(method, path, body, headers or {}, at_most)
        except _STALE as error:
            self.close()
            if not used_before:
                raise NoAnswer("unreachable", _system_words(error)) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise _no_answer(error) from None
        return self.send(method, path, body, headers=headers, at_most=at_most)

    def believe(self, gateway_keys: Collection[str]) -> None:
        """A manifest was believed, and names the keys that a gateway of the service may have."""

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _once(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], at_most: int) -> Answer:
        connection = self._connection()
        late = threading.Event()

        def stop() -> None:
            late.set()
            held = connection.sock
            if held is not None:
                with contextlib.suppress(OSError):
                    held.shutdown(socket.SHUT_RDWR)

        alarm = threading.Timer(self._seconds, stop)
        alarm.daemon = True
        alarm.start()
        try:
            connection.request(method, self._parts.path.rstrip("/") + path, body, dict(headers))
            answer = connection.getresponse()
            content = _read(answer, at_most)
            if late.is_set():
                raise TimeoutError
        except (OSError, http.client.HTTPException, ValueError):
            if late.is_set():
                raise TimeoutError from None
            raise
        finally:
            alarm.cancel()
        if answer.will_close:
            self.close()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, content)

    def _connection(self) -> http.client.HTTPConnection:
        if self._open is None:
            host, port = self._parts.hostname or "", self._parts.port
            if self._parts.scheme == "https":
                context = ssl.create_default_context()
                self._open = http.client.HTTPSConnection(host, port, timeout=self._seconds, context=context)
            else:
                self._open = http.client.HTTPConnection(host, port, timeout=self._seconds)
        return self._open


class _CutOff(http.client.HTTPException):
    """An answer that does not say where it ends."""


class _TooLarge(http.client.HTTPException):
    """More than was asked for."""


def _read(answer: http.client.HTTPResponse, at_most: int) -> bytes:
    if answer.length is None and not answer.chunked:
        raise _CutOff  # without a length, an answer that was cut off looks like a whole one
    if answer.length is not None and answer.length > at_most:
        raise _TooLarge
    pieces: list[bytes] = []
    left = at_most
    while piece := answer.read(min(_CHUNK, left + 1)):
        left -= len(piece)
        if left < 0:
            raise _TooLarge
        pieces.append(piece)
    return b"".join(pieces)


def _no_answer(error: Exception) -> NoAnswer:
    if isinstance(error, _TooLarge):
        return NoAnswer("too-large", "the answer is larger than this device takes")
    if isinstance(error, TimeoutError):
        return NoAnswer("slow", "no whole answer in time")
    if isinstance(error, ssl.SSLError):
        return NoAnswer("tls", "no secure connection")
    if isinstance(error, OSError):
        return NoAnswer("unreachable", _system_words(error))
    return NoAnswer("garbage", "the answer is not HTTP")


def _system_words(error: BaseException) -> str:
    """What the system says, never what the service does."""
    return getattr(error, "strerror", None) or "no connection"
