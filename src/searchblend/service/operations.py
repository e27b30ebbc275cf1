"""One table of everything that can be called: routes, roles and the OpenAPI document come from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Operation:
    """A method of a path."""

    method: str
    path: str
    handler: Handler
    summary: str
    tag: str
    """which part of the service answers: ``--role`` chooses by it"""
    roles: tuple[str, ...] = ()
    """admin roles that may call it; empty: no token is needed"""
    takes: str | None = None
    """media type of the body"""
    schema: dict[str, Any] | None = None
    """of a JSON body"""
    gives: str | None = "application/json"
    status: int = 200
    problems: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"
