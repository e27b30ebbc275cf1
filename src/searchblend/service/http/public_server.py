"""One process that answers strangers: its address and certificate, its open connections, and how a signal ends it.

The service, the relay and the issuer each give an application; the rest is the same for all of them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from starlette.applications import Starlette

from searchblend.core.errors import RunError, UsageError
from searchblend.files.durable import read_private
from searchblend.service.http.connections import Connections
from searchblend.service.http.server import BACKLOG, HttpServer
from searchblend.service.process import affordable_connections
from searchblend.service.telemetry import Logbook

OnReady = Callable[[str, str], None]
"""takes the public address and the one for health, which is empty where there is none"""


class PublicSettings(Protocol):
    """What the settings of every server have."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def tls_certificate(self) -> str: ...
    @property
    def tls_key(self) -> str: ...
    @property
    def connections(self) -> int: ...
    @property
    def peer_seconds(self) -> float: ...
    @property
    def stop_seconds(self) -> float: ...


@dataclass(frozen=True)
class PublicServer:
    """The application at its address, before it answers."""

    listener: socket.socket
    address: str
    server: HttpServer
    most_connections: int

    def announce(
        self, logbook: Logbook, on_ready: OnReady, health_host: str = "", health: socket.socket | None = None
    ) -> None:
        """Say where the process answers, and where its health is to be asked for."""
        ports = {"port": port_of(self.listener)} | ({"health_port": port_of(health)} if health else {})
        logbook.write("listening", **ports, connections=self.most_connections)
        on_ready(self.address, f"http://{health_host}:{port_of(health)}" if health else "")

    def run(self) -> None:
        """Answer until a signal comes."""
        self.server.run(sockets=[self.listener])


def address_of(settings: PublicSettings, listener: socket.socket) -> str:
    return f"{'https' if settings.tls_certificate else 'http'}://{settings.host}:{port_of(listener)}"


@contextlib.contextmanager
def public_server(
    settings: PublicSettings,
    make_app: Callable[[str], Starlette],
    logbook: Logbook,
    *,
    role: str,
    on_cut: Callable[[str], None] = lambda reason: None,
    on_stop: Callable[[], None] = lambda: None,
) -> Iterator[PublicServer]:
    """Listen, and end in order on a signal.

    Args:
        settings: Where, with which certificate, for how many.
        make_app: The application, from the address at which it is reached.
        logbook: Where the process writes.
        role: What the process calls itself there.
        on_cut: Called with the reason for which a connection was cut.
        on_stop: Called when the server begins to end.
    """
    with listen(settings.host, settings.port) as listener:
        address = address_of(settings, listener)
        most = affordable_connections(settings.connections)
        tls = (settings.tls_certificate, settings.tls_key) if settings.tls_certificate else None
        connections = Connections(most, settings.peer_seconds, on_cut)
        server = HttpServer(make_app(address), connections, tls, on_stop)

        def stop() -> None:
            server.should_exit = True

        stop_on_signals(stop, settings.stop_seconds, logbook, role=role)
        yield PublicServer(listener, address, server, most)


def check_tls(certificate: str, key: str) -> None:
    """Load certificate and key once here: the HTTP server would do so after its address was printed."""
    if not certificate:
        return
    for path, read in ((certificate, Path.read_bytes), (key, read_private)):
        try:
            read(Path(path))
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # An empty password instead of a question on the terminal.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise UsageError(
            f"{certificate}, {key}: expected a certificate and its key without a password, both PEM"
        ) from error


def listen(host: str, port: int) -> socket.socket:
    try:
        listener = socket.create_server((host, port), backlog=BACKLOG)
    except OSError as error:
        why = str(error.strerror).partition(" (while")[0]  # Python repeats the address there
        raise RunError(f"{host}:{port}: cannot listen: {why}") from error
    # Connections inherit it. asyncio takes a socket of no named protocol for none of TCP and leaves it out, so that a
    # body would wait for the acknowledgement of its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def stop_on_signals(stop: Callable[[], None], seconds: float, logbook: Logbook, *, role: str) -> None:
    """End in order on SIGTERM and SIGINT, and in any case after so many seconds: a database may never answer.

    What was not committed by then was not acknowledged either.
    """

    def give_up() -> None:
        logbook.write("stopped late", role=role, seconds=seconds)
        os._exit(1)

    def handle(number: int, frame: object) -> None:
        stop()
        watchdog = threading.Timer(seconds, give_up)
        watchdog.daemon = True
        watchdog.start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
