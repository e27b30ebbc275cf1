"""A relay and a gateway in one small server, honest or not, before anything that serves devices; and a wire tap."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from starlette.testclient import TestClient

from searchblend.wire.binary_http import (
    HttpRequest,
    HttpResponse,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from searchblend.wire.ohttp import (
    GATEWAY_PATH,
    KEY_PROBLEM,
    KEYS_MEDIA_TYPE,
    REQUEST_MEDIA_TYPE,
    RESPONSE_MEDIA_TYPE,
    GatewayKey,
    OpenedRequest,
    SealedRequest,
    UnknownKey,
    decode_configurations,
    encode_configurations,
    open_request,
)

Reply = Callable[[bytes], tuple[int, str, bytes]]
"""what a sealed request is answered with: status, media type, content"""


class SmallServer:
    """GET and POST of anything, answered by two functions; ``None`` ends the connection without an answer."""

    def __init__(
        self,
        get: Callable[[], tuple[int, str, bytes]],
        post: Callable[[bytes], tuple[int, str, bytes] | None],
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._write(get())

            def do_POST(self) -> None:
                self._write(post(self.rfile.read(int(self.headers.get("content-length") or 0))))

            def _write(self, answer: tuple[int, str, bytes] | None) -> None:
                if answer is None:
                    self.close_connection = True
                    with contextlib.suppress(OSError):
                        self.connection.shutdown(socket.SHUT_RDWR)
                    return
                status, media_type, content = answer
                self.send_response(status)
                self.send_header("Content-Type", media_type)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Set-Cookie", "who=you")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> SmallServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


class MadeGateway:
    """Opens what it is brought, asks the service behind it, seals the answer; and writes down what it opened."""

    def __init__(self, service: str, secret: bytes = bytes(range(32))) -> None:
        self.key = GatewayKey.of_bytes(secret)
        self.others: list[GatewayKey] = []
        """keys that are not given out and still accepted"""
        self.opened: list[HttpRequest] = []
        self._service = urlsplit(service)

    @property
    def digests(self) -> list[str]:
        return [self.key.configuration.digest]

    def keys(self) -> tuple[int, str, bytes]:
        return 200, KEYS_MEDIA_TYPE, encode_configurations([self.key.configuration])

    def take(self, message: bytes) -> tuple[int, str, bytes]:
        try:
            opened = open_request(message, [self.key, *self.others])
        except UnknownKey:
            return 400, "application/problem+json", json.dumps({"type": KEY_PROBLEM}).encode()
        return 200, RESPONSE_MEDIA_TYPE, self.answer(opened)

    def answer(self, opened: OpenedRequest) -> bytes:
        request = decode_request(opened.request)
        self.opened.append(request)
        connection = http.client.HTTPConnection(self._service.hostname or "", self._service.port, timeout=60)
        try:
            connection.request(request.method, request.path, request.content, dict(request.fields))
            found = connection.getresponse()
            fields = tuple((name.lower(), value) for name, value in found.getheaders() if name.lower() == "retry-after")
            return opened.seal(encode_response(HttpResponse(found.status, fields, found.read())))
        finally:
            connection.close()


def ask_sealed(
    client: TestClient, method: str, path: str, content: bytes = b"", fields: Mapping[str, str] | None = None
) -> HttpResponse:
    """What the gateway behind this client answers to a request that is sealed to the key that it gives out."""
    (key,) = decode_configurations(client.get(GATEWAY_PATH).content)
    lines = tuple((name.lower(), value) for name, value in (fields or {}).items())
    sealed = SealedRequest(key, encode_request(HttpRequest(method, "https", "lists.example", path, lines, content)))
    outer = client.post(GATEWAY_PATH, content=sealed.message, headers={"content-type": REQUEST_MEDIA_TYPE})
    assert outer.status_code == 200, outer.text
    return decode_response(sealed.open(outer.content))


class Tap:
    """Forwards connections to an address and writes down what passes, in both directions."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._to = parts.hostname or "", parts.port or 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.sent, self.answered = bytearray(), bytearray()
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @contextlib.contextmanager
    def running(self) -> Iterator[Tap]:
        accepting = threading.Thread(target=self._accept, daemon=True)
        accepting.start()
        try:
            yield self
        finally:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            for thread in (accepting, *self._threads):
                thread.join(60)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                thread = threading.Thread(target=self._carry, args=(near,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _carry(self, near: socket.socket) -> None:
        """One connection, until both sides have ended it."""
        with near, contextlib.suppress(OSError), socket.create_connection(self._to) as far:
            back = threading.Thread(target=self._copy, args=(far, near, self.answered), daemon=True)
            back.start()
            self._copy(near, far, self.sent)
            back.join()

    def _copy(self, one: socket.socket, other: socket.socket, into: bytearray) -> None:
        with contextlib.suppress(OSError):
            while piece := one.recv(65_536):
                with self._lock:
                    into += piece
                other.sendall(piece)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_WR)
