"""A service of several processes with a role each, and one client that sends every request to whom it concerns."""

from __future__ import annotations

import itertools

import httpx2

from attack_service import SECONDS, AttackedService, changed_environment
from searchblend.service.workers.curator_key import make_curator_key
from service_process import ServerProcess, running

KEY_FOLDERS = ("keys", "keys-1", "keys-2")


class Fleet:
    """Processes over one database. ``users`` has the database address of each role; without one it is the owner's."""

    def __init__(self, stack, folder, where, users=None):
        self.stack, self.folder, self.where, self.users = stack, folder, where, users or {}
        self._is_sqlite = not where.startswith("postgresql")

    def process(self, role, *arguments, name="", environment=None):
        folder = self.folder if self._is_sqlite else self.folder / (name or role)
        folder.mkdir(exist_ok=True)
        server = ServerProcess(folder, self.users.get(role, self.where), "--role", role, *arguments)
        server.log = self.folder / f"{name or role}.log"
        with changed_environment(environment or {}):
            self.stack.enter_context(running(server))
        return server

    def curator(self, name="curator", keys="keys", environment=None):
        return self.process("curator", "--key-dir", str(self.folder / keys), name=name, environment=environment)

    def publisher(self, name="publisher", signing="signing"):
        """It believes the curators of these folders."""
        points = [make_curator_key(self.folder / keys).public_point.hex() for keys in KEY_FOLDERS]
        arguments = ("--signing-dir", str(self.folder / signing), "--curator-key", ",".join(points))
        return self.process("publisher", *arguments, name=name)

    def service(self, collectors=1):
        """Staff and devices, with a process for each of their requests; the curator is the caller's business."""
        service = AttackedService(self.folder, self.where)
        self.stack.callback(service.stop)
        service.server = self.process("admin")
        publisher, intake = self.publisher(), self.process("intake")
        found = [self.process("collector", name=f"collector-{n}") for n in range(collectors)]
        service.http = Routed(
            service.server.address, publisher.address, intake.address, [server.address for server in found]
        )
        return service


class Routed:
    """One client for several servers; reports go to the collectors in turn."""

    def __init__(self, admin, publisher, intake, collectors):
        self._admin, self._publisher, self._intake, *others = (
            httpx2.Client(base_url=address, timeout=SECONDS) for address in (admin, publisher, intake, *collectors)
        )
        self._clients = [self._admin, self._publisher, self._intake, *others]
        self._collectors = itertools.cycle(others)

    def request(self, method, path, **arguments):
        if path.endswith("/contributions"):
            return self._intake.request(method, path, **arguments)
        if path.endswith("/reports"):
            return next(self._collectors).request(method, path, **arguments)
        return (self._admin if path.startswith("/admin/") else self._publisher).request(method, path, **arguments)

    def get(self, path, **arguments):
        return self.request("GET", path, **arguments)

    def post(self, path, **arguments):
        return self.request("POST", path, **arguments)

    def close(self):
        for client in self._clients:
            client.close()
