"""Who is there: sign-in with an admin token, a cookie that says nothing, and proof that a form came from our page."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from searchblend.service.api.answers import Refusal

COOKIE: Final = "searchblend_session"
FORM_COOKIE: Final = "searchblend_form"
SESSION_SECONDS: Final = 8 * 3600
MOST_FAILURES: Final = 10
FAILURE_SECONDS: Final = 300
_MOST_ADDRESSES: Final = 10_000
_LONGEST_SECRET: Final = 200
_LOCAL: Final = ("127.0.0.1", "localhost", "::1", "[::1]")
_PURPOSE: Final = b"searchblend console form"
_BYTES: Final = 32


class BadForm(Refusal):
    """A form that no page of ours could have sent now."""

    title: Final = "The form cannot be used"

    def __init__(self, detail: str) -> None:
        super().__init__("forbidden", detail)


def is_plain_local(request: Request) -> bool:
    """Whether the cookie must travel without TLS: only on the machine itself, with no proxy that ends TLS.

    The proxy's header is believed because a lie only costs the liar: it can make a cookie stricter, never laxer.
    """
    if request.headers.get("x-forwarded-proto", "").lower() == "https":
        return False
    return request.url.scheme == "http" and request.url.hostname in _LOCAL


def set_cookie(request: Request, response: Response, name: str, value: str, *, path: str, seconds: int) -> None:
    response.set_cookie(
        name, value, max_age=seconds, path=path, secure=not is_plain_local(request), httponly=True, samesite="strict"
    )


def secret_of(request: Request, name: str) -> str:
    """The cookie's text if it could be one of ours, else nothing."""
    value = request.cookies.get(name, "")
    return value if len(value) <= _LONGEST_SECRET and value.isascii() else ""


def new_secret() -> str:
    return secrets.token_urlsafe(_BYTES)


def form_token(secret: str) -> str:
    """Proof for a form, different on every page: a compressed page must not show that a part of it repeats."""
    pad = secrets.token_bytes(_BYTES)
    return base64.urlsafe_b64encode(pad + _xor(pad, _proof(secret))).decode()


def check_form(request: Request, secret: str, given: str) -> None:
    """Refuse a form that another site has sent, whoever is signed in."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise BadForm("the form came from another site")
    try:
        raw = base64.urlsafe_b64decode(given.encode())
    except (binascii.Error, ValueError):
        raw = b""
    proof = _xor(raw[:_BYTES], raw[_BYTES:]) if len(raw) == 2 * _BYTES else b""
    if not secret or not hmac.compare_digest(proof, _proof(secret)):
        raise BadForm("the form is out of date; open the page again and send it anew")


def _proof(secret: str) -> bytes:
    return hmac.new(secret.encode(), _PURPOSE, hashlib.sha256).digest()


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


class FailureLimit:
    """After too many failed attempts from one address nothing is tried for a while. Kept in memory, never logged."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: dict[str, deque[float]] = {}

    def refuse_if_spent(self, address: str) -> None:
        if len(self._recent(address)) >= MOST_FAILURES:
            raise Refusal("rate-limited", f"too many failed attempts; try again in {FAILURE_SECONDS // 60} minutes")

    def failed(self, address: str) -> None:
        if len(self._failures) >= _MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]
        self._failures.setdefault(address, deque(maxlen=MOST_FAILURES)).append(self._clock())

    def forgive(self, address: str) -> None:
        self._failures.pop(address, None)

    def _recent(self, address: str) -> deque[float]:
        failures = self._failures.get(address, deque())
        while failures and failures[0] < self._clock() - FAILURE_SECONDS:
            failures.popleft()
        return failures
