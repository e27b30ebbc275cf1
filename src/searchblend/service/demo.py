"""A scripted population that plays a whole round over real HTTP: what devices, an operator and a reviewer would do.

Devices verify the manifest, seal or randomize on their own, and send the same bytes again when an answer is lost.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import urlsplit

from searchblend.blender.best.subset_report import subset_report
from searchblend.blender.paper.local_report import local_report
from searchblend.core.documents import decode
from searchblend.core.errors import RunError
from searchblend.core.records import Record
from searchblend.service.api.documents import RoundDetail, RoundView, TaskList, TrendList, TrendView
from searchblend.service.process import Stop
from searchblend.store.reports import ConservationLaw
from searchblend.store.states import State
from searchblend.wire.head_list import HeadListMessage, decode_head_list
from searchblend.wire.manifest import Manifest
from searchblend.wire.report import REPORT_MEDIA_TYPE, ReportShape, cells_as_parts, encode_report
from searchblend.wire.sealed import SEALED_MEDIA_TYPE, SealingContext, seal_records
from searchblend.wire.signing import verify_manifest

OnProgress = Callable[[str, int, int], None]
"""step, done, in all"""
_THREADS: Final = 8
_TRIES: Final = 60
_AGAIN: Final = (429, 503)
_POLL_SECONDS: Final = 0.5
T = TypeVar("T")


class DemoConnections:
    """One connection per thread; the same bytes again until they are answered."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._local = threading.local()
        self._made: list[http.client.HTTPConnection] = []

    def send(
        self, method: str, path: str, body: bytes = b"", *, media_type: str = "", credential: str = ""
    ) -> tuple[int, bytes]:
        headers = {
            **({"Content-Type": media_type} if media_type else {}),
            **({"Authorization": f"Bearer {credential}"} if credential else {}),
        }
        for attempt in range(_TRIES):
            try:
                connection = self._connection()
                connection.request(method, path, body or None, headers)
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException):
                self._local.connection = None
            else:
                if answer.status not in _AGAIN:
                    return answer.status, content
            time.sleep(min(0.05 * 2**attempt, 1.0))
        raise RunError("the service does not answer")

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=60)
            self._local.connection = connection
            self._made.append(connection)
        return connection

    def close(self) -> None:
        for connection in self._made:
            connection.close()


@dataclass(frozen=True)
class Staff:
    """Tokens of the people who run the demo; the reviewer is not the operator."""

    operator: str
    reviewer: str


@dataclass(frozen=True)
class PlayedRound:
    """What a round of the demo came to."""

    task: str
    round: int
    opt_in_users: int
    reports_counted: int
    conservation: ConservationLaw
    files: Mapping[str, str]
    trends: list[TrendView]


