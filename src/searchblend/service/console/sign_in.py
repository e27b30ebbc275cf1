"""Signing in and out, and the check of session, form and role before every other page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qs, quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from searchblend.service.api.answers import Refusal
from searchblend.service.console.forms import Forms
from searchblend.service.console.pages import Pages
from searchblend.service.console.planner_page import Planner
from searchblend.service.console.public_pages import Imprint, PublicPages, static_route
from searchblend.service.console.render import page
from searchblend.service.console.single_sign_on import BEGUN_SECONDS, CALLBACK, SignInFailed
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
from searchblend.store.errors import StoreError
from searchblend.store.tokens import ROLES, Admin

COOKIE: Final = "searchblend_session"
FORM_COOKIE: Final = "searchblend_form"
SESSION_SECONDS: Final = 8 * 3600
SSO_COOKIE: Final = "searchblend_sso"
_SSO: Final = "/console/sign-in/sso"


class SignIn:
    """Sessions over HTTP."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def table(self) -> list[ConsoleRoute]:
        return [ConsoleRoute("POST", "/console/sign-out", ROLES, self.sign_out)]

    def routes(self) -> list[Route]:
        """Those that need no session."""
        sso = [("/console/sign-in/sso", self.begin_sso), (CALLBACK, self.finish_sso)] if self._services.sso else []
        return [
            *(Route(path, self._open(answer), methods=["GET"]) for path, answer in sso),
            Route("/console/sign-in", self._open(self.sign_in_page), methods=["GET"]),
            Route("/console/sign-in", self._open(self.sign_in), methods=["POST"]),
        ]

    async def sign_in_page(self, request: Request) -> Response:
        secret = secret_of(request, FORM_COOKIE) or new_secret()
        answer = self._form(request, secret, next_page(request.query_params.get("next", "")))
        set_cookie(request, answer, FORM_COOKIE, secret, path="/console/sign-in", seconds=3600)
        return answer

    async def sign_in(self, request: Request) -> Response:
        """An attempt counts as failed before anything is compared: sending many at once gains nothing."""
        form = await read_form(request)
        secret = secret_of(request, FORM_COOKIE)
        check_form(request, secret, (form.get("form") or [""])[0])
        token, onward = (form.get("token") or [""])[0].strip()[:500], next_page((form.get("next") or [""])[0])
        lock = self._services.failed_sign_ins.lock
        lock.refuse_if_locked(token)
        lock.failed(token)
        now = self._services.clock.now()
        opened = await self._services.console.call(
            lambda store: store.sessions.open(token, now=now, seconds=SESSION_SECONDS)
        )
        if opened is None:
            await self._services.failed_sign_ins.add("console")
            return self._form(request, secret, onward, 401)
        lock.forgive(token)
        answer = see_other(onward)
        set_cookie(request, answer, COOKIE, opened[0], path="/console", seconds=SESSION_SECONDS)
        return answer

    def _form(self, request: Request, secret: str, onward: str, status: int = 200) -> Response:
        return page(
            request,
            "sign_in.html",
            status,
            form=form_token(secret),
            next=onward,
            wrong=status != 200,
            sso=f"{_SSO}?next={quote(onward, safe='')}" if self._services.sso else "",
        )

    async def begin_sso(self, request: Request) -> Response:
        """On to the issuer. A link may do that: it ends with the session of whoever signs in there."""
        assert self._services.sso is not None
        where, secret = await self._services.sso.begin(next_page(request.query_params.get("next", "")))
        answer = see_other(where)
        # The issuer sends the browser back from another site, so this one cookie cannot be strict.
        set_cookie(request, answer, SSO_COOKIE, secret, path=_SSO, seconds=BEGUN_SECONDS, same_site="lax")
        return answer

    async def finish_sso(self, request: Request) -> Response:
        """Back from the issuer: a session, and a page of ours that goes on, which the session's strict cookie needs."""
        sso, now = self._services.sso, self._services.clock.now()
        assert sso is not None
        try:
            identity = await sso.finish(secret_of(request, SSO_COOKIE), request.query_params)
            secret = await self._services.console.call(
                lambda store: store.sessions.open_sso(
                    sso.issuer, identity.subject, identity.admin, now=now, seconds=SESSION_SECONDS
                )
            )
        except (SignInFailed, StoreError):
            await self._services.failed_sign_ins.add("single sign-on")
            raise
        answer = page(request, "signed_in.html", onward=identity.onward)
        set_cookie(request, answer, COOKIE, secret, path="/console", seconds=SESSION_SECONDS)
        answer.delete_cookie(SSO_COOKIE, path=_SSO, httponly=True, samesite="lax")
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
