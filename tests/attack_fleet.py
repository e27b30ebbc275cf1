"""A service of several processes with a role each, and a client that sends each request to the role concerned."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx2

from attack_service import SECONDS, AttackedService, changed_environment
from searchblend.service.workers.signing_keys import make_curator_key
from service_process import ServerProcess, running

KEY_FOLDERS = ("keys", "keys-1", "keys-2")


class Fleet:
    """Processes over one database. ``users`` has the database address of each role; without one it is the owner's."""

    def __init__(self, stack: ExitStack, folder: Path, where: str, users: Mapping[str, str] | None = None) -> None:
        self.stack, self.folder, self.where, self.users = stack, folder, where, users or {}
        self._is_sqlite = not where.startswith("postgresql")

    def process(
        self, role: str, *arguments: str, name: str = "", environment: Mapping[str, str] | None = None
    ) -> ServerProcess:
        folder = self.folder if self._is_sqlite else self.folder / (name or role)
        folder.mkdir(exist_ok=True)
        server = ServerProcess(folder, self.users.get(role, self.where), "--role", role, *arguments, is_patient=False)
        server.log = self.folder / f"{name or role}.log"
        with changed_environment(environment or {}):
            self.stack.enter_context(running(server))
        return server

    def curator(
        self, name: str = "curator", keys: str = "keys", environment: Mapping[str, str] | None = None
    ) -> ServerProcess:
        return self.process("curator", "--key-dir", str(self.folder / keys), name=name, environment=environment)

    def publisher(self, name: str = "publisher", signing: str = "signing") -> ServerProcess:
        """It believes the curators of these folders."""
        points = [make_curator_key(self.folder / keys).public_point.hex() for keys in KEY_FOLDERS]
        arguments = ("--signing-dir", str(self.folder / signing), "--curator-key", ",".join(points))
        return self.process("publisher", *arguments, name=name)

    def service(self, collectors: int = 1) -> AttackedService:
        """Staff and devices, with a process for each of their requests; the curator is the caller's business."""
        service = AttackedService(self.folder, self.where)
        self.stack.callback(service.stop)
        service.server = self.process("admin")
        publisher, intake = self.publisher(), self.process("intake")
        servers = [self.process("collector", name=f"collector-{n}") for n in range(collectors)]
        service.http = Routed(
            service.server.address, publisher.address, intake.address, [server.address for server in servers]
        )
        return service


class Routed:
    """One client for several servers; reports go to the collectors in turn."""

    def __init__(self, admin: str, publisher: str, intake: str, collectors: Iterable[str]) -> None:
        self._admin, self._publisher, self._intake, *others = (
            httpx2.Client(base_url=address, timeout=SECONDS) for address in (admin, publisher, intake, *collectors)
        )
        self._clients = [self._admin, self._publisher, self._intake, *others]
        self._collectors = itertools.cycle(others)

    def request(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        json: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        return self._client(path).request(method, path, content=content, json=json, headers=headers)

    def get(self, path: str) -> httpx2.Response:
        return self.request("GET", path)

    def post(self, path: str, *, content: bytes, headers: Mapping[str, str]) -> httpx2.Response:
        return self.request("POST", path, content=content, headers=headers)

    def _client(self, path: str) -> httpx2.Client:
        if path.endswith("/contributions"):
            return self._intake
        if path.endswith("/reports"):
            return next(self._collectors)
        return self._admin if path.startswith("/admin/") else self._publisher

    def close(self) -> None:
        for client in self._clients:
            client.close()