class Population:
    """The people of the demo, each with one record, and their devices."""

    def __init__(self, transport: DemoConnections, pinned: Mapping[str, bytes], on_progress: OnProgress) -> None:
        self._transport = transport
        self._pinned, self._on_progress = pinned, on_progress

    def play_round(
        self, task: str, staff: Staff, optin_users: Sequence[Record], clients: Sequence[Record]
    ) -> PlayedRound:
        """One round from draft to publication; the published trends."""
        number = self._admin("POST", f"/tasks/{task}/rounds", staff.operator, RoundView).round
        at = f"/tasks/{task}/rounds/{number}"
        self._admin("POST", f"{at}/open", staff.operator, RoundView)
        manifest = self._manifest(task, "opt-in")
        self._contribute(task, manifest, optin_users)
        self._admin("POST", f"{at}/close-opt-in", staff.operator, RoundView)
        self._on_progress("curator: head list, then the key is destroyed", 0, 1)
        self._wait(at, staff.operator, "SHREDDED")
        self._admin("POST", f"{at}/review", staff.reviewer, RoundView)
        manifest = self._manifest(task, "client")
        self._report(task, manifest, clients)
        self._admin("POST", f"{at}/close-clients", staff.operator, RoundView)
        self._admin("POST", f"{at}/end-grace", staff.operator, RoundView)
        self._on_progress("estimates", 0, 1)
        final = self._wait(at, staff.operator, "PUBLISHED")
        published = decode(TrendList, json.loads(self._get(f"/v1/tasks/{task}/trends")))
        trends = [row for row in published.trends if row.round == number]
        return PlayedRound(
            task, number, len(optin_users), final.reports_counted, final.conservation, final.files, trends
        )

    def follow(self, token: str, optin_users: Sequence[Record], clients: Sequence[Record], stop: Stop) -> None:
        """Take part in every window of every task, once each, until ``stop`` is set; people run the rounds."""
        done: set[tuple[str, int, str]] = set()
        while not stop.wait(_POLL_SECONDS):
            for task in [row.task for row in self._admin("GET", "/tasks", token, TaskList).tasks]:
                manifest = self._current_manifest(task)
                if manifest is None or (task, manifest.round, manifest.phase) in done:
                    continue
                done.add((task, manifest.round, manifest.phase))
                with contextlib.suppress(RunError):  # a window that closes meanwhile is not a failure
                    if manifest.phase == "opt-in":
                        self._contribute(task, manifest, optin_users)
                    elif manifest.phase == "client":
                        self._report(task, manifest, clients)

    def _current_manifest(self, task: str) -> Manifest | None:
        status, content = self._transport.send("GET", f"/v1/tasks/{task}/manifest")
        return verify_manifest(content, self._pinned) if status == 200 else None

    def _contribute(self, task: str, manifest: Manifest, people: Sequence[Record]) -> None:
        optin = manifest.optin
        assert optin is not None
        context = SealingContext(bytes.fromhex(task), manifest.round, bytes.fromhex(optin.consent))
        key, path = bytes.fromhex(optin.public_key), f"/v1/tasks/{task}/rounds/{manifest.round}/contributions"

        def contribute(record: Record) -> None:
            credential = secrets.token_urlsafe(16)
            sealed = seal_records([record], context, context.tag_of(credential), key)
            self._accepted("POST", path, sealed, SEALED_MEDIA_TYPE, credential)

        self._for_each("opt-in users seal and send", contribute, people)

    def _report(self, task: str, manifest: Manifest, people: Sequence[Record]) -> None:
        client = manifest.client
        assert client is not None
        message = decode_head_list(json.loads(self._get(f"/v1/artifacts/{client.artifact}")))
        if message.head.digest != client.digest:
            raise RunError("the head list is not the one that the manifest names")
        shape = ReportShape.of(bytes.fromhex(task), manifest.round, message.head, message.params, message.design)
        path = f"/v1/tasks/{task}/rounds/{manifest.round}/reports"

        def report(record: Record) -> None:
            self._accepted("POST", path, device_report(record, message, shape), REPORT_MEDIA_TYPE)

        self._for_each("clients randomize and report", report, people)

    def _for_each(self, step: str, act: Callable[[Record], None], people: Sequence[Record]) -> None:
        self._on_progress(step, 0, len(people))
        done = 0
        with ThreadPoolExecutor(_THREADS) as threads:
            for _ in threads.map(act, people):
                done += 1
                if done % 500 == 0 or done == len(people):
                    self._on_progress(step, done, len(people))

    def _accepted(self, method: str, path: str, body: bytes, media_type: str, credential: str = "") -> None:
        status, _ = self._transport.send(method, path, body, media_type=media_type, credential=credential)
        if status != 200:
            raise RunError(f"a device was refused with status {status}")

    def _manifest(self, task: str, phase: str) -> Manifest:
        """The verified manifest, once it announces this phase."""
        for _ in range(_TRIES * 10):
            manifest = self._current_manifest(task)
            if manifest and manifest.phase == phase:
                return manifest
            time.sleep(0.1)
        raise RunError(f"the manifest never announced the {phase} phase")

    def _wait(self, at: str, token: str, state: str) -> RoundDetail:
        for _ in range(_TRIES * 20):
            round_ = self._admin("GET", at, token, RoundDetail)
            if round_.state == state:
                return round_
            if round_.state is State.ABORTED:
                raise RunError("the round was aborted; `searchblend audit-log show` says why")
            time.sleep(0.1)
        raise RunError(f"the round never reached {state}")

    def _admin(self, method: str, path: str, token: str, kind: type[T]) -> T:
        status, content = self._transport.send(method, f"/admin/v1{path}", credential=token)
        if status != 200:
            raise RunError(f"{method} {path}: status {status}")
        return decode(kind, json.loads(content))

    def _get(self, path: str) -> bytes:
        status, content = self._transport.send("GET", path)
        if status != 200:
            raise RunError(f"GET: status {status}")
        return content


def device_report(record: Record, message: HeadListMessage, shape: ReportShape) -> bytes:
    """What one client's device sends."""
    if message.design is None:
        parts = cells_as_parts(local_report([record], message.head, message.params))
    else:
        parts = subset_report([record], message.head, message.design, message.params)
    return encode_report(parts, shape)
