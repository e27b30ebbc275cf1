"""A server process: the application of its role, its workers, and how both end."""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

import uvicorn

from searchblend.errors import RunError, UsageError
from searchblend.server.app import build_app
from searchblend.server.clock import Clock, SystemClock
from searchblend.server.console.planner_page import Planner
from searchblend.server.crash_points import crash_points
from searchblend.server.curator import Curator
from searchblend.server.curator_key import curator_points, make_curator_key, require_curator
from searchblend.server.estimator import Estimator
from searchblend.server.logbook import Logbook
from searchblend.server.private_folder import make_private_folder
from searchblend.server.publisher import Publisher, SigningKeys
from searchblend.server.serve_settings import ServeSettings
from searchblend.server.services import Services
from searchblend.server.vault import Vault
from searchblend.server.worker import Runner, Worker
from searchblend.server.worker_thread import WorkerThread
from searchblend.store.service_store import ServiceStore, open_store
from searchblend.wire.tokens import TokenVerifier

_MOST_CONNECTIONS: Final = 4_000
"""open at once; beyond it uvicorn answers 503 by itself"""


def serve(
    settings: ServeSettings,
    *,
    anonymous_intake: bool = False,
    on_ready: Callable[[str], None] = lambda address: None,
    planner: Planner | None = None,
) -> None:
    """Run until SIGTERM or SIGINT. What was acknowledged is on disk; what waits is committed before the end."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold what is only ever in memory
    prepare_folders(settings)
    _check_tls(settings)
    logbook, clock, on_point = Logbook(), SystemClock(), crash_points()
    with open_store(settings.where, on_point=on_point) as store:
        logbook.write("starting", role=settings.role, version=version("searchblend"), database=store.database.dialect)
    services = Services(
        settings.where,
        clock=clock,
        logbook=logbook,
        anonymous_intake=anonymous_intake,
        reports_per_second=settings.reports_per_second,
        most_waiting=settings.queue,
        tokens=_token_verifier(settings),
        on_point=on_point,
    )
    if settings.role == "curator":
        _run_curator(settings, clock, services, on_point, on_ready)
        return
    with _workers(settings, clock, services, on_point):
        _run_http(settings, services, on_ready, planner)
    logbook.write("stopped", role=settings.role)


def prepare_folders(settings: ServeSettings) -> None:
    """Make the folders of the role's keys; what cannot be made or read ends the process before anybody is listened to.

    A server that took records without a worker that can use its keys would take them for nothing.
    """
    make_private_folder(settings.folder)
    if settings.role in ("all", "curator"):
        Vault(settings.vault_folder)
        make_curator_key(settings.vault_folder)
    if settings.role in ("all", "publisher"):
        SigningKeys(settings.signing_folder).add_if_none()
        require_curator(settings)


def _check_tls(settings: ServeSettings) -> None:
    """Load certificate and key once here: the HTTP server would do so after its address was printed."""
    if not settings.tls_certificate:
        return
    for path in (settings.tls_certificate, settings.tls_key):
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # An empty password instead of a question on the terminal.
        context.load_cert_chain(settings.tls_certificate, settings.tls_key, password=lambda: "")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise UsageError(
            f"{settings.tls_certificate}, {settings.tls_key}: expected a certificate and its key without a password, "
            "both PEM"
        ) from error


def _token_verifier(settings: ServeSettings) -> TokenVerifier | None:
    if not settings.token_key:
        return None
    try:
        return TokenVerifier(Path(settings.token_key).read_bytes(), settings.token_issuer)
    except OSError as error:
        raise UsageError(f"{settings.token_key}: cannot be read: {error.strerror}") from error


def _run_http(
    settings: ServeSettings, services: Services, on_ready: Callable[[str], None], planner: Planner | None
) -> None:
    try:
        listener = socket.create_server((settings.host, settings.port), backlog=1024)
    except OSError as error:
        raise RunError(f"{settings.host}:{settings.port}: cannot listen: {error.strerror}") from error
    port = listener.getsockname()[1]
    config = uvicorn.Config(
        build_app(services, settings.role, manifest_seconds=settings.manifest_seconds, planner=planner),
        loop="uvloop",
        http="httptools",
        ws="none",
        access_log=False,
        log_config=None,
        log_level="critical",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=20,
        timeout_keep_alive=30,
        ssl_certfile=settings.tls_certificate or None,
        ssl_keyfile=settings.tls_key or None,
    )
    services.logbook.write("listening", port=port)
    on_ready(f"{'https' if settings.tls_certificate else 'http'}://{settings.host}:{port}")
    _Server(config).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Ends in order on SIGTERM and SIGINT; uvicorn's own would kill itself with the signal afterwards."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        earlier = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)


def _run_curator(
    settings: ServeSettings,
    clock: Clock,
    services: Services,
    on_point: Callable[[str], None],
    on_ready: Callable[[str], None],
) -> None:
    """No port: it hears nothing but the database and the signals that end it."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    on_ready("no port")
    with open_store(settings.where, on_point=on_point) as store:
        make_worker(settings, store, clock, services).run_until(stop, every=settings.poll_seconds)
    services.logbook.write("stopped", role=settings.role)


@contextlib.contextmanager
def _workers(
    settings: ServeSettings, clock: Clock, services: Services, on_point: Callable[[str], None]
) -> Iterator[None]:
    """A thread beside the HTTP server, where the role has jobs."""
    if settings.role in ("collector", "intake"):
        yield
        return

    @contextlib.contextmanager
    def begin() -> Iterator[Worker]:
        with open_store(settings.where, on_point=on_point) as store:
            yield make_worker(settings, store, clock, services)

    thread = WorkerThread(begin, services.logbook, every=settings.poll_seconds)
    services.is_working = thread.is_working
    with thread.running():
        yield


def make_worker(settings: ServeSettings, store: ServiceStore, clock: Clock, services: Services) -> Worker:
    """Who does what: keys are read by the role that needs them, and by no other."""
    runners: list[Runner] = []
    each_time: list[Callable[[], int]] = []
    if settings.role in ("all", "curator"):
        vault = Vault(settings.vault_folder)
        signer = make_curator_key(settings.vault_folder)
        curator = Curator(store, clock, vault, signer, anonymous_intake=services.anonymous_intake)
        runners.append(curator)
        each_time.append(curator.destroy_leftovers)
    if settings.role in ("all", "publisher"):
        publisher = Publisher(store, clock, SigningKeys(settings.signing_folder), curator_points(settings))
        runners.append(publisher)
        each_time.append(publisher.refresh_manifests)
    if settings.role in ("all", "admin"):
        runners.append(Estimator(store, clock))
    tick = settings.role in ("all", "admin", "curator")
    return Worker(
        store, clock, runners, tick=tick, each_time=each_time, logbook=services.logbook, metrics=services.metrics
    )
