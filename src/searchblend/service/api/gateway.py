"""The oblivious gateway (RFC 9458): opens what a relay brings, asks the routes of devices in this process, seals the
answer. Of whoever sent it there is nothing here to see: the connection is the relay's.

Errors follow RFC 9458, 5.2: what is wrong before a request is open is answered in the clear, everything after it inside
of the sealed answer. A request that a relay brings twice is asked twice, which the routes of devices answer alike.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from searchblend.core.errors import MessageError
from searchblend.service.api.answers import Refusal, problem_response, read_body
from searchblend.service.api.operations import Operation
from searchblend.service.services import Services
from searchblend.wire.binary_http import HttpRequest, HttpResponse, decode_request, encode_response
from searchblend.wire.canonical import json_bytes
from searchblend.wire.ohttp import (
    GATEWAY_PATH,
    KEY_PROBLEM,
    KEYS_MEDIA_TYPE,
    LARGEST_REQUEST,
    REQUEST_MEDIA_TYPE,
    RESPONSE_MEDIA_TYPE,
    OpenedRequest,
    UnknownKey,
    encode_configurations,
    open_request,
)
from searchblend.wire.problems import MEDIA_TYPE, Problem

_INTO: Final = ("authorization", "content-type")
"""what a route may know of a request, beside its content"""
_OUT_OF: Final = ("content-type", "retry-after")
"""what a device may know of an answer"""
_LARGE: Final = 256 * 1024
"""from here on a thread seals, so that the event loop goes on"""
_KEYS_SECONDS: Final = 300
"""how long caches may keep the key configuration"""


class Gateway:
    """``devices`` answers the routes of devices, and no others."""

    def __init__(self, services: Services, devices: Starlette) -> None:
        self._services, self._devices = services, devices

    def operations(self) -> list[Operation]:
        return [
            Operation(
                "GET",
                GATEWAY_PATH,
                self.keys,
                "The gateway's key configuration (RFC 9458, 3).",
                "gateway",
                gives=KEYS_MEDIA_TYPE,
                problems=("not-found",),
            ),
            Operation(
                "POST",
                GATEWAY_PATH,
                self.take,
                "A sealed request of a device, brought by a relay (RFC 9458, 4).",
                "gateway",
                takes=REQUEST_MEDIA_TYPE,
                gives=RESPONSE_MEDIA_TYPE,
                problems=("not-found", "malformed", "too-large", "unsupported-media-type"),
            ),
        ]

    async def keys(self, request: Request) -> Response:
        if self._services.gateway_keys is None:
            raise Refusal("not-found")
        preferred = self._services.gateway_keys.accepted(self._services.clock.now())[:1]
        headers = {"Cache-Control": f"public, max-age={_KEYS_SECONDS}"}
        content = encode_configurations(key.configuration for key in preferred)
        return Response(content, headers=headers, media_type=KEYS_MEDIA_TYPE)

    async def take(self, request: Request) -> Response:
        if self._services.gateway_keys is None:
            raise Refusal("not-found")
        message = await read_body(request, media_type=REQUEST_MEDIA_TYPE, at_most=LARGEST_REQUEST)
        try:
            opened = open_request(message, self._services.gateway_keys.accepted(self._services.clock.now()))
        except UnknownKey:
            return _key_problem()
        except MessageError:
            raise Refusal("malformed") from None
        answer = await self._answer(opened.request)
        sealed = (
            await asyncio.to_thread(_sealed, opened, answer)
            if len(answer.content) > _LARGE
            else _sealed(opened, answer)
        )
        return Response(sealed, headers={"Cache-Control": "private, no-store"}, media_type=RESPONSE_MEDIA_TYPE)

    async def _answer(self, content: bytes) -> HttpResponse:
        try:
            asked = decode_request(content)
        except MessageError:
            refused = problem_response("malformed")
            return HttpResponse(400, (("content-type", MEDIA_TYPE),), bytes(refused.body))
        return await _ask(self._devices, asked)


async def _ask(app: Starlette, asked: HttpRequest) -> HttpResponse:
    """What the application answers, as if the request had come over a connection of no one's."""
    path, _, query = asked.path.partition("?")
    fields = [(name.encode(), value.encode("latin-1")) for name, value in asked.fields if name in _INTO]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": asked.method,
        "scheme": asked.scheme,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [*fields, (b"content-length", str(len(asked.content)).encode())],
        "client": None,
        "server": None,
    }
    given = [{"type": "http.request", "body": asked.content, "more_body": False}]
    status, answered, pieces = 500, [], []

    async def receive() -> dict[str, Any]:
        return given.pop() if given else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status, answered
        if message["type"] == "http.response.start":
            status, answered = message["status"], message["headers"]
        else:
            pieces.append(message.get("body", b""))

    await app(scope, receive, send)
    known = tuple((name.decode().lower(), value.decode("latin-1")) for name, value in answered)
    return HttpResponse(status, tuple(field for field in known if field[0] in _OUT_OF), b"".join(pieces))


def _sealed(opened: OpenedRequest, answer: HttpResponse) -> bytes:
    return opened.seal(encode_response(answer))


def _key_problem() -> Response:
    document = Problem(KEY_PROBLEM, "The request was sealed to a key that is not in use", 400)
    return Response(json_bytes(document), 400, {"Cache-Control": "no-store"}, MEDIA_TYPE)
