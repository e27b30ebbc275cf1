"""The service behind its HTTP application, in this process: routes, roles and a clock moved by hand."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict, Unpack

import httpx2
from starlette.testclient import TestClient

from openapi_answers import CheckedClient
from searchblend.service.api.app import ROLE_TAGS, build_app
from searchblend.service.clock import Clock
from searchblend.service.console.public_pages import Imprint
from searchblend.service.console.single_sign_on import SingleSignOn
from searchblend.service.http.connections import Connections
from searchblend.service.readiness import health_app
from searchblend.service.services import Services
from searchblend.service.settings import ServeSettings
from searchblend.service.telemetry import Logbook
from searchblend.store.rounds import Round
from searchblend.store.tokens import ROLES
from service_parts import Service, crowd

REPORT = {"content-type": "application/vnd.searchblend.report"}
REPORTS = {"content-type": "application/vnd.searchblend.reports"}
ANONYMOUS = Imprint()
SEALED = {"content-type": "application/vnd.searchblend.sealed"}


class ServiceOptions(TypedDict, total=False):
    """What a test changes in the service; the rest is as ``Services`` has it."""

    anonymous_intake: bool
    reports_per_second: float
    most_waiting: int


class HttpService:
    """A service with a test client and one admin token for each role."""

    def __init__(self, parts: Service, services: Services, client: TestClient, health: TestClient) -> None:
        self.parts, self.services, self.client, self.health = parts, services, client, health
        now = parts.clock.now()
        self.tokens = {
            role: parts.store.tokens.add_admin(role, role, actor="test", now=now)
            for role in ROLES
            if role not in {admin.name for admin in parts.store.tokens.admins()}
        }

    def admin(self, method: str, path: str, role: str = "operator", json: object = None) -> httpx2.Response:
        headers = {"authorization": f"Bearer {self.tokens[role]}"}
        return self.client.request(method, f"/admin/v1{path}", headers=headers, json=json)

    def report(self, round_: Round, message: bytes) -> httpx2.Response:
        return self.client.post(
            f"/v1/tasks/{round_.task}/rounds/{round_.number}/reports", content=message, headers=REPORT
        )

    def reports(self, round_: Round, message: bytes) -> httpx2.Response:
        path = f"/v1/tasks/{round_.task}/rounds/{round_.number}/report-batches"
        return self.client.post(path, content=message, headers=REPORTS)

    def contribute(self, round_: Round, sealed: bytes, code: str, method: str = "POST") -> httpx2.Response:
        path = f"/v1/tasks/{round_.task}/rounds/{round_.number}/contributions"
        headers = {**SEALED, "authorization": f"Bearer {code}"}
        return self.client.request(method, path, content=sealed, headers=headers)

    def client_round(self, **changes: object) -> Round:
        """A round that takes reports."""
        task = self.parts.task(**changes)
        urls = bool(changes.get("has_urls", True))
        self.parts.contribute(self.parts.open(task), crowd(seed=1, urls=urls))
        return self.parts.head_list(task)


@contextlib.contextmanager
def http_service(
    where: str,
    folder: Path,
    *,
    clock: Clock | None = None,
    role: str = "all",
    imprint: Imprint = ANONYMOUS,
    sso: ServeSettings | None = None,
    **options: Unpack[ServiceOptions],
) -> Iterator[HttpService]:
    parts = Service.start(where, folder, clock)
    services = Services(where, clock=parts.clock, logbook=Logbook(parts.log), **options)
    if sso:
        services.sso = SingleSignOn(sso, parts.clock.now)
    try:
        health = health_app(services, Connections(), with_rounds="admin" in ROLE_TAGS[role])
        with CheckedClient(build_app(services, role, imprint=imprint), raise_server_exceptions=False) as client:
            yield HttpService(parts, services, client, TestClient(health))
    finally:
        parts.store.close()
