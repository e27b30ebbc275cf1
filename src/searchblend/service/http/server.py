"""HTTP/1.1 for strangers: uvicorn's server and protocol, with bounds that uvicorn does not have.

It learns of a TLS connection when its handshake is done, so that it could not bound those that never begin one: we
accept from the sockets ourselves, and a connection counts from its first packet. With httptools it keeps a request's
headers whatever their size, waits for them without end, and writes an answer into memory as a whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import uvicorn
from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from uvicorn.config import STARTUP_FAILURE, Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from searchblend.service.http.connections import HALF_SENT, IDLE, NOT_READING, Connections

BACKLOG: Final = 1_024
GRACEFUL_SECONDS: Final = 10
_KERNEL_BYTES: Final = 128 * 1024
"""of an answer that may wait in the kernel; Linux gives twice as much"""
_AT_ONCE: Final = 32
"""accepted before others get their turn"""
_SWEEP_TICKS: Final = 5
"""uvicorn's main loop ticks ten times a second"""
_STUCK_SECONDS: Final = 20.0
_OUT_OF_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
MOST_HEAD_BYTES: Final = 16 * 1024
"""of request line and headers together"""
MOST_HEADERS: Final = 100
MOST_PIPELINED: Final = 8
PIECE_BYTES: Final = 64 * 1024
"""of an answer that wait in the process for a reader; the rest is not handed over before these are gone"""
_NO_LINGERING: Final = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
_CONNECTION: Final = "searchblend.connection"
"""where a request's scope has its connection"""


class HttpServer(uvicorn.Server):
    """Runs until ``should_exit`` is set."""

    def __init__(
        self,
        app: Any,
        connections: Connections,
        tls: tuple[str, str] | None = None,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """``tls``: files of certificate and key; ``on_stop``: called when the server begins to end."""
        super().__init__(
            uvicorn.Config(
                in_pieces(app),
                loop="auto",  # uvloop where it is installed
                http="httptools",
                ws="none",
                access_log=False,
                log_config=None,
                log_level="critical",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=GRACEFUL_SECONDS,
                timeout_keep_alive=max(1, int(connections.seconds)),
                ssl_certfile=tls[0] if tls else None,
                ssl_keyfile=tls[1] if tls else None,
            )
        )
        self.connections, self._on_stop = connections, on_stop
        self._ticked = time.monotonic()

    def is_answering(self) -> bool:
        """Whether the event loop goes round."""
        return time.monotonic() - self._ticked < _STUCK_SECONDS

    def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]
        """None: whoever runs the server ends it. uvicorn's own would kill the process with the signal afterwards."""
        return contextlib.nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(STARTUP_FAILURE)

        def protocol() -> BoundedProtocol:
            return BoundedProtocol(self.config, self.server_state, self.lifespan.state, self.connections)

        self.servers = [
            _Listener(one, protocol, self.connections, self.config.ssl)  # type: ignore[misc]
            for one in sockets or []
        ]
        self.started = True

    async def on_tick(self, counter: int) -> bool:
        self._ticked = time.monotonic()
        if counter % _SWEEP_TICKS == 0:
            self.connections.sweep()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        self.connections.close_waiting()
        await super().shutdown(sockets)
        self.connections.close_all()


class _Listener:
    """Accepts from one socket; looks to uvicorn like a server of asyncio."""

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], BoundedProtocol],
        connections: Connections,
        tls: ssl.SSLContext | None,
    ) -> None:
        listener.setblocking(False)
        # Accepted sockets have it from here: the kernel's own choice grows to megabytes for each that does not read.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BYTES)
        self._listener, self._protocol, self._connections, self._tls = listener, protocol, connections, tls
        self._task = asyncio.create_task(self._accept())

    def close(self) -> None:
        self._task.cancel()

    async def wait_closed(self) -> None:
        await asyncio.wait([self._task])

    async def _accept(self) -> None:
        loop, n = asyncio.get_running_loop(), 0
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                if error.errno in _OUT_OF_FILES:
                    await asyncio.sleep(0.1)
                continue
            _Opening(accepted, self._connections).begin(self._protocol, self._tls)
            n += 1
            if n % _AT_ONCE == 0:
                await asyncio.sleep(0)


