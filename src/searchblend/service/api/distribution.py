"""What anyone may read: manifests, artifacts, trends. Cacheable, so that most requests never reach this server."""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from searchblend.service.api.answers import Refusal, document_response, round_number
from searchblend.service.api.documents import RoundFiles, TrendList, TrendView
from searchblend.service.api.operations import Handler, Operation
from searchblend.service.services import Services
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import State
from searchblend.wire.canonical import json_bytes
from searchblend.wire.manifest import ManifestEnvelope

_SHA256: Final = re.compile("[0-9a-f]{64}")
_FOREVER: Final = "public, max-age=31536000, immutable"


class Distribution:
    """The public reading routes."""

    def __init__(self, services: Services, *, manifest_seconds: int = 60) -> None:
        self._services, self._manifest_seconds = services, manifest_seconds
        self._media_types: dict[str, str] = {}

    def operations(self) -> list[Operation]:
        def get(path: str, handler: Handler, gives: type | str, summary: str) -> Operation:
            problems = ("unknown-task", "storage-unavailable") if "{task}" in path else ("not-found",)
            return Operation("GET", path, handler, summary, "publisher", gives=gives, problems=problems)

        task = "/v1/tasks/{task}"
        return [
            get(
                f"{task}/manifest",
                self.manifest,
                ManifestEnvelope,
                "The signed manifest: what the task asks of devices now.",
            ),
            get("/v1/artifacts/{sha256}", self.artifact, "*/*", "A published file, under the SHA-256 of its bytes."),
            get(
                f"{task}/trends",
                self.trends,
                TrendList,
                "All published trends with intervals and both groups' columns.",
            ),
            get(f"{task}/rounds/{{round}}/files", self.files, RoundFiles, "The published files of a round by name."),
        ]

    async def manifest(self, request: Request) -> Response:
        task = request.path_params["task"]
        latest = await self._services.reader.call(lambda store: store.artifacts.manifest(store.rounds.task(task).task))
        if latest is None:
            raise Refusal("unknown-task", "nothing was signed yet")
        headers = {"ETag": f'"{latest[0]}"', "Cache-Control": f"public, max-age={self._manifest_seconds}"}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(latest[2], media_type="application/json", headers=headers)

    async def artifact(self, request: Request) -> Response:
        sha256 = request.path_params["sha256"]
        if not _SHA256.fullmatch(sha256):
            raise Refusal("not-found")

        def read(store: ServiceStore) -> bytes:
            artifact = store.artifacts.get(sha256)
            if artifact is None:
                raise Refusal("not-found")
            self._media_types[sha256] = artifact[1]
            return artifact[0]

        content = await self._services.files.get(sha256, lambda: self._services.reader.call(read))
        headers = {"Cache-Control": _FOREVER, "ETag": f'"{sha256}"', "X-Content-Type-Options": "nosniff"}
        return Response(content, media_type=self._media_types[sha256], headers=headers)

    async def trends(self, request: Request) -> Response:
        name = request.path_params["task"]
        public = self._services.public
        task, published = await self._services.reader.call(lambda store: store.rounds.published(name))

        def read(store: ServiceStore) -> bytes:
            rows = store.artifacts.trends(task.task)
            return json_bytes(TrendList([TrendView(number, **vars(row)) for number, row in rows]))

        content = await self._services.pages.get(("trends", task.task, published), lambda: public.call(read))
        headers = {"Cache-Control": f"public, max-age={self._manifest_seconds}"}
        return Response(content, media_type="application/json", headers=headers)

    async def files(self, request: Request) -> Response:
        task, number = request.path_params["task"], round_number(request.path_params["round"])

        def read(store: ServiceStore) -> dict[str, str]:
            round_ = store.rounds.round(store.rounds.task(task).task, number)
            if round_.state is not State.PUBLISHED:
                raise Refusal("unknown-task", "the round is not published")
            return store.artifacts.of_round(round_.key)

        files = await self._services.public.call(read)
        return document_response(RoundFiles(files), _FOREVER)
