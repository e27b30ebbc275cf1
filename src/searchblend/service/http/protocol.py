"""HTTP/1.1 for strangers: uvicorn's protocol, with bounds on headers, on time, and on what an answer may hold.

uvicorn has no limit of its own for these: with httptools it keeps a request's headers whatever their size, waits for
them without end, and writes an answer into memory as a whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from typing import Any, Final

from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from searchblend.service.http.connections import HALF_SENT, IDLE, NOT_READING, Connections

MOST_HEAD_BYTES: Final = 16 * 1024
"""of request line and headers together"""
MOST_HEADERS: Final = 100
MOST_PIPELINED: Final = 8
PIECE_BYTES: Final = 64 * 1024
"""of an answer that wait in the process for a reader; the rest is not handed over before these are gone"""


_NO_LINGERING: Final = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
_CONNECTION: Final = "searchblend.connection"
"""where a request's scope has its connection"""


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
