"""Where devices send reports. 200 means: it is on disk and counted, once."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from searchblend.core.errors import MessageError
from searchblend.service.api.answers import Refusal, document_response, read_body
from searchblend.service.api.documents import BatchAnswer
from searchblend.service.api.operations import Operation
from searchblend.service.services import RoundFacts, Services
from searchblend.store.reports import Arrivals, ReportOutcome
from searchblend.wire.report import (
    REPORT_MEDIA_TYPE,
    REPORTS_MEDIA_TYPE,
    ReportRefused,
    ReportShape,
    counters_of,
    decode_report,
)
from searchblend.wire.report_batch import decode_reports

MOST_REPORTS: Final = 1_000
LARGEST_BATCH: Final = 512 * 1024
LARGEST_REPORT: Final = 64 * 1024
_PROBLEMS: Final = (
    "malformed",
    "id-mismatch",
    "wrong-round",
    "wrong-head-list",
    "window-closed",
    "killed",
    "unknown-task",
    "too-large",
    "unsupported-media-type",
    "bad-credential",
    "spent-token",
    "rate-limited",
    "overloaded",
    "storage-unavailable",
)


class Collector:
    """The routes for reports."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        path = "/v1/tasks/{task}/rounds/{round}"
        return [
            Operation(
                "POST",
                f"{path}/reports",
                self.one,
                "Send one report. The same bytes again are answered with 200 again and count nothing.",
                "collector",
                takes=REPORT_MEDIA_TYPE,
                problems=_PROBLEMS,
            ),
            Operation(
                "POST",
                f"{path}/report-batches",
                self.many,
                f"Send up to {MOST_REPORTS} reports, one after another; says which were refused and why.",
                "collector",
                takes=REPORTS_MEDIA_TYPE,
                gives=BatchAnswer,
                problems=_PROBLEMS,
            ),
        ]

    async def one(self, request: Request) -> Response:
        facts, shape = await self._facts(request)
        body = await self._body(request, facts, REPORT_MEDIA_TYPE, LARGEST_REPORT)
        try:
            report_id, parts = decode_report(body, shape)
        except ReportRefused as refusal:
            raise self._services.refused(facts, refusal.reason) from None
        counters = np.array([counters_of(parts, shape)], dtype=np.int64)
        token = self._token(request, facts, shape)
        await self._keep(request, facts, Arrivals(facts.key, [report_id], counters, token))
        return Response(status_code=200)

    async def many(self, request: Request) -> Response:
        facts, shape = await self._facts(request)
        if self._services.tokens is not None:
            raise Refusal("bad-credential", "each report needs its own token here; send them one by one")
        body = await self._body(request, facts, REPORTS_MEDIA_TYPE, LARGEST_BATCH)
        if len(body) > MOST_REPORTS * shape.size:
            raise Refusal("too-large", f"expected at most {MOST_REPORTS} reports")
        try:
            batch = decode_reports(body, shape)
        except ReportRefused as refusal:
            detail = f"expected a multiple of {shape.size} bytes"
            raise self._services.refused(facts, refusal.reason, detail) from None
        for reason, n in Counter(batch.refused.values()).items():
            self._services.writer.refuse(facts.key, reason, n)
        if batch.ids:
            await self._keep(request, facts, Arrivals(facts.key, batch.ids, batch.counters))
        refused = {str(position): reason for position, reason in sorted(batch.refused.items())}
        return document_response(BatchAnswer(len(batch.ids), refused))

    async def _facts(self, request: Request) -> tuple[RoundFacts, ReportShape]:
        facts = await self._services.facts(request.path_params["task"], request.path_params["round"], for_reports=True)
        if facts.shape is None:
            raise self._services.refused(facts, "window-closed")
        return facts, facts.shape

    async def _body(self, request: Request, facts: RoundFacts, media_type: str, at_most: int) -> bytes:
        try:
            return await read_body(request, media_type=media_type, at_most=at_most)
        except Refusal as refusal:
            if refusal.problem == "too-large":
                self._services.writer.refuse(facts.key, "too-large")
            raise

    async def _keep(self, request: Request, facts: RoundFacts, arrivals: Arrivals) -> None:
        if not self._services.bucket.take(len(arrivals.ids)):
            raise Refusal("rate-limited")
        outcome = await self._services.writer.add(arrivals)
        if outcome is ReportOutcome.TAKEN:
            return
        spent = outcome is ReportOutcome.SPENT
        reason = "spent-token" if spent else await self._services.why_closed(request.path_params["task"])
        raise self._services.refused(facts, reason, n=len(arrivals.ids))

    def _token(self, request: Request, facts: RoundFacts, shape: ReportShape) -> bytes | None:
        """The nonce of the token that pays for a report, where tokens are asked for."""
        if self._services.tokens is None:
            return None
        try:
            return self._services.tokens.nonce(request.headers.get("authorization", ""), shape.task, shape.round)
        except MessageError:
            raise self._services.refused(facts, "bad-credential") from None
