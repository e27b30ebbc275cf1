"""Idle sockets: connections that say nothing, half a request, or never read. Others are answered, and they end."""

from __future__ import annotations

import contextlib
import hashlib
import resource
import secrets
import socket
import time
from urllib.parse import urlsplit

import psutil
import pytest

from attack_service import COMMON, wait_for

MANY = 4_200
"""more than the server keeps open at once"""
MOST_GROWTH = 200 * 2**20
PACE = 0.5
"""seconds between two bytes of a slow sender or reader"""
PATIENCE = 150
"""seconds until every limit of time has come on a busy machine"""
SILENCES = {
    "silent": b"",
    "half a request line": b"GET /heal",
    "half the headers": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Half: ",
    "half a body": b"POST /v1/tasks/x/rounds/1/reports HTTP/1.1\r\nHost: x\r\n"
    b"Content-Type: application/vnd.searchblend.report\r\nContent-Length: 100\r\n\r\nhalf",
}


@pytest.fixture
def sockets():
    """Thousands of files may be open here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard < 2 * MANY else max(soft, 2 * MANY), hard))
    with contextlib.ExitStack() as stack:
        yield stack
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def place(address):
    parts = urlsplit(address)
    return parts.hostname, parts.port


def crowd(stack, address, content, n):
    """So many connections that each say this and no more; fewer if the server takes no more."""
    connections = []
    for _ in range(n):
        try:
            connection = stack.enter_context(socket.create_connection(place(address), timeout=2))
            connection.sendall(content)
        except OSError:
            break
        connections.append(connection)
    return connections


def is_ended(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1024) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_a_crowd_of_silent_connections_ends_and_health_answers_meanwhile(service, sockets):
    before = psutil.Process(service.server.process.pid).memory_info().rss
    connections = []
    for content in SILENCES.values():
        connections += crowd(sockets, service.server.address, content, MANY // len(SILENCES))
    assert service.health("/healthz").status_code == 200, "health is silent while others hold every connection"
    assert psutil.Process(service.server.process.pid).memory_info().rss - before < MOST_GROWTH
    wait_for(lambda: all(is_ended(one) for one in connections), "the end of silent connections", PATIENCE)
    assert service.http.get("/healthz").status_code == 200


def test_a_byte_every_now_and_then_does_not_keep_a_connection(service, sockets):
    """Slow-loris: always a little progress, never an end. In the headers, in the body, in a chunked one."""
    body = SILENCES["half a body"]
    starts = [
        SILENCES["half the headers"],
        body.replace(b"Content-Length: 100", b"Content-Length: 1000000"),
        body.replace(b"Content-Length: 100", b"Transfer-Encoding: chunked").replace(b"half", b"f0000\r\n"),
    ]
    connections = [one for start in starts for one in crowd(sockets, service.server.address, start, 1)]
    assert len(connections) == len(starts)

    def are_cut():
        time.sleep(PACE)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.setblocking(True)
                connection.sendall(b"a")
        connections[:] = [connection for connection in connections if not is_ended(connection)]
        return not connections

    wait_for(are_cut, "the end of slow requests", PATIENCE)


def test_readers_that_do_not_read_cost_little_and_end(service, sockets):
    artifact = large_artifact(service)
    process = psutil.Process(service.server.process.pid)
    before = process.memory_info().rss
    request = f"GET {artifact} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 8
    connections = []
    for _ in range(100):
        connection = sockets.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(place(service.server.address))
        connection.sendall(request)
        connections.append(connection)
    assert service.health("/healthz").status_code == 200
    peak = 0

    def are_ended():
        nonlocal peak
        peak = max(peak, process.memory_info().rss - before)
        return open_sockets(process) < 50

    wait_for(are_ended, "the end of connections that do not read", PATIENCE)
    assert peak < MOST_GROWTH, f"{peak / 2**20:.0f} MiB for 100 readers"


def test_readers_of_a_byte_now_and_then_end(service, sockets):
    """Always a little is read; the whole answer would take weeks."""
    connection = sockets.enter_context(socket.socket())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.connect(place(service.server.address))
    connection.sendall(f"GET {large_artifact(service)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    started, received = time.monotonic(), 0

    def is_cut():
        nonlocal received
        time.sleep(PACE)
        try:
            connection.settimeout(5)
            part = connection.recv(100)
        except OSError:
            return True
        received += len(part)
        return part == b""

    wait_for(is_cut, "the end of a slow reader", PATIENCE * 2)
    assert received < 4 * 2**20, f"all was read in {time.monotonic() - started:.0f} s: the attack was too fast"


def open_sockets(process):
    return sum(one.status == psutil.CONN_ESTABLISHED for one in process.net_connections("inet"))


def large_artifact(service):
    """A published file of 4 MiB, put there by the database's hand."""
    content = secrets.token_bytes(4 * 2**20)
    digest = hashlib.sha256(content).hexdigest()
    service.sql(
        "INSERT INTO artifacts (sha256, media_type, content) VALUES (?, ?, ?)", digest, "application/json", content
    )
    path = f"/v1/artifacts/{digest}"
    assert len(service.http.get(path).content) == 4 * 2**20
    return path


def test_a_round_goes_on_beside_half_sent_requests(service, sockets):
    crowd(sockets, service.server.address, SILENCES["half the headers"], 500)
    records = COMMON * 20
    candidate, drawn = service.play_optin(service.task(), records)
    assert drawn["records"] == len(records)
    assert candidate["head"]
