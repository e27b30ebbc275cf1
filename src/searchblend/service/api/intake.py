"""Where opt-in users send sealed records and take them back. Nothing here can open one."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from searchblend.core.errors import MessageError
from searchblend.service.api.answers import Refusal, bearer, read_body
from searchblend.service.api.operations import Operation
from searchblend.service.api.writers import SealedArrival
from searchblend.service.services import RoundFacts, Services
from searchblend.wire.sealed import SEALED_MEDIA_TYPE, SEALED_SIZES, check_sealed

_SHORTEST_CREDENTIAL: Final = 22
"""128 random bits in base64url; what is shorter could be guessed from the tag that is made of it"""


class Intake:
    """The routes for sealed opt-in records."""

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
            ),
            Operation(
                "DELETE",
                path,
                self.remove,
                "Take one's record back for good, until the window closes. 204 whether or not there was one.",
                "intake",
                status=204,
                problems=problems,
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
