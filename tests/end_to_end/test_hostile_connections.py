"""Strangers against a real server process: headers without end, silence, half a request, answers that nobody reads."""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
import psutil
import pytest

from certificates import certificate
from databases import fresh_database
from searchblend.service.clock import SystemClock
from searchblend.store.rounds import Round
from service_parts import Service, people
from service_process import REPORT, ServerProcess, running

FILES = 1_024
"""how many the server may have open: what a service gets where nobody asks for more"""
SILENT = 1_500
FEW = ("--connections", "600")
PATIENT_SERVER = (*FEW, "--peer-seconds", "3600")
"""never ends a connection for want of time"""
HASTY_SERVER = (*FEW, "--peer-seconds", "4")
"""soon enough for a test, late enough for whoever behaves, beside other work"""
PATIENT = 240.0
MIB = 2**20


@pytest.fixture(scope="module", autouse=True)
def enough_files():
    """Here, for the strangers; the servers get less."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * SILENT + FILES), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@dataclass
class Site:
    """Two servers with few files over one database, and a round that takes reports."""

    patient: ServerProcess
    hasty: ServerProcess
    parts: Service
    found: Round


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    where = fresh_database("sqlite", folder)
    parts = Service.start(where, folder, SystemClock())
    day = 100_000
    task = parts.task(optin_seconds=day, shred_seconds=2 * day, client_seconds=day)
    parts.contribute(parts.open(task), people(400, seed=1))
    found = parts.head_list(task)
    patient = ServerProcess(folder, where, "--role", "collector", *PATIENT_SERVER)
    hasty = ServerProcess(folder, where, *HASTY_SERVER)
    with running(patient), running(hasty):
        for server in (patient, hasty):
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        yield Site(patient, hasty, parts, found)
    parts.store.close()


def connect(address):
    parts = urlsplit(address)
    return socket.create_connection((parts.hostname, parts.port), timeout=PATIENT)


def fetch(address, path="/healthz"):
    with httpx2.Client(base_url=address, timeout=PATIENT) as client:
        return client.get(path).status_code


def is_served(server, site, seed):
    """Health inside and outside, and a report, each over a new connection."""
    parts, found = site.parts, site.found
    message = parts.messages(found, people(1, seed=seed))[0]
    before = parts.store.reports.n_seen(found.key)
    path = f"/v1/tasks/{found.task}/rounds/{found.number}/reports"
    with httpx2.Client(base_url=server.address, timeout=PATIENT) as client:
        answer = client.post(path, content=message, headers={"content-type": REPORT})
    assert answer.status_code == 200
    assert parts.store.reports.n_seen(found.key) == before + 1
    assert fetch(server.address) == fetch(server.health) == fetch(server.health, "/readyz") == 200
    return True


def memory(server):
    return psutil.Process(server.process.pid).memory_info().rss


def is_cut(stranger):
    """Whether the server ends this connection, in the time that it gives strangers and some more."""
    stranger.settimeout(PATIENT)
    try:
        while stranger.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def send_until_cut(stranger, block, most):
    """How many bytes the other side let through."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < most:
            sent += stranger.send(block)
    return sent


@pytest.mark.parametrize(
    ("start", "block"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: h\r\nX: ", b"x" * 65536),
        (b"GET /healthz HTTP/1.1\r\n", b"a: b\r\n" * 10_000),
        (b"GET /", b"x" * 65536),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"x" * 65536),
    ],
    ids=["one value", "many headers", "address", "trailer"],
)
def test_headers_without_end_cost_neither_memory_nor_time(site, start, block):
    server = site.patient
    before = memory(server)
    with connect(server.address) as stranger:
        stranger.sendall(start)
        assert send_until_cut(stranger, block, 64 * MIB) < 64 * MIB
    assert memory(server) - before < 16 * MIB
    assert fetch(server.address) == 200


def test_too_large_a_head_is_refused_by_name(site):
    with connect(site.patient.address) as stranger:
        stranger.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 20_000 + b"\r\n\r\n")
        assert stranger.recv(100).startswith(b"HTTP/1.1 431 ")


def test_thousands_of_silent_connections_keep_nobody_out(site):
    server = site.patient
    with contextlib.ExitStack() as stack:
        for n in range(SILENT):
            stranger = stack.enter_context(connect(server.address))
            if n % 2:
                stranger.sendall(b"POST /v1/tasks/x HTTP/1.1\r\nHost: h\r\nContent-Le")
        assert is_served(server, site, seed=11)
        assert psutil.Process(server.process.pid).num_fds() < FILES


