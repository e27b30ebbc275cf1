"""What devices and readers fetch: manifests, artifacts, the public log, trends. All of it is public."""

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
from searchblend.wire.enrolment import EnrolmentDocument
from searchblend.wire.manifest import ManifestEnvelope
from searchblend.wire.merkle import HASH_BYTES, TILE, leaf_hash, tile_at
from searchblend.wire.transparency import CHECKPOINT_MEDIA_TYPE, TILE_MEDIA_TYPE, encode_bundle

_SHA256: Final = re.compile("[0-9a-f]{64}")
_FOREVER: Final = "public, max-age=31536000, immutable"
_TILE: Final = re.compile("[0-9]{3}")
"""a log of more than 256,000 entries would need longer names"""
_WIDTH: Final = re.compile("[1-9][0-9]{0,2}")
_ENTRIES: Final = "entries"
_LEVELS: Final = ("0", "1", _ENTRIES)


class Distribution:
    """What anyone may read: manifests, artifacts, trends. Cacheable: most requests never reach this server."""

    def __init__(self, services: Services, *, manifest_seconds: int = 60) -> None:
        self._services, self._manifest_seconds = services, manifest_seconds
        self._media_types: dict[str, str] = {}

    def operations(self) -> list[Operation]:
        def get(
            path: str, handler: Handler, gives: type | str, summary: str, *, for_devices: bool = False
        ) -> Operation:
            problems = ("unknown-task", "storage-unavailable") if "{task}" in path else ("not-found",)
            return Operation(
                "GET", path, handler, summary, "publisher", gives=gives, problems=problems, for_devices=for_devices
            )

        task = "/v1/tasks/{task}"
        return [
            get(
                f"{task}/manifest",
                self.manifest,
                ManifestEnvelope,
                "The signed manifest: what the task asks of devices now.",
                for_devices=True,
            ),
            get(
                f"{task}/enrolment",
                self.enrolment,
                EnrolmentDocument,
                "What a person needs to join: the service's address and the public keys that devices pin.",
            ),
            get(
                "/v1/log/checkpoint",
                self.checkpoint,
                CHECKPOINT_MEDIA_TYPE,
                "The newest checkpoint of the log.",
                for_devices=True,
            ),
            get(
                "/v1/log/tile/{level}/{tile}",
                self.tile,
                TILE_MEDIA_TYPE,
                "A full tile of the log: 256 hashes, or at level `entries` what was logged.",
                for_devices=True,
            ),
            get(
                "/v1/log/tile/{level}/{tile}.p/{width}",
                self.tile,
                TILE_MEDIA_TYPE,
                "The first hashes or entries of a tile.",
                for_devices=True,
            ),
            get(
                "/v1/artifacts/{sha256}",
                self.artifact,
                "*/*",
                "A published file, under the SHA-256 of its bytes.",
                for_devices=True,
            ),
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

    async def enrolment(self, request: Request) -> Response:
        name, offer = request.path_params["task"], self._services.offer
        if offer is None:
            raise Refusal("unknown-task", "this process has no signing keys")
        document = await self._services.public.call(lambda store: offer.document(store.rounds.task(name)))
        return document_response(document, f"public, max-age={self._manifest_seconds}")

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

    async def checkpoint(self, request: Request) -> Response:
        note = await self._services.reader.call(lambda store: store.log.checkpoint())
        if note is None:
            raise Refusal("not-found")
        # No one is to be shown an older one than the manifest beside it.
        return Response(note, media_type=CHECKPOINT_MEDIA_TYPE, headers={"Cache-Control": "no-cache"})

    async def tile(self, request: Request) -> Response:
        level, tile = request.path_params["level"], request.path_params["tile"]
        width = request.path_params.get("width", str(TILE))
        if not (_TILE.fullmatch(tile) and _WIDTH.fullmatch(width) and level in _LEVELS and 0 < int(width) <= TILE):
            raise Refusal("not-found")
        number, n = int(tile), int(width)
        content = await self._services.public.call(lambda store: _tile(store, level, number, n))
        return Response(content, media_type=TILE_MEDIA_TYPE, headers={"Cache-Control": _FOREVER})

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


def _tile(store: ServiceStore, level: str, number: int, width: int) -> bytes:
    """The first ``width`` hashes or entries of a tile; one that is not so long yet is not found."""
    first = number * TILE
    if level == "1":
        content = tile_at([leaf_hash(entry) for entry in store.log.entries()], 1, number)
        if len(content) < width * HASH_BYTES:
            raise Refusal("not-found")
        return content[: width * HASH_BYTES]
    entries = store.log.entries(first, first + width)
    if len(entries) < width:
        raise Refusal("not-found")
    return encode_bundle(entries) if level == _ENTRIES else b"".join(map(leaf_hash, entries))
