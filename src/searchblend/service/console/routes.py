"""The console's addresses in one table: routes and the test of roles come from it."""

from __future__ import annotations

from starlette.routing import Route

from searchblend.service.console.door import Door
from searchblend.service.console.forms import Forms
from searchblend.service.console.pages import Pages, PublicPages, static_route
from searchblend.service.console.planner_page import Planner
from searchblend.service.console.visit import ConsoleRoute
from searchblend.service.services import Services


def console_table(services: Services, planner: Planner | None = None) -> list[ConsoleRoute]:
    """Everything that needs a session, with the roles that may."""
    return [*Pages(services, planner).table(), *Forms(services).table(), *Door(services).table()]


def console_routes(services: Services, planner: Planner | None = None) -> list[Route]:
    door = Door(services)
    rows = console_table(services, planner)
    return [*door.routes(), *(Route(row.path, door.guarded(row), methods=[row.method]) for row in rows)]


def public_routes(services: Services, seconds: int, *, has_artifacts: bool) -> list[Route]:
    """What needs none: the trends of a task, and the files that every page is made of."""
    return [*PublicPages(services, seconds, has_artifacts=has_artifacts).routes(), static_route()]
