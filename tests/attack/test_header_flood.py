"""Header flood: one connection sends headers without end. Memory stays, others are answered, the connection ends."""

from __future__ import annotations

import socket
import time

import psutil
import pytest

from attack_service import SECONDS

MEBIBYTE = 2**20
MOST_SENT = 64 * MEBIBYTE
"""what the attacker is ready to send"""
MOST_TAKEN = 8 * MEBIBYTE
"""what the server may read of it before it ends the connection; sockets' buffers are part of it"""
MOST_GROWTH = 24 * MEBIBYTE
SLOWEST = 10.0
"""seconds for an ordinary request meanwhile, on a busy machine"""


def one_large():
    yield b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: "
    while True:
        yield b"a" * 65_536


def many_small():
    yield b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
    n = 0
    while True:
        yield b"".join(b"X-%d: y\r\n" % (n + i) for i in range(4096))
        n += 4096


def folded():
    """Continuation lines, which old parsers join."""
    yield b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Folded: a\r\n"
    while True:
        yield b" a\r\n" * 16_384


def long_target():
    yield b"GET /"
    while True:
        yield b"a" * 65_536


def long_method():
    while True:
        yield b"A" * 65_536


def chunk_extensions():
    yield b"POST /v1/tasks/x/rounds/1/reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;"
    while True:
        yield b"a" * 65_536


def trailers():
    yield b"POST /v1/tasks/x/rounds/1/reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    while True:
        yield b"X-Trailer: aaaaaaaaaaaaaaaaaaaa\r\n" * 2048


FLOODS = [one_large, many_small, folded, long_target, long_method, chunk_extensions, trailers]


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_of_headers_is_cut_off(service, flood):
    process = psutil.Process(service.server.process.pid)
    for port in service.ports():
        before = process.memory_info().rss
        taken, slowest = send_until_cut(service, port, flood())
        assert taken < MOST_TAKEN, f"{taken / MEBIBYTE:.0f} MiB of headers were read"
        assert process.memory_info().rss - before < MOST_GROWTH
        assert slowest < SLOWEST
        assert service.http.get("/healthz").status_code == 200


def test_forty_floods_at_once_leave_the_others_an_answer(service):
    process = psutil.Process(service.server.process.pid)
    before = process.memory_info().rss
    generators = [many_small() for _ in range(40)]
    connections = [connect(service.ports()[0]) for _ in generators]
    for _ in range(8):
        for connection, generator in zip(connections, generators, strict=True):
            send(connection, next(generator))
        assert answered_in(service) < SLOWEST
    for connection in connections:
        connection.close()
    assert process.memory_info().rss - before < 2 * MOST_GROWTH


def send_until_cut(service, port, flood):
    """Bytes that went out before the server ended the connection, and how slow others were meanwhile."""
    sent, slowest, deadline = 0, 0.0, time.monotonic() + SECONDS
    with connect(port) as connection:
        for n, part in enumerate(flood):
            if sent >= MOST_SENT or time.monotonic() > deadline or not send(connection, part):
                break
            sent += len(part)
            if n % 64 == 0:
                slowest = max(slowest, answered_in(service))
    return sent, slowest


def send(connection, part):
    try:
        connection.sendall(part)
    except OSError:
        return False
    return True


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def answered_in(service):
    started = time.monotonic()
    assert service.http.get("/healthz").status_code == 200
    return time.monotonic() - started
