"""Health and metrics on a listener, a thread and a database connection of their own, out of a flood's reach.

They are for whoever watches the service, inside. The public address answers ``/healthz`` alone.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from searchblend.service.http.connections import Connections
from searchblend.service.http.server import HttpServer
from searchblend.service.telemetry import OPENMETRICS, PLAIN

_MOST_CONNECTIONS: Final = 64
_PEER_SECONDS: Final = 10.0
_END_SECONDS: Final = 5.0


def watch_app(
    is_answering: Callable[[], bool],
    why_not_ready: Callable[[], Awaitable[str | None]],
    exposition: Callable[[bool], Awaitable[str]],
) -> Starlette:
    """``/healthz``, ``/readyz``, ``/metrics`` of a process.

    Args:
        is_answering: Whether the public address is attended to.
        why_not_ready: What keeps the process from doing its part, or None.
        exposition: The metrics, in OpenMetrics or in Prometheus' older format.
    """

    async def alive(request: Request) -> Response:
        if not is_answering():
            return PlainTextResponse("the public address is stuck\n", 503)
        return await healthz(request)

    async def readyz(request: Request) -> Response:
        problem = await why_not_ready()
        return PlainTextResponse(f"{problem}\n", 503) if problem else PlainTextResponse("ready\n")

    async def metrics(request: Request) -> Response:
        openmetrics = OPENMETRICS.partition(";")[0] in request.headers.get("accept", "")
        content = await exposition(openmetrics)
        return Response(content, headers={"content-type": OPENMETRICS if openmetrics else PLAIN})

    handlers = (("/healthz", alive), ("/readyz", readyz), ("/metrics", metrics))
    return Starlette(routes=[Route(path, handler, methods=["GET"]) for path, handler in handlers])


async def healthz(request: Request) -> Response:
    """The process answers."""
    return PlainTextResponse("ok\n")


@contextlib.contextmanager
def health_listener(app: Starlette, listener: socket.socket) -> Iterator[None]:
    """Answer beside whatever else runs."""
    server = HttpServer(app, Connections(_MOST_CONNECTIONS, _PEER_SECONDS))
    thread = threading.Thread(target=server.run, args=([listener],), name="health", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(_END_SECONDS)
