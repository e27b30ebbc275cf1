"""Every way in which the service refuses, as RFC 9457 problem documents with stable types. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from searchblend.core.documents import absent

PREFIX: Final = "urn:searchblend:problem:"
MEDIA_TYPE: Final = "application/problem+json"


@dataclass(frozen=True)
class Problem:
    """RFC 9457: why a request was refused."""

    type: str
    title: str
    status: int
    detail: str | None = absent()


@dataclass(frozen=True)
class ProblemType:
    """A kind of refusal. The title is for people and says nothing of the request."""

    name: str
    status: int
    title: str
    retry: bool = False
    """whether the same request may succeed later"""

    def problem(self, detail: str | None = None) -> Problem:
        return Problem(PREFIX + self.name, self.title, self.status, detail or None)


_TYPES: Final = (
    ProblemType("malformed", 400, "The message does not have the form that the round asks for"),
    ProblemType("id-mismatch", 400, "The report's id is not that of its bytes"),
    ProblemType("wrong-round", 400, "The message was made for another task or round"),
    ProblemType("wrong-head-list", 400, "The report was made for another head list"),
    ProblemType("wrong-consent", 400, "The record was made under another consent text"),
    ProblemType("window-closed", 409, "The round does not take this now"),
    ProblemType(
        "conflicting-contribution", 409, "This contributor has sent another record for the round, or has taken one back"
    ),
    ProblemType("killed", 410, "The task was stopped"),
    ProblemType("unknown-task", 404, "There is no such task or round"),
    ProblemType("not-found", 404, "There is nothing at this address"),
    ProblemType("method-not-allowed", 405, "This address does not take this method"),
    ProblemType("too-large", 413, "The message is larger than is allowed"),
    ProblemType("unsupported-media-type", 415, "The message has another media type than this address takes"),
    ProblemType("bad-credential", 401, "The credential is missing or unknown"),
    ProblemType("spent-token", 409, "The token was used before"),
    ProblemType("unknown-token-key", 422, "This is not a token request, or it is for a key that does not sign now"),
    ProblemType("token-limit", 429, "The account has had its tokens of this week"),
    ProblemType("forbidden", 403, "The role of this token may not do this"),
    ProblemType("invalid-request", 400, "A value of the request cannot be used"),
    ProblemType("wrong-state", 409, "The round is in another state"),
    ProblemType("budget-exceeded", 409, "The budget does not allow this"),
    ProblemType("rate-limited", 429, "Too many requests", retry=True),
    ProblemType("overloaded", 503, "The server is busy; nothing was kept", retry=True),
    ProblemType("storage-unavailable", 503, "The server cannot store anything now; nothing was kept", retry=True),
    ProblemType("internal", 500, "The server failed; nothing about the request was kept"),
)
PROBLEMS: Final = {kind.name: kind for kind in _TYPES}
REASONS: Final = (
    "malformed",
    "id-mismatch",
    "wrong-round",
    "wrong-head-list",
    "window-closed",
    "killed",
    "too-large",
    "bad-credential",
    "spent-token",
    "wrong-consent",
    "conflicting-contribution",
    "not-admitted",
    "withdrawn",
)
"""why a report or an opt-in record is refused: what is counted, and all that is kept of it"""
