"""An oblivious relay (RFC 9458): takes sealed requests of devices, and brings them to one gateway without saying whose.

It has no key and reads nothing. To the gateway it sends the sealed bytes, their media type and their length, over
connections of its own; to the device it returns what the gateway sealed, and no other header. Requests wait for others,
up to a number and a time, and leave in random order: when and in which order they came does not show behind it. The
gateway's key configuration is fetched here for all devices, so that the gateway cannot give each its own. Addresses are
in no log and no metric.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import random
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final
from urllib.parse import SplitResult

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.service.api.answers import Refusal, guarded, read_body
from searchblend.service.api.operations import Handler
from searchblend.service.clock import DAY
from searchblend.service.http.health import health_listener, healthz, watch_app
from searchblend.service.http.public_server import OnReady, check_tls, listen, public_server
from searchblend.service.http.server import HttpServer
from searchblend.service.process import no_core_files
from searchblend.service.settings import check_bounds, check_tls_pair
from searchblend.service.telemetry import Logbook, ServiceMetrics
from searchblend.wire.addresses import service_address
from searchblend.wire.ohttp import (
    KEYS_MEDIA_TYPE,
    LARGEST_KEYS,
    LARGEST_REQUEST,
    REQUEST_MEDIA_TYPE,
    RESPONSE_MEDIA_TYPE,
    decode_configurations,
    largest_response,
)
from searchblend.wire.problems import MEDIA_TYPE as PROBLEM_MEDIA_TYPE

LARGEST_ANSWER: Final = largest_response(32 * 2**20)
"""a pack"""
MOST_WAITING: Final = 4_096
"""requests that wait for their batch, or for the gateway"""
KEYS_SECONDS: Final = 300.0
"""how long devices get the same key configuration before it is asked for again"""
_AGAIN_SECONDS: Final = 1.0
"""when the gateway did not give it"""
_STALE_KEYS_SECONDS: Final = DAY
"""how long the last one is given out while the gateway does not answer: as long as it is announced before"""
_CONNECTIONS_OUT: Final = 16
_LARGE: Final = 2**20
_MOST_LARGE: Final = 4
"""answers of more than 1 MiB that are read from the gateway at once"""
_LARGEST_PROBLEM: Final = 4_096


@dataclass(frozen=True)
class RelaySettings:
    """One relay, for one gateway."""

    gateway: str
    """the gateway's address, to its last path segment"""
    host: str = "127.0.0.1"
    port: int = 8480
    health_host: str = "127.0.0.1"
    health_port: int = 9480
    delay: float = 1.0
    """seconds that a request waits for others, at most"""
    batch: int = 64
    """requests that leave at once, without waiting longer"""
    connections: int = 4_000
    peer_seconds: float = 30.0
    gateway_seconds: float = 15.0
    """how long the gateway may keep silent"""
    stop_seconds: float = 30.0
    tls_certificate: str = ""
    tls_key: str = ""
    plain_http: bool = False
    """whether the gateway may be asked over http on another machine"""

    def __post_init__(self) -> None:
        check_bounds(
            self,
            ("delay", 0, 10),
            ("batch", 1, MOST_WAITING // 4),
            ("connections", 16, 10**6),
            ("peer_seconds", 1, 3600),
            ("gateway_seconds", 1, 60),
            ("stop_seconds", 1, 3600),
        )
        check_tls_pair(self.tls_certificate, self.tls_key)
        gateway_parts(self.gateway, plain_http=self.plain_http)


def gateway_parts(address: str, *, plain_http: bool) -> SplitResult:
    """A gateway's address: https, or http on this machine."""
    if not (address.isascii() and address.isprintable()):
        raise InvalidParameter("gateway", "expected an address such as https://lists.example/…")
    over_http = "expected https, or --plain-http: anyone on the way sees the relay's traffic"
    return service_address("gateway", address, plain_http=plain_http, over_http=over_http)


@dataclass(frozen=True)
class GatewayAnswer:
    """What the gateway answered, as far as a device gets it."""

    status: int
    media_type: str
    content: bytes


class GatewayOut(Refusal):
    """The gateway gave no answer that can be passed on."""

    def __init__(self) -> None:
        super().__init__("overloaded", "the gateway does not answer")


class GatewayLine:
    """Asks the gateway, from threads that each keep a connection."""

    def __init__(self, address: str, seconds: float, *, plain_http: bool = False) -> None:
        self._parts = gateway_parts(address, plain_http=plain_http)
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(_CONNECTIONS_OUT, thread_name_prefix="gateway")
        self._own = threading.local()
        self._open: set[http.client.HTTPConnection] = set()
        self._large = threading.BoundedSemaphore(_MOST_LARGE)
        self._tls = ssl.create_default_context() if self._parts.scheme == "https" else None

    async def ask(self, method: str, message: bytes = b"") -> GatewayAnswer:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, method, message)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for connection in list(self._open):
            connection.close()

    def _ask(self, method: str, message: bytes) -> GatewayAnswer:
        """A connection that the gateway has closed meanwhile is made anew, once: the same bytes count once."""
        used = getattr(self._own, "connection", None)
        try:
            return self._once(method, message)
        except (http.client.RemoteDisconnected, ConnectionError) as error:
            self._drop()
            if used is None:
                raise GatewayOut from error
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            raise GatewayOut from error
        try:
            return self._once(method, message)
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            raise GatewayOut from error

    def _once(self, method: str, message: bytes) -> GatewayAnswer:
        connection = self._connection()
        connection.putrequest(method, self._parts.path or "/", skip_accept_encoding=True)
        if method == "POST":
            connection.putheader("Content-Type", REQUEST_MEDIA_TYPE)
            connection.putheader("Content-Length", str(len(message)))
        connection.endheaders(message or None)
        answer = connection.getresponse()
        size = answer.length
        if size is None or size > LARGEST_ANSWER:
            raise http.client.HTTPException  # an answer without a length may have been cut off
        with self._large if size > _LARGE else contextlib.nullcontext():
            content = answer.read()
        if answer.will_close:
            self._drop()
        return GatewayAnswer(
            answer.status, answer.getheader("Content-Type", "").partition(";")[0].strip().lower(), content
        )

    def _connection(self) -> http.client.HTTPConnection:
        known: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if known is None:
            host, port = self._parts.hostname or "", self._parts.port
            known = (
                http.client.HTTPConnection(host, port, timeout=self._seconds)
                if self._tls is None
                else http.client.HTTPSConnection(host, port, timeout=self._seconds, context=self._tls)
            )
            self._own.connection = known
            self._open.add(known)
        return known

    def _drop(self) -> None:
        if (known := getattr(self._own, "connection", None)) is not None:
            known.close()
            self._open.discard(known)
        self._own.connection = None


