"""A server process: the application of its role, its workers, and how both end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

from searchblend.core.errors import RunError, UsageError
from searchblend.files.durable import make_private_folder, read_private
from searchblend.service.alerts import alerting
from searchblend.service.api.app import ROLE_TAGS, build_app
from searchblend.service.arrivals import ArrivalLog
from searchblend.service.checkup import keys_overdue
from searchblend.service.clock import Clock, SteadyClock
from searchblend.service.console.planner_page import Planner
from searchblend.service.console.public_pages import Imprint
from searchblend.service.console.single_sign_on import SingleSignOn
from searchblend.service.enrolment import EnrolmentOffer
from searchblend.service.http.connections import Connections
from searchblend.service.http.health import health_app, health_listener
from searchblend.service.http.server import BACKLOG, HttpServer
from searchblend.service.process import SignalStop, affordable_connections, crash_points, no_core_files
from searchblend.service.services import Services
from searchblend.service.settings import ServeSettings
from searchblend.service.telemetry import Logbook
from searchblend.service.workers.curator_process import CuratorProcess, make_curator
from searchblend.service.workers.estimator import Estimator
from searchblend.service.workers.gateway_keys import DAY, GatewayKeys
from searchblend.service.workers.publisher import Publisher
from searchblend.service.workers.signing_keys import (
    SigningKeys,
    curator_points,
    keys_trouble,
    make_curator_key,
    require_curator,
)
from searchblend.service.workers.vault import Vault
from searchblend.service.workers.worker import Runner, Worker, WorkerThread
from searchblend.store.service_store import ServiceStore, open_store

_SWITCH_SECONDS: Final = 0.0005
"""The thread that writes reports asks for the interpreter after each statement; waiting 5 ms for it, Python's default,
would cost more than the disk."""
OnReady = Callable[[str, str], None]
"""takes the public address and the one for health"""


def serve(
    settings: ServeSettings,
    *,
    anonymous_intake: bool = False,
    on_ready: OnReady = lambda address, health: None,
    planner: Planner | None = None,
) -> None:
    """Run until SIGTERM or SIGINT. What was acknowledged is on disk; what waits is committed before the end."""
    no_core_files()
    sys.setswitchinterval(_SWITCH_SECONDS)
    prepare_folders(settings)
    check_tls(settings.tls_certificate, settings.tls_key)
    logbook, clock, on_point = Logbook(), SteadyClock(), crash_points()
    with open_store(settings.where, on_point=on_point) as store:
        logbook.write("starting", role=settings.role, version=version("searchblend"), database=store.database.dialect)
    services = Services(
        settings.where,
        clock=clock,
        logbook=logbook,
        anonymous_intake=anonymous_intake,
        reports_per_second=settings.reports_per_second,
        most_waiting=settings.queue,
        on_point=on_point,
        database_seconds=settings.database_seconds,
    )
    if settings.oidc_issuer:
        services.sso = SingleSignOn(settings, clock.now)
    _add_troubles(settings, clock, services)
    if settings.plays("gateway"):
        services.gateway_keys = gateway_keys(settings)
        services.gateway_keys.make_first(clock.now())
    if settings.role == "curator":
        _run_curator(settings, clock, services, on_point, on_ready)
        return
    with _workers(settings, clock, services, on_point), alerting(settings, clock, logbook, services.metrics):
        _run_http(settings, services, on_ready, planner)
    logbook.write("stopped", role=settings.role)


def prepare_folders(settings: ServeSettings) -> None:
    """Make the folders of the role's keys; what cannot be made or read ends the process before it listens.

    A server that took records without a worker that can use its keys would take them for nothing.
    """
    make_private_folder(settings.folder)
    if settings.plays("curator"):
        Vault(settings.vault_folder)
        make_curator_key(settings.vault_folder, settings.key_passphrase)
    if settings.plays("publisher"):
        SigningKeys.of(settings).add_if_none()
        require_curator(settings)


def gateway_keys(settings: ServeSettings) -> GatewayKeys:
    return GatewayKeys(settings.gateway_folder, settings.gateway_key_days * DAY)


def _add_troubles(settings: ServeSettings, clock: SteadyClock, services: Services) -> None:
    """Where the role has jobs: a clock that jumped, round keys past their deadline, signing keys not on record."""
    if settings.role not in ("collector", "intake"):
        services.troubles.append(lambda store: clock.trouble())
    if settings.plays("curator"):
        services.vault = vault = Vault(settings.vault_folder)
        services.troubles.append(lambda store: keys_overdue(vault, clock))
    if settings.plays("publisher"):
        keys = SigningKeys.of(settings)
        services.troubles.append(lambda store: keys_trouble(store, [key.key_id for key in keys.all()]))


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


def _run_http(settings: ServeSettings, services: Services, on_ready: OnReady, planner: Planner | None) -> None:
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listen(settings.host, settings.port))
        health = stack.enter_context(listen(settings.health_host, settings.health_listens))
        most = affordable_connections(settings.connections)
        connections = Connections(
            most, settings.peer_seconds, lambda reason: services.metrics.count("connections_cut_total", reason=reason)
        )
        app = build_app(
            services,
            settings.role,
            manifest_seconds=settings.manifest_seconds,
            planner=planner,
            imprint=Imprint(settings.publisher, settings.contact, settings.licence),
        )
        tls = (settings.tls_certificate, settings.tls_key) if settings.tls_certificate else None
        address = f"{'https' if tls else 'http'}://{settings.host}:{port_of(listener)}"
        if settings.plays("publisher"):
            services.offer = EnrolmentOffer(settings, settings.public_address or address)
        server = HttpServer(app, connections, tls)
        services.is_answering = server.is_answering

        def stop() -> None:
            server.should_exit = True

        stop_on_signals(stop, settings.stop_seconds, services.logbook, role=settings.role)
        answers = health_app(services, connections, with_rounds="admin" in ROLE_TAGS[settings.role])
        stack.enter_context(health_listener(answers, health))
        services.logbook.write("listening", port=port_of(listener), health_port=port_of(health), connections=most)
        on_ready(address, f"http://{settings.health_host}:{port_of(health)}")
        server.run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=BACKLOG)
    except OSError as error:
        why = str(error.strerror).partition(" (while")[0]  # Python repeats the address there
        raise RunError(f"{host}:{port}: cannot listen: {why}") from error


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


def _run_curator(
    settings: ServeSettings,
    clock: Clock,
    services: Services,
    on_point: Callable[[str], None],
    on_ready: OnReady,
) -> None:
    """No port: only the database and the signals that end it reach this process."""
    stop = SignalStop()
    stop_on_signals(stop.set, settings.stop_seconds, services.logbook, role=settings.role)
    on_ready("no port", "")
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
    first: list[Callable[[], int]] = []
    # A gateway reads no inner documents, and so leaves none to wipe.
    each_time: list[Callable[[], int]] = [] if settings.role == "gateway" else [store.artifacts.wipe]
    if settings.plays("gateway"):
        keys = services.gateway_keys or gateway_keys(settings)
        each_time.append(lambda: keys.keep_up(store, clock.now()))
    if settings.plays("curator"):
        # It only counts files here; keys and records are opened in a process that ends with its job.
        curator = make_curator(settings, store, clock, anonymous_intake=services.anonymous_intake)
        runners.append(
            CuratorProcess(settings, clock, curator.excluded_jobs, anonymous_intake=services.anonymous_intake)
        )
        first += [curator.destroy_overdue, curator.remember_withdrawals]
        each_time += [curator.destroy_leftovers, curator.set_asked_cap]
    if settings.plays("publisher"):
        publisher = Publisher(store, clock, SigningKeys.of(settings), curator_points(settings))
        runners.append(publisher)
        each_time.append(publisher.refresh_manifests)
    if settings.plays("admin"):
        runners.append(Estimator(store, clock))
        each_time.append(ArrivalLog(store, clock).record)
    each_time.append(_TroubleLog(store, services).update)
    tick = settings.role in ("all", "admin", "curator")
    return Worker(
        store,
        clock,
        runners,
        tick=tick,
        each_time=each_time,
        first=first,
        logbook=services.logbook,
        metrics=services.metrics,
    )


class _TroubleLog:
    """Writes to the log what keeps the process from being ready, once, and when all is well again."""

    def __init__(self, store: ServiceStore, services: Services) -> None:
        self._store, self._services = store, services
        self._known: list[str] = []

    def update(self) -> int:
        troubles = [why for check in self._services.troubles if (why := check(self._store))]
        if troubles != self._known:
            self._services.logbook.write(f"not ready: {'; '.join(troubles)}" if troubles else "ready again")
            self._known = troubles
        return 0
