"""What anyone may read without a session: how to join a task, its trends, also for other sites, and static files."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from searchblend.blender.report_odds import list_odds
from searchblend.service.api.answers import Refusal
from searchblend.service.console import trends_page
from searchblend.service.console.render import (
    EMBED_HEADERS,
    HEADERS,
    rendered,
    shared_page,
    static,
    takes_gzip,
)
from searchblend.service.console.visit import between_rounds, error_page
from searchblend.service.round_model import settings_of
from searchblend.service.services import Services
from searchblend.store.service_store import ServiceStore
from searchblend.wire.consent import odds_words
from searchblend.wire.enrolment import enrolment_link
from searchblend.wire.signing import key_id

_MOST_LINES: Final = 20
_EMBEDDED: Final = 10
_MAIL: Final = re.compile(r"[^@\s<>\"]+@[^@\s<>\"]+\.[^@\s<>\"]+")
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"]+")


@dataclass(frozen=True)
class Imprint:
    """Who answers for what is published, as ``serve`` was told; nothing where it was not."""

    publisher: str = ""
    contact: str = ""
    licence: str = ""

    @property
    def links(self) -> list[tuple[str, str, str]]:
        """What is shown beside the publisher: its name, its words and where they lead, if anywhere."""
        given = (("Contact", self.contact), ("Licence", self.licence))
        return [(name, words, link_of(words)) for name, words in given if words]


def link_of(words: str) -> str:
    """The link of a web or mail address; nothing for other words."""
    if _ADDRESS.fullmatch(words):
        return words
    return f"mailto:{words}" if _MAIL.fullmatch(words) else ""


class PublicPages:
    """What is public: how to join a task, and its published trends."""

    def __init__(self, services: Services, seconds: int, imprint: Imprint, *, has_artifacts: bool) -> None:
        self._services, self._imprint, self._has_artifacts = services, imprint, has_artifacts
        self._cache = f"public, max-age={seconds}"

    def routes(self) -> list[Route]:
        return [
            Route("/trends/{task}", self.trends, methods=["GET"]),
            Route("/trends/{task}/embed", self.embed, methods=["GET"]),
            Route("/enrol/{task}", self.enrol, methods=["GET"]),
        ]

    async def trends(self, request: Request) -> Response:
        form = parse_qs(request.url.query)
        wanted, between = tuple(form.get("q", [])[:_MOST_LINES]), between_rounds(form)

        def make(store: ServiceStore, task: str, path: str) -> bytes:
            view = trends_page.read_trends(store, task, wanted, between)
            return rendered(
                "public_trends.html",
                path,
                view=view,
                release=trends_page.read_release(store, view),
                files=view.files if self._has_artifacts else {},
                imprint=self._imprint,
            )

        return await self._answer(request, (wanted, between), make, HEADERS)

    async def embed(self, request: Request) -> Response:
        """The ten most frequent queries in a frame on any site: no script, no form, no cookie, so nothing to click."""

        def make(store: ServiceStore, task: str, path: str) -> bytes:
            view = trends_page.read_trends(store, task, ())
            return rendered("public_embed.html", path, view=view, imprint=self._imprint, most_rows=_EMBEDDED)

        return await self._answer(request, (), make, EMBED_HEADERS)

    async def enrol(self, request: Request) -> Response:
        """The link that people join with. Not kept: keys come and go."""
        name, path = request.path_params["task"], request.url.path

        def make(store: ServiceStore) -> bytes:
            offer = self._services.offer
            if offer is None:
                raise Refusal("unknown-task", "this process has no signing keys")
            task = store.rounds.task(name)
            document, settings = offer.document(task), settings_of(task)
            return rendered(
                "public_enrol.html",
                path,
                task=task,
                document=document,
                link=enrolment_link(f"{document.server}/enrol/{task.task}", document),
                key_ids=[key_id(bytes.fromhex(point)) for point in document.keys],
                curator_ids=[key_id(bytes.fromhex(point)) for point in document.curators],
                queries=settings.max_head_queries,
                odds=odds_words(list_odds(settings.params, settings.max_head_queries)),
                imprint=self._imprint,
            )

        try:
            body = await self._services.public.call(make)
        except Exception as error:
            return error_page(request, self._services.refusal(error, "page failed"), None, "")
        return shared_page(body, HEADERS, is_gzip=False, cache=self._cache)

    async def _answer(
        self,
        request: Request,
        asked: tuple[object, ...],
        make: Callable[[ServiceStore, str, str], bytes],
        headers: Mapping[str, str],
    ) -> Response:
        """The page's bytes: read, rendered and compressed in the thread for public reading, and kept."""
        is_gzip, path, public = takes_gzip(request), request.url.path, self._services.public
        name = request.path_params["task"]
        try:
            task, published = await self._services.reader.call(lambda store: store.rounds.published(name))

            def content(store: ServiceStore) -> bytes:
                page = make(store, task.task, path)
                return gzip.compress(page, 6) if is_gzip else page

            key = ("page", path, published, *asked, is_gzip)
            body = await self._services.pages.get(key, lambda: public.call(content))
        except Exception as error:
            return error_page(request, self._services.refusal(error, "page failed"), None, "")
        return shared_page(body, headers, is_gzip=is_gzip, cache=self._cache)


def static_route() -> Route:
    async def handle(request: Request) -> Response:
        try:
            return await static(request)
        except Refusal as refusal:
            return error_page(request, refusal, None, "")

    return Route("/console/static/{name:path}", handle, methods=["GET"])