class Batches:
    """Requests wait here until there are ``most`` of them or the first has waited ``seconds``; they leave in random
    order. Belongs to one event loop."""

    def __init__(self, most: int, seconds: float, on_leave: Callable[[], None] = lambda: None) -> None:
        self._most, self._seconds, self._on_leave = most, seconds, on_leave
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_closing = False

    def __len__(self) -> int:
        return len(self._waiting)

    async def turn(self) -> None:
        """Returns when the request's batch leaves."""
        loop = asyncio.get_running_loop()
        own = loop.create_future()
        self._waiting.append(own)
        if len(self._waiting) >= self._most or self._is_closing:
            self.leave()
        elif self._timer is None:
            self._timer = loop.call_later(self._seconds, self.leave)
        await own

    def leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        leaving, self._waiting = self._waiting, []
        random.SystemRandom().shuffle(leaving)
        for one in leaving:
            if not one.done():
                one.set_result(None)
        if leaving:
            self._on_leave()

    def close(self) -> None:
        """From now on nothing waits."""
        self._is_closing = True
        self.leave()


class Relay:
    """The routes of a relay."""

    def __init__(
        self,
        line: GatewayLine,
        batches: Batches,
        metrics: ServiceMetrics,
        logbook: Logbook,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line, self._batches, self._metrics, self._logbook, self._now = line, batches, metrics, logbook, now
        self._n_inside = 0
        self._keys: tuple[bytes, float] | None = None
        self.is_answered: bool | None = None
        """whether the gateway gave an answer when it was asked last; None before it was asked"""

    def app(self) -> Starlette:
        @contextlib.asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            following = asyncio.create_task(self.follow_keys())
            try:
                yield
            finally:
                following.cancel()

        routes = [
            Route("/", self._guarded(self.keys), methods=["GET"]),
            Route("/", self._guarded(self.take), methods=["POST"]),
            Route("/healthz", healthz, methods=["GET"]),
        ]
        return Starlette(routes=routes, lifespan=lifespan)

    async def take(self, request: Request) -> Response:
        """A device's sealed request."""
        message = await read_body(request, media_type=REQUEST_MEDIA_TYPE, at_most=LARGEST_REQUEST)
        if self._n_inside >= MOST_WAITING:
            raise Refusal("overloaded")
        self._n_inside += 1
        try:
            await self._batches.turn()
            answer = await self._ask("POST", message)
        finally:
            self._n_inside -= 1
        return _to_device(answer)

    async def keys(self, request: Request) -> Response:
        """The gateway's key configuration, the same for all who ask; asking makes no request to the gateway."""
        if self._keys is None or self._now() - self._keys[1] > _STALE_KEYS_SECONDS:
            raise Refusal("overloaded", "the gateway's key is not known now")
        headers = {"Cache-Control": f"public, max-age={int(KEYS_SECONDS)}"}
        return Response(self._keys[0], headers=headers, media_type=KEYS_MEDIA_TYPE)

    async def follow_keys(self) -> None:
        """Ask the gateway for its key configuration, again and again."""
        while True:
            try:
                await self._fetch_keys()
            except (GatewayOut, MessageError):
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                await asyncio.sleep(KEYS_SECONDS)

    async def _fetch_keys(self) -> None:
        answer = await self._ask("GET")
        if answer.status != 200 or answer.media_type != KEYS_MEDIA_TYPE or len(answer.content) > LARGEST_KEYS:
            raise GatewayOut
        decode_configurations(answer.content)
        self._keys = answer.content, self._now()

    async def _ask(self, method: str, message: bytes = b"") -> GatewayAnswer:
        try:
            answer = await self._line.ask(method, message)
        except GatewayOut:
            self._note(False)
            raise
        self._note(True)
        return answer

    def _note(self, is_answered: bool) -> None:
        if is_answered != self.is_answered and (self.is_answered is not None or not is_answered):
            self._logbook.write("the gateway answers again" if is_answered else "the gateway does not answer")
        self.is_answered = is_answered

    def _guarded(self, handler: Handler) -> Handler:
        return guarded(handler, self._unexpected, self._count)

    def _unexpected(self, error: Exception) -> Refusal:
        self._logbook.failure("request failed", error)
        return Refusal("internal")

    def _count(self, response: Response, refusal: Refusal | None) -> None:
        result = "passed on" if refusal is None else refusal.problem
        self._metrics.count("relayed_total", result="gateway" if isinstance(refusal, GatewayOut) else result)


def _to_device(answer: GatewayAnswer) -> Response:
    """The sealed answer, or how the gateway refused, in a few bytes; nothing else of what it said."""
    headers = {"Cache-Control": "private, no-store"}
    if answer.status == 200 and answer.media_type == RESPONSE_MEDIA_TYPE:
        return Response(answer.content, headers=headers, media_type=RESPONSE_MEDIA_TYPE)
    is_problem = answer.media_type == PROBLEM_MEDIA_TYPE and len(answer.content) <= _LARGEST_PROBLEM
    if 400 <= answer.status < 600 and is_problem:
        return Response(answer.content, answer.status, headers, PROBLEM_MEDIA_TYPE)
    raise GatewayOut


def _health_app(relay: Relay, batches: Batches, metrics: ServiceMetrics, server: HttpServer) -> Starlette:
    """For whoever runs the relay."""

    async def why_not_ready() -> str | None:
        return None if relay.is_answered else "the gateway does not answer"

    async def exposition(openmetrics: bool) -> str:
        metrics.set("relay_waiting", len(batches))
        metrics.set("connections", len(server.connections))
        return metrics.exposition(openmetrics=openmetrics)

    return watch_app(server.is_answering, why_not_ready, exposition)


def run_relay(settings: RelaySettings, on_ready: OnReady = lambda address, health: None) -> None:
    """Run until SIGTERM or SIGINT. What waits then leaves at once, and is answered within the time that is left."""
    no_core_files()
    check_tls(settings.tls_certificate, settings.tls_key)
    logbook, metrics = Logbook(), ServiceMetrics()
    logbook.write("starting", role="relay", version=version("searchblend"))
    line = GatewayLine(settings.gateway, settings.gateway_seconds, plain_http=settings.plain_http)
    batches = Batches(settings.batch, settings.delay, lambda: metrics.count("relay_batches_total"))
    relay = Relay(line, batches, metrics, logbook)

    def on_cut(reason: str) -> None:
        metrics.count("connections_cut_total", reason=reason)

    with (
        contextlib.closing(line),
        public_server(
            settings, lambda address: relay.app(), logbook, role="relay", on_cut=on_cut, on_stop=batches.close
        ) as public,
        listen(settings.health_host, settings.health_port) as health,
        health_listener(_health_app(relay, batches, metrics, public.server), health),
    ):
        public.announce(logbook, on_ready, settings.health_host, health)
        public.run()
    logbook.write("stopped", role="relay")