class _Opening:
    """A connection before its protocol has it: for the length of a TLS handshake."""

    def __init__(self, accepted: socket.socket, connections: Connections) -> None:
        self._socket, self._connections = accepted, connections
        self.held_bytes, self.answer = 0, b""
        self._task: asyncio.Task[Any]

    def begin(self, protocol: Callable[[], BoundedProtocol], tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(loop.connect_accepted_socket(protocol, self._socket, ssl=tls))
        self._task.add_done_callback(self._end)
        self._connections.add(self)

    def abort(self) -> None:
        self._task.cancel()

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._connections.remove(self)
        if task.cancelled() or task.exception():
            self._socket.close()  # a peer that left, a handshake that failed or took too long


class BoundedProtocol(HttpToolsProtocol):
    """One connection; tells ``Connections`` whose turn it is."""

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], connections: Connections
    ) -> None:
        super().__init__(config, server_state, app_state, asyncio.get_running_loop())
        self._table = connections
        self.held_bytes, self.answer = 0, b""
        self._head_bytes = self._n_headers = self._unparsed = 0

    def abort(self) -> None:
        # Without lingering, or the kernel would go on holding what a peer does not read.
        with contextlib.suppress(OSError):
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
        self.transport.abort()

    def hold_answer(self, content: bytes) -> None:
        self._table.hold_answer(self, content)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=PIECE_BYTES)
        self._table.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.parser is None or self.transport.is_closing():
            return
        # A name or a value that never ends is never handed over: it is bounded by what was not.
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > MOST_HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = self._n_headers = 0
        self.scope[_CONNECTION] = self  # type: ignore[typeddict-unknown-key]
        if self.cycle is None or self.cycle.response_complete:
            self._table.wait(self, HALF_SENT)

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._n_headers += 1
        self._count_head(len(name) + len(value))
        super().on_header(name, value)

    def _count_head(self, n_bytes: int) -> None:
        self._unparsed = 0
        self._head_bytes += n_bytes
        if self._head_bytes > MOST_HEAD_BYTES or self._n_headers > MOST_HEADERS:
            raise _HeadTooLarge

    def on_headers_complete(self) -> None:
        self._unparsed = 0
        if len(self.pipeline) >= MOST_PIPELINED:
            raise _HeadTooLarge
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)
        if not self.cycle.response_complete:
            self._table.hold(self, len(body))

    def on_message_complete(self) -> None:
        self._unparsed = 0
        super().on_message_complete()
        if not self.cycle.response_complete:
            self._table.work(self)

    def on_response_complete(self) -> None:
        self._table.release(self)
        super().on_response_complete()
        if self.cycle.response_complete:
            self._table.wait(self, IDLE)
        elif self.cycle.more_body:
            self._table.wait(self, HALF_SENT)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._table.wait(self, NOT_READING)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.cycle is None or self.cycle.response_complete:
            self._table.wait(self, IDLE)
        else:
            self._table.work(self)

    def send_400_response(self, msg: str) -> None:
        if self._head_bytes > MOST_HEAD_BYTES or self._n_headers > MOST_HEADERS:
            self._refuse_head()
        elif not self.transport.is_closing():
            super().send_400_response(msg)

    def _refuse_head(self) -> None:
        self.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        )
        self.transport.close()


class _HeadTooLarge(Exception):
    """Ends the parser's work; uvicorn then answers and closes."""


def in_pieces(app: ASGI3Application) -> ASGI3Application:
    """The application with long bodies handed over bit by bit, as fast as the reader takes them."""

    async def answer(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        connection: BoundedProtocol = scope[_CONNECTION]  # type: ignore[typeddict-item]

        async def send_pieces(message: ASGISendEvent) -> None:
            if message["type"] != "http.response.body":
                await send(message)
                return
            content = message.get("body", b"")
            if len(content) > PIECE_BYTES:
                connection.hold_answer(content)
            body = memoryview(content)
            while len(body) > PIECE_BYTES:
                await send({**message, "body": bytes(body[:PIECE_BYTES]), "more_body": True})
                body = body[PIECE_BYTES:]
            await send({**message, "body": bytes(body)})

        await app(scope, receive, send_pieces)

    return answer
