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

from searchblend.service.checkup import gauges, trouble
from searchblend.service.http.connections import Connections
from searchblend.service.http.server import HttpServer
from searchblend.service.services import Services
from searchblend.service.telemetry import OPENMETRICS, PLAIN
from searchblend.store.errors import StoreError
from searchblend.store.service_store import ServiceStore

_MOST_CONNECTIONS: Final = 64
_PEER_SECONDS: Final = 10.0
_END_SECONDS: Final = 5.0


def health_app(services: Services, connections: Connections, *, with_rounds: bool) -> Starlette:
    """The service's; ``with_rounds``: metrics and readiness tell of all rounds, not of this process alone."""

    async def why_not_ready() -> str | None:
        def read(store: ServiceStore) -> str | None:
            store.database.execute("SELECT 1")
            overdue = trouble(store, services.clock) if with_rounds else None
            return overdue or next((why for check in services.troubles if (why := check(store))), None)

        try:
            problem = await services.health.call(read)
        except StoreError:
            problem = "the database is out of reach"
        return problem if services.is_working() else "the worker does not run"

    async def exposition(openmetrics: bool) -> str:
        services.metrics.set("reports_waiting", services.writer.n_waiting)
        services.metrics.set("connections", len(connections))
        more: dict[str, float] = {}
        if with_rounds:
            with contextlib.suppress(StoreError):  # what this process has counted is still worth knowing
                more = await services.health.call(lambda store: gauges(store, services.clock, services.vault))
        return services.metrics.exposition(more, openmetrics=openmetrics)

    return watch_app(lambda: services.is_answering(), why_not_ready, exposition)


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
