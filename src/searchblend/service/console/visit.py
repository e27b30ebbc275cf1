"""A request to the console: who makes it, proof that its form came from our page, and the frame of every answer."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import parse_qs, quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from searchblend.service.actions import actions_for
from searchblend.service.api.answers import Refusal, number_of, read_body, round_number
from searchblend.service.console.render import HEADERS, page
from searchblend.store.tokens import Admin
from searchblend.wire.problems import PROBLEMS

FORM: Final = "application/x-www-form-urlencoded"
_LARGEST_FORM: Final = 1024 * 1024
_MOST_FIELDS: Final = 50_000
OPERATOR: Final = ("operator",)
REVIEWER: Final = ("reviewer",)
AUDITOR: Final = ("auditor",)
TASK: Final = "/console/tasks/{task}"
ROUND: Final = "/console/tasks/{task}/rounds/{round}"
_DONE: Final = {
    "task": "The task is made. Draft its first round when you are ready.",
    "blocklist": "The blocklist is saved.",
    "asked": "Noted. It happens when a second operator asks for the same within a day.",
    "cap": "The cap was asked for; the curator sets it as soon as it runs.",
    **{action.name: action.done for action in actions_for("console")},
}
"""what a page says after an action, by a word in its address: nothing of the address itself is shown"""


_LONGEST_SECRET: Final = 200
_LOCAL: Final = ("127.0.0.1", "localhost", "::1", "[::1]")
_PURPOSE: Final = b"searchblend console form"
_BYTES: Final = 32


class BadForm(Refusal):
    """A form that none of our pages could have sent now."""

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


def set_cookie(
    request: Request,
    response: Response,
    name: str,
    value: str,
    *,
    path: str,
    seconds: int,
    same_site: Literal["strict", "lax"] = "strict",
) -> None:
    response.set_cookie(
        name, value, max_age=seconds, path=path, secure=not is_plain_local(request), httponly=True, samesite=same_site
    )


def secret_of(request: Request, name: str) -> str:
    """The cookie's value if it could be one of ours, else nothing."""
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
        raise BadForm("the form is out of date; open the page again and submit it once more")


def _proof(secret: str) -> bytes:
    return hmac.new(secret.encode(), _PURPOSE, hashlib.sha256).digest()


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


@dataclass(frozen=True)
class Visit:
    """A request of a person whose role may make it."""

    request: Request
    admin: Admin
    secret: str
    form: Mapping[str, list[str]]
    now: int

    def field(self, name: str) -> str:
        return (self.form.get(name) or [""])[0]

    @property
    def fields(self) -> dict[str, str]:
        return {name: values[0] for name, values in self.form.items()}

    @property
    def task(self) -> str:
        return str(self.request.path_params["task"])

    @property
    def number(self) -> int:
        return round_number(self.request.path_params["round"])


PageAnswer = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True)
class ConsoleRoute:
    """One row of the table: routes and the roles' test come from it."""

    method: str
    path: str
    roles: tuple[str, ...]
    answer: PageAnswer

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def console_page(visit: Visit, template: str, status: int = 200, **values: Any) -> Response:
    """A page for a person who is signed in."""
    done, form = _DONE.get(visit.request.query_params.get("done", ""), ""), form_token(visit.secret)
    return page(visit.request, template, status, admin=visit.admin, form=form, done=done, now=visit.now, **values)


def error_page(request: Request, refusal: Refusal, admin: Admin | None, form: str) -> Response:
    """A refusal in the console's own look."""
    kind = PROBLEMS[refusal.problem]
    answer = page(
        request,
        "error.html",
        kind.status,
        admin=admin,
        form=form,
        done="",
        title=getattr(refusal, "title", kind.title),
        detail=refusal.detail or "",
        code=kind.status,
        retry=kind.retry,
    )
    if kind.retry:
        answer.headers["Retry-After"] = "30"
    return answer


async def read_form(request: Request) -> dict[str, list[str]]:
    body = await read_body(request, media_type=FORM, at_most=_LARGEST_FORM)
    try:
        return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, strict_parsing=False)
    except ValueError:
        raise Refusal("malformed") from None


def to_sign_in(request: Request) -> Response:
    if request.headers.get("hx-request"):
        return Response(status_code=401, headers={**HEADERS, "HX-Redirect": "/console/sign-in"})
    if request.method != "GET":
        return error_page(request, Refusal("bad-credential", "sign in again; nothing was done"), None, "")
    onward = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return see_other(f"/console/sign-in?next={quote(onward, safe='')}")


def next_page(address: str) -> str:
    """Where to go after signing in: only ever a page of the console."""
    is_ours = address == "/console" or address.startswith(("/console/", "/console?"))
    return address if is_ours and address.isascii() and address.isprintable() and "\\" not in address else "/console"


def see_other(where: str) -> Response:
    return RedirectResponse(where, 303, {**HEADERS, "Cache-Control": "no-store"})


def between_rounds(form: Mapping[str, list[str]]) -> tuple[int, int] | None:
    before, after = (number_of((form.get(name) or [""])[0]) for name in ("before", "after"))
    return None if before is None or after is None else (before, after)
