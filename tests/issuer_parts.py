"""A real issuer of tokens on a port of this machine, and devices' side of it without a device."""

from __future__ import annotations

import contextlib
import http.client
import io
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from searchblend.service.clock import Clock
from searchblend.service.http.connections import Connections
from searchblend.service.http.public_server import listen, port_of
from searchblend.service.http.server import HttpServer
from searchblend.service.issuer.books import Account, IssuerBooks
from searchblend.service.issuer.serve import REQUEST_PATH, Issuer, IssuerSettings
from searchblend.service.telemetry import Logbook
from searchblend.service.workers.token_terms import fetch_terms
from searchblend.store.rounds import Round
from searchblend.wire.manifest import TokenPart
from searchblend.wire.tokens import (
    REQUEST_MEDIA_TYPE,
    TokenAccount,
    TokenKey,
    TokenRequest,
    challenge_digest,
    issuer_name,
)


class RunningIssuer:
    """Where it is, and what its people do."""

    def __init__(self, address: str, folder: Path, clock: Clock, log: io.StringIO) -> None:
        self.address, self.folder, self.log = address, folder, log
        self._clock = clock

    def account(self, name: str) -> TokenAccount:
        with closing(IssuerBooks(self.folder)) as books:
            [secret] = books.add([name], now=self._clock.now())
        return TokenAccount(self.address, secret)

    def accounts(self) -> dict[str, Account]:
        with closing(IssuerBooks(self.folder)) as books:
            return {account.name: account for account in books.accounts(now=self._clock.now())}

    def terms(self) -> TokenPart:
        return fetch_terms(self.address, self._clock.now())


@contextlib.contextmanager
def running_issuer(folder: Path, clock: Clock, *, port: int = 0, per_week: int = 100) -> Iterator[RunningIssuer]:
    log = io.StringIO()
    issuer = Issuer(IssuerSettings(data_dir=str(folder), per_week=per_week), clock, Logbook(log))
    with listen("127.0.0.1", port) as listener:
        server = HttpServer(issuer.app(), Connections())
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield RunningIssuer(f"http://127.0.0.1:{port_of(listener)}", folder, clock, log)
        finally:
            server.should_exit = True
            thread.join(60)


def ask(account: TokenAccount, message: bytes, *, media_type: str = REQUEST_MEDIA_TYPE) -> tuple[int, bytes]:
    """A request for a token over HTTP: status and body."""
    parts = urlsplit(account.issuer)
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=240)) as connection:
        headers = {"Content-Type": media_type, "Authorization": f"Bearer {account.credential}"}
        connection.request("POST", REQUEST_PATH, message, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def token_request(terms: TokenPart, task: str, number: int) -> TokenRequest:
    digest = challenge_digest(issuer_name(terms.issuer), bytes.fromhex(task), number)
    return TokenRequest.make(TokenKey.of_text(terms.key), digest)


def token_for(account: TokenAccount, terms: TokenPart, round_: Round) -> bytes:
    """A token for a round, as a device gets it."""
    request = token_request(terms, round_.task, round_.number)
    status, response = ask(account, request.request)
    assert status == 200, response
    return request.token(response, TokenKey.of_text(terms.key))
