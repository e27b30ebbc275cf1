"""The ASGI application of a role: its operations, its pages, and one place where every error ends."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Lifespan

from searchblend.service.api.admin_api import AdminApi
from searchblend.service.api.answers import Refusal, guarded, problem_response
from searchblend.service.api.device_api import Collector, Intake
from searchblend.service.api.distribution import Distribution
from searchblend.service.api.gateway import Gateway
from searchblend.service.api.operations import Handler, Operation, openapi_document
from searchblend.service.console.planner_page import Planner
from searchblend.service.console.public_pages import Imprint
from searchblend.service.console.sign_in import console_routes, public_routes
from searchblend.service.console.visit import error_page
from searchblend.service.http.health import healthz
from searchblend.service.services import Services

TAGS: Final = ("collector", "intake", "gateway", "publisher", "admin")
_FOR_PEOPLE: Final = ("/console", "/trends/", "/enrol/")
"""addresses whose errors are pages, not documents"""
_ANONYMOUS: Final = Imprint()
ROLE_TAGS: Final[dict[str, tuple[str, ...]]] = {"all": TAGS, **{tag: (tag,) for tag in TAGS}}


def all_operations(services: Services, *, manifest_seconds: int = 60) -> list[Operation]:
    """Everything that the service answers, whatever the role."""
    public = [
        *Collector(services).operations(),
        *Intake(services).operations(),
        *Distribution(services, manifest_seconds=manifest_seconds).operations(),
    ]
    devices = _application(_routes([operation for operation in public if operation.for_devices], services))
    return [*public, *Gateway(services, devices).operations(), *AdminApi(services).operations()]


def build_app(
    services: Services,
    role: str = "all",
    *,
    manifest_seconds: int = 60,
    planner: Planner | None = None,
    imprint: Imprint = _ANONYMOUS,
) -> Starlette:
    """The application of a role; ``curator`` has none.

    Args:
        services: What routes work with.
        role: Which routes there are.
        manifest_seconds: How long caches may keep a manifest or a public page.
        planner: Forecasts rounds for the console.
        imprint: Who publishes, for the public pages.
    """
    tags = ROLE_TAGS[role]
    operations = [
        operation for operation in all_operations(services, manifest_seconds=manifest_seconds) if operation.tag in tags
    ]
    routes = _routes(operations, services)
    document = openapi_document(operations)

    async def openapi(request: Request) -> Response:
        return JSONResponse(document)

    for path, handler in (("/openapi.json", openapi), ("/healthz", healthz)):
        routes.append(Route(path, _guarded(handler, f"GET {path}", services), methods=["GET"]))

    if "admin" in tags:
        routes += console_routes(services, planner)
    if "admin" in tags or "publisher" in tags:
        routes += public_routes(services, manifest_seconds, imprint, has_artifacts="publisher" in tags)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await services.start()
        try:
            yield
        finally:
            await services.stop()

    return _application(routes, lifespan)


def _routes(operations: Iterable[Operation], services: Services) -> list[Route]:
    return [
        Route(operation.path, _guarded(operation.handler, operation.name, services), methods=[operation.method])
        for operation in operations
    ]


def _application(routes: list[Route], lifespan: Lifespan[Starlette] | None = None) -> Starlette:
    handlers: dict[int, Callable[[Request, Exception], Awaitable[Response]]] = {
        404: _problem_handler("not-found"),
        405: _problem_handler("method-not-allowed"),
    }
    return Starlette(routes=_merged(routes), lifespan=lifespan, exception_handlers=handlers)


def _merged(routes: list[Route]) -> list[Route]:
    """In the order of their paths; Starlette tells 405 from 404 by partial matches, whatever the order."""
    return sorted(routes, key=lambda route: route.path)


def _problem_handler(problem: str) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle(request: Request, error: Exception) -> Response:
        if request.url.path.startswith(_FOR_PEOPLE):
            return error_page(request, Refusal(problem), None, "")
        return problem_response(problem)

    return handle


def _guarded(handler: Handler, name: str, services: Services) -> Handler:
    def unexpected(error: Exception) -> Refusal:
        return services.refusal(error, "request failed", route=name)

    def note(response: Response, refusal: Refusal | None) -> None:
        services.metrics.count("requests_total", route=name, status=str(response.status_code))

    return guarded(handler, unexpected, note)
