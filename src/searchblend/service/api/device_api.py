"""What devices send: reports, and sealed records, which they may take back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from searchblend.core.errors import MessageError
from searchblend.service.api.answers import Refusal, bearer, document_response, read_body
from searchblend.service.api.documents import BatchAnswer
from searchblend.service.api.operations import Operation
from searchblend.service.api.writers import SealedArrival
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
from searchblend.wire.report_batch import ReportBatch, decode_reports
from searchblend.wire.sealed import SEALED_MEDIA_TYPE, SEALED_SIZES, check_sealed
from searchblend.wire.tokens import TOKEN_BYTES, TokenVerifier

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
_SHORTEST_CREDENTIAL: Final = 22
"""128 random bits in base64url; what is shorter could be guessed from the tag that is made of it"""


class Collector:
    """The routes for reports. 200 means: it is on disk and counted, once."""

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
                for_devices=True,
            ),
            Operation(
                "POST",
                f"{path}/report-batches",
                self.many,
                f"Send up to {MOST_REPORTS} reports, one after another, each followed by its token if the round asks "
                "for one; says which were refused and why.",
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
        token = self._token(request, facts)
        await self._keep(request, facts, Arrivals(facts.key, [report_id], counters, token))
        return Response(status_code=200)

    async def many(self, request: Request) -> Response:
        facts, shape = await self._facts(request)
        size = shape.size + (TOKEN_BYTES if facts.tokens else 0)
        body = await self._body(request, facts, REPORTS_MEDIA_TYPE, LARGEST_BATCH)
        if len(body) > MOST_REPORTS * size:
            raise Refusal("too-large", f"expected at most {MOST_REPORTS} reports")
        if not body or len(body) % size:
            with_token = f": a report of {shape.size} and its token" if facts.tokens else ""
            raise self._services.refused(facts, "malformed", f"expected a multiple of {size} bytes{with_token}")
        if facts.tokens is None:
            accepted, refused = await self._many_free(request, facts, decode_reports(body, shape))
        else:
            pieces = [body[start : start + size] for start in range(0, len(body), size)]
            batch = decode_reports(b"".join(piece[: shape.size] for piece in pieces), shape)
            tokens = [pieces[position][shape.size :] for position in batch.accepted]
            accepted, refused = await self._many_paid(request, facts, batch, tokens)
        for reason, n in Counter(refused.values()).items():
            self._services.writer.refuse(facts.key, reason, n)
        return document_response(BatchAnswer(accepted, {str(place): refused[place] for place in sorted(refused)}))

    async def _many_free(self, request: Request, facts: RoundFacts, batch: ReportBatch) -> tuple[int, dict[int, str]]:
        if batch.ids:
            await self._keep(request, facts, Arrivals(facts.key, batch.ids, batch.counters))
        return len(batch.ids), batch.refused

    async def _many_paid(
        self, request: Request, facts: RoundFacts, batch: ReportBatch, tokens: Sequence[bytes]
    ) -> tuple[int, dict[int, str]]:
        """Each report with its own token: what is wrong with one refuses no other."""
        refused = dict(batch.refused)
        # Verifying a thousand takes some 50 ms, in which the loop has others to serve.
        nonces = await asyncio.to_thread(_nonces, facts.tokens, tokens)
        paid: dict[int, Arrivals] = {}
        for row, (position, nonce) in enumerate(zip(batch.accepted, nonces, strict=True)):
            if nonce is None:
                refused[position] = "bad-credential"
            else:
                paid[position] = Arrivals(facts.key, [batch.ids[row]], batch.counters[row : row + 1], nonce)
        outcomes = await self._outcomes(paid.values()) if paid else []
        if ReportOutcome.CLOSED in outcomes:
            raise self._services.refused(facts, await self._why_closed(request), n=len(paid))
        spent = [place for place, outcome in zip(paid, outcomes, strict=True) if outcome is ReportOutcome.SPENT]
        refused |= dict.fromkeys(spent, "spent-token")
        return len(paid) - len(spent), refused

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
        [outcome] = await self._outcomes([arrivals])
        if outcome is ReportOutcome.TAKEN:
            return
        reason = "spent-token" if outcome is ReportOutcome.SPENT else await self._why_closed(request)
        raise self._services.refused(facts, reason, n=len(arrivals.ids))

    async def _outcomes(self, arrivals: Collection[Arrivals]) -> list[ReportOutcome]:
        """What became of each, after the commit that holds them all or several."""
        if not self._services.bucket.take(sum(len(each.ids) for each in arrivals)):
            raise Refusal("rate-limited")
        return await self._services.writer.add_all(arrivals)

    async def _why_closed(self, request: Request) -> str:
        return await self._services.why_closed(request.path_params["task"])

    def _token(self, request: Request, facts: RoundFacts) -> bytes | None:
        """The nonce of the token that pays for a report, where the round asks for one."""
        if facts.tokens is None:
            return None
        try:
            return facts.tokens.nonce(request.headers.get("authorization", ""))
        except MessageError as error:
            # What is wrong with a token says nothing of whose it is: the task, the round and the key are public.
            raise self._services.refused(facts, "bad-credential", str(error)) from None


def _nonces(verifier: TokenVerifier | None, tokens: Sequence[bytes]) -> list[bytes | None]:
    """The nonce of each token, None for one that is not valid."""
    assert verifier is not None
    nonces: list[bytes | None] = []
    for token in tokens:
        try:
            nonces.append(verifier.verify(token))
        except MessageError:
            nonces.append(None)
    return nonces


class Intake:
    """The routes for sealed opt-in records. Nothing here can open one."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        path = "/v1/tasks/{task}/rounds/{round}/contributions"
        problems = ("unknown-task", "bad-credential", "window-closed", "killed", "storage-unavailable", "overloaded")
        return [
            Operation(
                "POST",
                path,
                self.add,
                "Send one sealed record, with the enrolment code as a bearer credential. One for each contributor.",
                "intake",
                takes=SEALED_MEDIA_TYPE,
                problems=(
                    *problems,
                    "malformed",
                    "wrong-consent",
                    "conflicting-contribution",
                    "too-large",
                    "unsupported-media-type",
                ),
                for_devices=True,
            ),
            Operation(
                "DELETE",
                path,
                self.remove,
                "Take one's record back for good, until the window closes. 204 whether or not there was one.",
                "intake",
                status=204,
                problems=problems,
                for_devices=True,
            ),
        ]

    async def add(self, request: Request) -> Response:
        task, facts, tag = await self._contributor(request)
        sealed = await read_body(request, media_type=SEALED_MEDIA_TYPE, at_most=SEALED_SIZES[-1])
        try:
            check_sealed(sealed, facts.sealing)
        except MessageError as error:
            reason = "wrong-consent" if "wrong-consent" in str(error) else "malformed"
            raise self._services.refused(facts, reason) from None
        outcome = await self._services.writer.contribute(SealedArrival(facts.key, tag, sealed))
        self._services.metrics.count("contributions_total", result=outcome)
        if outcome == "closed":
            self._services.forget(task, request.path_params["round"])
            raise Refusal(await self._services.why_closed(task))
        if outcome == "conflict":
            raise self._services.refused(facts, "conflicting-contribution")
        return Response(status_code=200)

    async def remove(self, request: Request) -> Response:
        task, facts, tag = await self._contributor(request)
        now = self._services.clock.now()
        if not await self._services.reader.call(lambda store: store.contributions.withdraw(facts.key, tag, now)):
            raise Refusal(await self._services.why_closed(task))
        return Response(status_code=204)

    async def _contributor(self, request: Request) -> tuple[str, RoundFacts, bytes]:
        """Who it is, as far as this round may know; the credential itself is forgotten here."""
        task = request.path_params["task"]
        facts = await self._services.facts(task, request.path_params["round"], for_reports=False)
        credential = bearer(request)
        if credential is None or len(credential) < _SHORTEST_CREDENTIAL:
            raise Refusal("bad-credential")
        if not self._services.anonymous_intake:
            code = credential
            if not await self._services.reader.call(lambda store: store.tokens.is_enrolled(task, code)):
                raise self._services.refused(facts, "bad-credential")
        return task, facts, facts.sealing.tag_of(credential)
