"""The issuer's server: a directory of keys that anyone may read, and tokens for those who have an account.

It is a program of its own, with a file and keys of its own: it never meets the collection service's database, and what
it sees of a token is a random number (``wire/blind_rsa.py``). Run it where the collector's operators have no hand in
it, else the two could compare the times of what they see.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from searchblend.core.errors import MessageError
from searchblend.files.durable import make_private_folder
from searchblend.service.api.answers import Refusal, bearer, guarded, read_body
from searchblend.service.api.operations import Handler
from searchblend.service.clock import DAY, Clock, SteadyClock
from searchblend.service.http.health import healthz
from searchblend.service.http.public_server import OnReady, check_tls, public_server
from searchblend.service.issuer.books import BooksError, Issuance, IssuerBooks
from searchblend.service.issuer.keys import IssuerKeys
from searchblend.service.process import no_core_files
from searchblend.service.settings import LARGEST_PORT, check_bounds, check_tls_pair
from searchblend.service.telemetry import Logbook
from searchblend.wire.tokens import (
    DIRECTORY_MEDIA_TYPE,
    DIRECTORY_PATH,
    REQUEST_BYTES,
    REQUEST_MEDIA_TYPE,
    RESPONSE_MEDIA_TYPE,
)

REQUEST_PATH: Final = "/token-request"
MOST_WAITING: Final = 1_000
"""requests that wait to be signed; beyond it they are turned away"""
_DIRECTORY_SECONDS: Final = 300
_REFUSALS: Final = {Issuance.UNKNOWN: "bad-credential", Issuance.LIMIT: "token-limit"}


@dataclass(frozen=True)
class IssuerSettings:
    """One issuer."""

    data_dir: str = "searchblend-issuer"
    host: str = "127.0.0.1"
    port: int = 8490
    tls_certificate: str = ""
    tls_key: str = ""
    per_week: int = 3
    """tokens of an account in a week: a device needs one for each round of its task, and few rounds are shorter"""
    rotate_days: int = 90
    """the age at which a key gets a successor"""
    connections: int = 4_000
    peer_seconds: float = 30.0
    stop_seconds: float = 30.0

    def __post_init__(self) -> None:
        check_bounds(
            self,
            ("port", 0, LARGEST_PORT),
            ("per_week", 1, 10_000),
            ("rotate_days", 1, 3_650),
            ("connections", 16, 10**6),
            ("peer_seconds", 1, 3_600),
            ("stop_seconds", 1, 3_600),
        )
        check_tls_pair(self.tls_certificate, self.tls_key)

    @property
    def folder(self) -> Path:
        return Path(self.data_dir)

    @property
    def key_folder(self) -> Path:
        return self.folder / "keys"


class Issuer:
    """The routes. Books and keys belong to one thread: a token is counted on disk before it is signed."""

    def __init__(self, settings: IssuerSettings, clock: Clock, logbook: Logbook) -> None:
        make_private_folder(settings.folder)
        self._settings, self._clock, self._logbook = settings, clock, logbook
        self._keys = IssuerKeys(settings.key_folder)
        self._keys.rotate_if_due(clock.now(), every=settings.rotate_days * DAY)
        self._books = IssuerBooks(settings.folder)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="issuer")
        self._n_waiting = 0

    def app(self) -> Starlette:
        @contextlib.asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            yield
            self.close()

        routes = [
            Route(DIRECTORY_PATH, self._guarded(self.directory), methods=["GET"]),
            Route(REQUEST_PATH, self._guarded(self.issue), methods=["POST"]),
            Route("/healthz", healthz, methods=["GET"]),
        ]
        return Starlette(routes=routes, lifespan=lifespan)

    def close(self) -> None:
        self._thread.shutdown()
        self._books.close()

    async def directory(self, request: Request) -> Response:
        """The keys; asking for them is also when a new one is made, if that is due."""
        content = await asyncio.get_running_loop().run_in_executor(self._thread, self._directory)
        headers = {"Cache-Control": f"public, max-age={_DIRECTORY_SECONDS}"}
        return Response(content, headers=headers, media_type=DIRECTORY_MEDIA_TYPE)

    async def issue(self, request: Request) -> Response:
        """A blind signature for an account that has tokens left."""
        credential = bearer(request)
        if credential is None:
            raise Refusal("bad-credential")
        message = await read_body(request, media_type=REQUEST_MEDIA_TYPE, at_most=REQUEST_BYTES)
        if self._n_waiting >= MOST_WAITING:
            raise Refusal("overloaded")
        self._n_waiting += 1
        try:
            signed = await asyncio.get_running_loop().run_in_executor(self._thread, self._issue, credential, message)
        finally:
            self._n_waiting -= 1
        return Response(signed, headers={"Cache-Control": "no-store"}, media_type=RESPONSE_MEDIA_TYPE)

    def _directory(self) -> bytes:
        now = self._clock.now()
        self._keys.rotate_if_due(now, every=self._settings.rotate_days * DAY)
        return self._keys.directory(now, REQUEST_PATH)

    def _issue(self, credential: str, message: bytes) -> bytes:
        now = self._clock.now()
        try:
            key, blinded = self._keys.of_request(message, now)
        except MessageError as error:
            raise Refusal("unknown-token-key", str(error)) from None
        issuance = self._books.take(credential, message, per_week=self._settings.per_week, now=now)
        if issuance is not Issuance.GRANTED:
            raise Refusal(_REFUSALS[issuance])
        return key.sign(blinded)

    def _guarded(self, handler: Handler) -> Handler:
        return guarded(handler, self._unexpected)

    def _unexpected(self, error: Exception) -> Refusal:
        """No refusal says more than its kind."""
        self._logbook.failure("request failed", error)
        return Refusal("storage-unavailable" if isinstance(error, BooksError) else "internal")


def run_issuer(settings: IssuerSettings, *, on_ready: OnReady) -> None:
    """Until SIGTERM or SIGINT."""
    no_core_files()
    check_tls(settings.tls_certificate, settings.tls_key)
    logbook = Logbook()
    issuer = Issuer(settings, SteadyClock(), logbook)
    with public_server(settings, lambda address: issuer.app(), logbook, role="issuer") as public:
        public.announce(logbook, on_ready)
        public.run()
    logbook.write("stopped", role="issuer")
