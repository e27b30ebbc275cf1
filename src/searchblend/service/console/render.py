"""Templates to answers: everything escaped, the headers that keep a page to itself, and what travels is small."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import Response

from searchblend.pages.layout import environment as pages_environment
from searchblend.service.api.answers import Refusal
from searchblend.service.console.words import FILTERS

_HERE: Final = Path(__file__).parent
_STATIC: Final = _HERE / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".LICENSE": "text/plain; charset=utf-8",
}
_WORTH_IT: Final = 1000
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""on every page: scripts and styles come from this server, and no site may frame a page"""
EMBED_HEADERS: Final = {
    **{name: value for name, value in HEADERS.items() if name != "X-Frame-Options"},
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'none'; base-uri 'none'",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
"""on the one page that other sites may frame: it has no script, no form and nothing of a session"""


@cache
def environment() -> Environment:
    templates = pages_environment(_HERE / "templates")
    templates.filters.update(FILTERS)
    return templates


def page(request: Request, template: str, status: int = 200, cache: str = "no-store", **values: Any) -> Response:
    """A rendered template; compressed where the browser can take it."""
    content = rendered(template, request.url.path, **values)
    return compressed(request, content, "text/html; charset=utf-8", status=status, cache=cache)


def rendered(template: str, path: str, **values: Any) -> bytes:
    return environment().get_template(template).render(path=path, **values).encode()


def compressed(request: Request, content: bytes, media_type: str, *, status: int = 200, cache: str) -> Response:
    headers = {**HEADERS, "Cache-Control": cache, "Vary": "Accept-Encoding"}
    if len(content) > _WORTH_IT and takes_gzip(request):
        content, headers["Content-Encoding"] = gzip.compress(content, 6), "gzip"
    return Response(content, status, headers, media_type=media_type)


def takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def shared_page(content: bytes, headers: Mapping[str, str], *, is_gzip: bool, cache: str) -> Response:
    """A page that was rendered, and compressed, before."""
    sent = {**headers, "Cache-Control": cache, "Vary": "Accept-Encoding"}
    if is_gzip:
        sent["Content-Encoding"] = "gzip"
    return Response(content, headers=sent, media_type="text/html; charset=utf-8")


async def static(request: Request) -> Response:
    """A file of the package; only the names that are there exist."""
    name = request.path_params["name"]
    file = static_files().get(name)
    if file is None:
        raise Refusal("not-found")
    content, media_type, tag = file
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    answer = compressed(request, content, media_type, cache="public, max-age=3600")
    answer.headers["ETag"] = tag
    return answer


@cache
def static_files() -> dict[str, tuple[bytes, str, str]]:
    """Path below ``static`` to content, media type and entity tag."""
    files = {}
    for path in sorted(_STATIC.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            files[str(path.relative_to(_STATIC))] = (content, _TYPES[path.suffix], tag)
    return files
