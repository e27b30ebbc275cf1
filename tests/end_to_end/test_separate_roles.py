"""Five processes with a role each over one PostgreSQL database: a whole round, and who holds which key."""

from __future__ import annotations

import contextlib
import os
import ssl
import subprocess
import sys
from pathlib import Path

import httpx2
import psutil
import pytest

from certificates import certificate
from databases import fresh_database
from searchblend.service.demo import DemoConnections, Population, Staff
from searchblend.service.workers.signing_keys import SigningKeys, make_curator_key
from searchblend.store.service_store import open_store
from service_parts import SMALL, people
from service_process import ServerProcess, running

ROLES = ("collector", "collector", "intake", "publisher", "admin", "curator")
PATIENT = 240.0


class Routed(DemoConnections):
    """Sends each request to the process whose role answers it, reports to two collectors in turn."""

    def __init__(self, addresses):
        self._to = {role: [DemoConnections(address) for address in found] for role, found in addresses.items()}
        self._turn = 0

    def close(self):
        for transports in self._to.values():
            for transport in transports:
                transport.close()

    def send(self, method, path, body=b"", **arguments):
        role = "publisher"
        if path.startswith("/admin/"):
            role = "admin"
        elif path.endswith("/reports"):
            role = "collector"
        elif path.endswith("/contributions"):
            role = "intake"
        self._turn += 1
        transports = self._to[role]
        return transports[self._turn % len(transports)].send(method, path, body, **arguments)


def test_a_round_over_separate_processes(tmp_path):
    where = fresh_database("postgresql", tmp_path)
    signing, keys = tmp_path / "signing", tmp_path / "curator-keys"
    key, curator = SigningKeys(signing).add(), make_curator_key(keys)
    with open_store(where) as store:
        staff = Staff(*(store.tokens.add_admin(role, role, actor="t", now=1) for role in ("operator", "reviewer")))
    addresses, servers = {}, []
    with contextlib.ExitStack() as stack:
        for n, role in enumerate(ROLES):
            folder = tmp_path / f"{n}-{role}"
            folder.mkdir()
            extra = {
                "curator": ("--key-dir", str(keys)),
                "publisher": ("--signing-dir", str(signing), "--curator-key", curator.public_point.hex()),
            }.get(role, ())
            arguments = ["--role", role, "--manifest-seconds", "1", *extra]
            server = ServerProcess(folder, where, *arguments)
            # Only the demo server takes records without an enrolment code, and only its curator counts them.
            server._command += ["--demo-server"] if role in ("intake", "curator") else []
            stack.enter_context(running(server))
            servers.append((role, server))
            addresses.setdefault(role, []).append(server.address)
        assert addresses["curator"] == ["no port"]
        with httpx2.Client(base_url=addresses["admin"][0], timeout=PATIENT) as client:
            headers = {"authorization": f"Bearer {staff.operator}"}
            task = client.post("/admin/v1/tasks", json={**SMALL, "delta": 1e-3}, headers=headers).json()["task"]
        routed = Routed({role: found for role, found in addresses.items() if role != "curator"})
        stack.callback(routed.close)
        population = Population(routed, {key.key_id: key.public_point}, lambda *_: None)
        result = population.play_round(task, staff, people(200, seed=1), people(400, seed=2))
        assert (result.reports_counted, result.conservation.holds) == (400, True)
        for role, server in servers:
            process = psutil.Process(server.process.pid)
            listening = [one for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN]
            assert len(listening) == (0 if role == "curator" else 2), role
            files = [path.name for path in server.folder.rglob("*") if path.is_file()]
            assert files == ["server.log"], f"{role} keeps files of its own"
        assert list(keys.glob("*.key")) == []
        for role, server in servers:
            assert server.terminate() == 0, role
    logs = {role: server.log.read_text() for role, server in servers}
    assert '"job": "head-list"' in logs["curator"]
    assert not any('"job": "head-list"' in text for role, text in logs.items() if role != "curator")


def test_tls_by_file(tmp_path):
    cert, key = certificate(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    server = ServerProcess(data, str(data / "service.db"), "--tls-certificate", str(cert), "--tls-key", str(key))
    with running(server):
        assert server.address.startswith("https://127.0.0.1:")
        with httpx2.Client(verify=ssl.create_default_context(cafile=str(cert)), timeout=PATIENT) as client:
            assert client.get(f"{server.address}/healthz").text == "ok\n"
        with pytest.raises(httpx2.ConnectError), httpx2.Client(timeout=PATIENT) as client:
            client.get(f"{server.address}/healthz")
        place = {"SEARCHBLEND_HEALTH_PORT": server.health.rpartition(":")[2]}
        assert is_healthy(place | {"SEARCHBLEND_TLS_CERTIFICATE": str(cert), "SEARCHBLEND_TLS_KEY": str(key)})
        assert server.terminate() == 0


def health(environment):
    """The exit code of the container's health check."""
    script = Path(__file__).parents[2] / "deploy" / "healthcheck.py"
    return subprocess.run([sys.executable, script], env={**os.environ, **environment}, check=False).returncode


def is_healthy(environment):
    """Asked again, as a container is: four seconds may be short beside other work."""
    return any(health(environment) == 0 for _ in range(10))


def test_the_containers_health_check_knows_port_and_role(tmp_path):
    server = ServerProcess(tmp_path, str(tmp_path / "service.db"))
    with running(server):
        place = {"SEARCHBLEND_HEALTH_PORT": server.health.rpartition(":")[2], "SEARCHBLEND_HEALTH_HOST": "0.0.0.0"}
        assert is_healthy(place)
        server.terminate()
        assert health(place) == 1
        assert health(place | {"SEARCHBLEND_ROLE": "curator"}) == 0


def test_a_port_that_is_taken_is_a_clear_error(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    server = ServerProcess(first, str(first / "service.db"))
    with running(server):
        port = int(server.address.rsplit(":", 1)[1])
        other = ServerProcess(second, str(second / "service.db"))
        with pytest.raises(AssertionError, match="cannot listen"):
            other.start(port=port)
        assert other.wait() == 1
        assert server.terminate() == 0
