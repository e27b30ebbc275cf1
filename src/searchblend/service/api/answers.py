"""How every route reads a body and refuses. A refusal names its kind and never repeats what was sent."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter, SearchblendError, UsageError
from searchblend.service.api.operations import Handler
from searchblend.store.errors import BudgetExceeded, StoreError, StoreUnavailable, UnknownName, WrongState
from searchblend.wire.canonical import json_bytes
from searchblend.wire.problems import MEDIA_TYPE, PROBLEMS

LARGEST_JSON: Final = 64 * 1024
_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,8}")


class Refusal(Exception):
    """Ends a request with a problem document. ``detail`` is written by us and holds nothing of the request."""

    def __init__(self, problem: str, detail: str | None = None) -> None:
        self.problem, self.detail = problem, detail
        super().__init__(problem)


def problem_response(problem: str, detail: str | None = None) -> Response:
    kind = PROBLEMS[problem]
    headers = {"Cache-Control": "no-store"}
    if kind.retry:
        # Spread out, so that those who were turned away do not all come back at once.
        headers["Retry-After"] = str(random.SystemRandom().randint(1, 5))
    if kind.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(json_bytes(kind.problem(detail)), kind.status, headers, MEDIA_TYPE)


def document_response(document: object, cache: str = "no-store") -> Response:
    """A document as JSON."""
    return Response(json_bytes(document), headers={"Cache-Control": cache}, media_type="application/json")


def refusal_of(error: Exception) -> Refusal | None:
    """The problem document for an error of the lower layers; None if the error is a bug of ours."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, StoreUnavailable):
        return Refusal("storage-unavailable")
    if isinstance(error, BudgetExceeded):
        return Refusal("budget-exceeded", str(error))
    if isinstance(error, UnknownName):
        return Refusal("unknown-task")
    if isinstance(error, WrongState):
        return Refusal("wrong-state", str(error))
    if isinstance(error, InvalidParameter | UsageError):
        return Refusal("invalid-request", str(error))
    if isinstance(error, StoreError):
        return Refusal("invalid-request", str(error))
    if isinstance(error, SearchblendError):
        return Refusal("invalid-request")
    if isinstance(error, ClientDisconnect):
        return Refusal("malformed")
    return None


def guarded(
    handler: Handler,
    unexpected: Callable[[Exception], Refusal],
    note: Callable[[Response, Refusal | None], None] = lambda response, refusal: None,
) -> Handler:
    """The handler with every error as a problem document.

    Args:
        handler: Answers a request, or refuses it.
        unexpected: The refusal for an error that is not one yet.
        note: Called with what became of each request.
    """

    async def handle(request: Request) -> Response:
        refusal: Refusal | None = None
        try:
            response = await handler(request)
        except Refusal as known:
            refusal = known
        except ClientDisconnect:
            refusal = Refusal("malformed")
        except Exception as error:
            refusal = unexpected(error)
        if refusal is not None:
            response = problem_response(refusal.problem, refusal.detail)
        note(response, refusal)
        return response

    return handle


def number_of(digits: str) -> int | None:
    """A number in its one spelling: ASCII digits, no leading zeros, at most nine. Else nothing."""
    return int(digits) if _DECIMAL.fullmatch(digits) else None


def round_number(digits: str) -> int:
    """The round that an address names: every round has one address."""
    number = number_of(digits)
    if not number:
        raise Refusal("unknown-task")
    return number


async def read_body(request: Request, *, media_type: str, at_most: int) -> bytes:
    """The body, of this media type and no longer than this: a longer one is not read to its end."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != media_type:
        raise Refusal("unsupported-media-type", f"expected {media_type}")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > at_most:
        raise Refusal("too-large")
    parts: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > at_most:
            raise Refusal("too-large")
        parts.append(chunk)
    return b"".join(parts)


async def read_json(request: Request) -> JsonObject:
    """A JSON object; an empty body is an empty one."""
    if request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers:
        return {}
    body = await read_body(request, media_type="application/json", at_most=LARGEST_JSON)
    try:
        document = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise Refusal("malformed", "expected a JSON object") from None
    if not isinstance(document, dict):
        raise Refusal("malformed", "expected a JSON object")
    return document


def bearer(request: Request) -> str | None:
    """The credential of the Authorization header, if there is one that could be one."""
    scheme, _, credential = request.headers.get("authorization", "").partition(" ")
    usable = scheme.lower() == "bearer" and 0 < len(credential) <= 500 and credential.isascii()
    return credential if usable else None


MOST_BYTES: Final = 64 * 2**20
MOST_PENDING: Final = 8


class SharedAnswers:
    """The latest answers, by a key that says everything they depend on."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._ready: OrderedDict[Hashable, bytes] = OrderedDict()
        self._pending: dict[Hashable, asyncio.Task[bytes]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """The answer; who asks while it is made waits for it. Too many pending ones are refused."""
        if key in self._ready:
            self._ready.move_to_end(key)
            return self._ready[key]
        if key not in self._pending:
            if len(self._pending) >= MOST_PENDING:
                raise Refusal("overloaded")
            self._pending[key] = asyncio.create_task(self._make(key, make))
        # A caller that disconnects must not cancel the answer for the others.
        return await asyncio.shield(self._pending[key])

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        try:
            content = await make()
        finally:
            del self._pending[key]
        self._ready[key] = content
        self._bytes += len(content)
        while self._bytes > self._most_bytes:
            self._bytes -= len(self._ready.popitem(last=False)[1])
        return content
