"""What actions need, one class per request: a body of the admin API, a form of the console, options of a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from searchblend.core.documents import Between, JsonObject

MOST_CODES: Final = 10_000


@dataclass(frozen=True)
class Nothing:
    """An action that needs nothing but its round."""


@dataclass(frozen=True)
class Position:
    """An entry of the candidate list; without ``url`` the query itself."""

    query: int
    url: int | None = None


@dataclass(frozen=True)
class Removal:
    """An entry to remove, and the code of the reason."""

    query: int
    url: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Review:
    """What the reviewer removes, and which filter hits are kept on purpose."""

    remove: tuple[Removal, ...] = ()
    keep: tuple[Position, ...] = ()


@dataclass(frozen=True)
class Rejection:
    """Why the list as a whole should not be published."""

    reason: str = ""


@dataclass(frozen=True)
class NewCodes:
    """How many enrolment codes to make."""

    count: Annotated[int, Between(1, MOST_CODES)] = 1


@dataclass(frozen=True)
class CountsFile:
    """What ``searchblend aggregate`` wrote about a round."""

    document: JsonObject
