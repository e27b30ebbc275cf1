"""Signing in and out, and the check of session, form and role before every other page."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from searchblend.service.api.answers import Refusal
from searchblend.service.console.forms import Forms
from searchblend.service.console.pages import Pages
from searchblend.service.console.planner_page import Planner
from searchblend.service.console.public_pages import Imprint, PublicPages, static_route
from searchblend.service.console.render import page
from searchblend.service.console.visit import (
    ConsoleRoute,
    Visit,
    check_form,
    error_page,
    form_token,
    new_secret,
    next_page,
    read_form,
    secret_of,
    see_other,
    set_cookie,
    to_sign_in,
)
from searchblend.service.services import Services
from searchblend.store.tokens import ROLES, Admin

COOKIE: Final = "searchblend_session"
FORM_COOKIE: Final = "searchblend_form"
SESSION_SECONDS: Final = 8 * 3600
MOST_FAILURES: Final = 10
FAILURE_SECONDS: Final = 300
_MOST_ADDRESSES: Final = 10_000


class FailureLimit:
    """After too many failed attempts from one address nothing is tried for a while. Kept in memory, never logged."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: dict[str, deque[float]] = {}

    def refuse_if_spent(self, address: str) -> None:
        if len(self._recent(address)) >= MOST_FAILURES:
            raise Refusal("rate-limited", f"too many failed attempts; try again in {FAILURE_SECONDS // 60} minutes")

    def failed(self, address: str) -> None:
        if len(self._failures) >= _MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]
        self._failures.setdefault(address, deque(maxlen=MOST_FAILURES)).append(self._clock())

    def forgive(self, address: str) -> None:
        self._failures.pop(address, None)

    def _recent(self, address: str) -> deque[float]:
        failures = self._failures.get(address, deque())
        while failures and failures[0] < self._clock() - FAILURE_SECONDS:
            failures.popleft()
        return failures


class SignIn:
    """Sessions over HTTP."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._limit = FailureLimit()

    def table(self) -> list[ConsoleRoute]:
        return [ConsoleRoute("POST", "/console/sign-out", ROLES, self.sign_out)]

    def routes(self) -> list[Route]:
        """The two that need no session."""
        return [
            Route("/console/sign-in", self._open(self.sign_in_page), methods=["GET"]),
            Route("/console/sign-in", self._open(self.sign_in), methods=["POST"]),
        ]

    async def sign_in_page(self, request: Request) -> Response:
        secret = secret_of(request, FORM_COOKIE) or new_secret()
        answer = page(
            request,
            "sign_in.html",
            form=form_token(secret),
            next=next_page(request.query_params.get("next", "")),
            wrong=False,
        )
        set_cookie(request, answer, FORM_COOKIE, secret, path="/console/sign-in", seconds=3600)
        return answer

    async def sign_in(self, request: Request) -> Response:
        """An attempt counts as failed before anything is compared: sending many at once gains nothing."""
        form = await read_form(request)
        secret = secret_of(request, FORM_COOKIE)
        check_form(request, secret, (form.get("form") or [""])[0])
        address = request.client.host if request.client else ""
        self._limit.refuse_if_spent(address)
        self._limit.failed(address)
        token, onward = (form.get("token") or [""])[0].strip()[:500], next_page((form.get("next") or [""])[0])
        now = self._services.clock.now()
        opened = await self._services.console.call(
            lambda store: store.sessions.open(token, now=now, seconds=SESSION_SECONDS)
        )
        if opened is None:
            await self._services.failed_sign_ins.add("console")
            return page(request, "sign_in.html", 401, form=form_token(secret), next=onward, wrong=True)
        self._limit.forgive(address)
        answer = see_other(onward)
        set_cookie(request, answer, COOKIE, opened[0], path="/console", seconds=SESSION_SECONDS)
        return answer

    async def sign_out(self, visit: Visit) -> Response:
        await self._services.console.call(lambda store: store.sessions.close(visit.secret))
        answer = see_other("/console/sign-in")
        answer.delete_cookie(COOKIE, path="/console", httponly=True, samesite="strict")
        return answer

    def _open(self, handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except Exception as error:
                return self._failed(request, error, None)

        return handle

    def guarded(self, row: ConsoleRoute) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            admin: Admin | None = None
            try:
                secret = secret_of(request, COOKIE)
                admin = await self._admin(secret)
                if admin is None:
                    return to_sign_in(request)
                form = await read_form(request) if row.method == "POST" else parse_qs(request.url.query)
                if row.method == "POST":
                    check_form(request, secret, (form.get("form") or [""])[0])
                if admin.role not in row.roles:
                    raise Refusal("forbidden", f"this needs the role {' or '.join(row.roles)}; yours is {admin.role}")
                response = await row.answer(Visit(request, admin, secret, form, self._services.clock.now()))
            except Exception as error:
                response = self._failed(request, error, admin)
            self._services.metrics.count("requests_total", route=row.name, status=str(response.status_code))
            return response

        return handle

    async def _admin(self, secret: str) -> Admin | None:
        if not secret:
            return None
        now = self._services.clock.now()
        return await self._services.console.call(lambda store: store.sessions.admin(secret, now))

    def _failed(self, request: Request, error: Exception, admin: Admin | None) -> Response:
        refusal = self._services.refusal(error, "page failed")
        return error_page(request, refusal, admin, form_token(secret_of(request, COOKIE)) if admin else "")


def console_table(services: Services, planner: Planner | None = None) -> list[ConsoleRoute]:
    """Everything that needs a session, with the roles that may."""
    return [*Pages(services, planner).table(), *Forms(services).table(), *SignIn(services).table()]


def console_routes(services: Services, planner: Planner | None = None) -> list[Route]:
    sign_in = SignIn(services)
    rows = console_table(services, planner)

    async def front(request: Request) -> Response:
        return see_other("/console")

    doors = [Route("/", front, methods=["GET"]), *sign_in.routes()]
    return [*doors, *(Route(row.path, sign_in.guarded(row), methods=[row.method]) for row in rows)]


def public_routes(services: Services, seconds: int, imprint: Imprint, *, has_artifacts: bool) -> list[Route]:
    """What needs none: the trends of a task, and the files that every page is made of."""
    return [*PublicPages(services, seconds, imprint, has_artifacts=has_artifacts).routes(), static_route()]
