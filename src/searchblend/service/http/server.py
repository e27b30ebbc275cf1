"""uvicorn's server on sockets that we accept from ourselves: a connection counts from its first packet.

uvicorn learns of a TLS connection when its handshake is done, so that it could not bound those that never begin one.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from searchblend.service.http.connections import Connections
from searchblend.service.http.protocol import BoundedProtocol, in_pieces

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


class HttpServer(uvicorn.Server):
    """Runs until ``should_exit`` is set."""

    def __init__(self, app: Any, connections: Connections, tls: tuple[str, str] | None = None) -> None:
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
        self.connections = connections
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