def test_half_sent_requests_are_timed_out(site):
    server, found = site.hasty, site.found
    path = f"/v1/tasks/{found.task}/rounds/{found.number}/report-batches"
    head = f"POST {path} HTTP/1.1\r\nHost: h\r\nContent-Type: {REPORT}s\r\nContent-Length: 9000\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        strangers = []
        for part in (b"", b"GET / HT", head, head + b"x" * 100):
            strangers.append(stack.enter_context(connect(server.address)))
            strangers[-1].sendall(part)
        assert [is_cut(stranger) for stranger in strangers] == [True] * 4


@pytest.mark.parametrize(
    "begun",
    [
        b"GET /healthz HTTP/1.1\r\nX: ",
        b"POST /v1/tasks/x/rounds/1/reports HTTP/1.1\r\nHost: h\r\n"
        b"Content-Type: application/vnd.searchblend.report\r\nContent-Length: 4000\r\n\r\n",
    ],
    ids=["head", "body"],
)
def test_a_request_that_trickles_in_has_the_same_time(site, begun):
    with connect(site.hasty.address) as stranger:
        stranger.sendall(begun)
        deadline = time.monotonic() + PATIENT
        with pytest.raises(ConnectionError):
            while time.monotonic() < deadline:
                stranger.sendall(b"x")
                time.sleep(0.05)


def test_an_idle_connection_is_closed_after_its_answer(site):
    with connect(site.hasty.address) as stranger:
        stranger.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        assert stranger.recv(100).startswith(b"HTTP/1.1 200 ")
        assert is_cut(stranger)


def test_readers_that_do_not_read_are_cut_and_hold_no_memory(site):
    server = site.hasty
    sha256 = site.parts.store.artifacts.put(bytes(8 * MIB), "application/octet-stream")
    with httpx2.Client(base_url=server.address, timeout=PATIENT) as client:
        assert len(client.get(f"/v1/artifacts/{sha256}").content) == 8 * MIB
    before = memory(server)
    with contextlib.ExitStack() as stack:
        strangers = []
        for _ in range(50):
            strangers.append(stack.enter_context(connect(server.address)))
            strangers[-1].sendall(f"GET /v1/artifacts/{sha256} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        for stranger in strangers:
            assert stranger.recv(1, socket.MSG_PEEK), "its answer has begun"
        assert memory(server) - before < 64 * MIB
        assert is_served(server, site, seed=12)
        # Nothing is read until all of them were cut: the kernel's buffers alone would not end an answer.
        deadline = time.monotonic() + PATIENT
        while cut_count(server, "not-reading") < len(strangers) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert cut_count(server, "not-reading") >= len(strangers)


def test_an_answer_that_the_kernel_could_keep_is_not_taken_for_sent(site):
    """Linux would buffer megabytes for each reader, after the connection was closed as well."""
    server, parts = site.hasty, site.parts
    sha256 = parts.store.artifacts.put(b"1" * MIB, "application/octet-stream")
    before = cut_count(server, "not-reading")
    with connect(server.address) as stranger:
        stranger.sendall(f"GET /v1/artifacts/{sha256} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        deadline = time.monotonic() + PATIENT
        while cut_count(server, "not-reading") == before:
            assert time.monotonic() < deadline, "the answer was taken for sent"
            time.sleep(0.1)
        with pytest.raises(ConnectionResetError):
            while stranger.recv(65_536):
                pass


def cut_count(server, reason):
    text = httpx2.get(f"{server.health}/metrics", timeout=PATIENT).text
    name = f'searchblend_connections_cut_total{{reason="{reason}"}} '
    return next((int(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name)), 0)


def test_silent_tls_connections_keep_nobody_out(tmp_path):
    cert, key = certificate(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    tls = ("--tls-certificate", str(cert), "--tls-key", str(key))
    server = ServerProcess(data, str(data / "service.db"), *PATIENT_SERVER, *tls)
    with running(server), contextlib.ExitStack() as stack:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        strangers = [stack.enter_context(connect(server.address)) for _ in range(SILENT)]
        context = ssl.create_default_context(cafile=str(cert))
        with httpx2.Client(verify=context, timeout=PATIENT) as client:
            assert client.get(f"{server.address}/healthz").text == "ok\n"
        assert psutil.Process(server.process.pid).num_fds() < FILES
        assert is_cut(strangers[0])
