"""The service behind its HTTP application, in this process: routes, roles and a clock moved by hand."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from starlette.testclient import TestClient

from openapi_answers import CheckedClient
from searchblend.service.api.app import ROLE_TAGS, build_app
from searchblend.service.http.connections import Connections
from searchblend.service.http.health import health_app
from searchblend.service.logbook import Logbook
from searchblend.service.services import Services
from searchblend.store.tokens import ROLES
from service_parts import Service, people

REPORT = {"content-type": "application/vnd.searchblend.report"}
REPORTS = {"content-type": "application/vnd.searchblend.reports"}
SEALED = {"content-type": "application/vnd.searchblend.sealed"}


class HttpService:
    """A service with a test client and one admin token for each role."""

    def __init__(self, parts: Service, services: Services, client: TestClient, health: TestClient) -> None:
        self.parts, self.services, self.client, self.health = parts, services, client, health
        now = parts.clock.now()
        self.tokens = {
            role: parts.store.tokens.add_admin(role, role, actor="test", now=now)
            for role in ROLES
            if role not in {name for name, _, _ in parts.store.tokens.admins()}
        }

    def admin(self, method: str, path: str, role: str = "operator", **arguments):
        headers = {"authorization": f"Bearer {self.tokens[role]}"}
        return self.client.request(method, f"/admin/v1{path}", headers=headers, **arguments)

    def report(self, found, message: bytes):
        return self.client.post(
            f"/v1/tasks/{found.task}/rounds/{found.number}/reports", content=message, headers=REPORT
        )

    def reports(self, found, message: bytes):
        path = f"/v1/tasks/{found.task}/rounds/{found.number}/report-batches"
        return self.client.post(path, content=message, headers=REPORTS)

    def contribute(self, found, sealed: bytes, code: str, method: str = "POST"):
        path = f"/v1/tasks/{found.task}/rounds/{found.number}/contributions"
        headers = {**SEALED, "authorization": f"Bearer {code}"}
        return self.client.request(method, path, content=sealed, headers=headers)

    def client_round(self, **changes):
        """A round that takes reports."""
        task = self.parts.task(**changes)
        urls = changes.get("has_urls", True)
        self.parts.contribute(self.parts.open(task), people(400, seed=1, urls=urls))
        return self.parts.head_list(task)


@contextlib.contextmanager
def http_service(where: str, folder: Path, *, clock=None, role: str = "all", **options) -> Iterator[HttpService]:
    parts = Service.start(where, folder, clock)
    services = Services(where, clock=parts.clock, logbook=Logbook(parts.log), **options)
    try:
        health = health_app(services, Connections(), with_rounds="admin" in ROLE_TAGS[role])
        with CheckedClient(build_app(services, role), raise_server_exceptions=False) as client:
            yield HttpService(parts, services, client, TestClient(health))
    finally:
        parts.store.close()
