"""One table of everything that can be called: routes, roles and the OpenAPI document come from it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from searchblend.core.documents import JsonObject, schema_of
from searchblend.wire.problems import MEDIA_TYPE, PROBLEMS, Problem

Handler = Callable[[Request], Awaitable[Response]]
JSON: Final = "application/json"
_PATTERNS: Final = {"task": "^[0-9a-f]{32}$", "round": "^[1-9][0-9]{0,8}$", "sha256": "^[0-9a-f]{64}$"}
_BINARY: Final = {"type": "string", "format": "binary"}


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
    takes: type | str | None = None
    """the class of a JSON body, or the media type of another one"""
    gives: type | str | None = None
    """the class of a JSON answer, or the media type of another one"""
    status: int = 200
    problems: tuple[str, ...] = ()
    for_devices: bool = False
    """whether the gateway asks it too, for those who come through a relay"""

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def openapi_document(operations: Iterable[Operation]) -> JsonObject:
    """OpenAPI 3.1 for these operations; schemas are those of the classes that the code reads and writes."""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, JsonObject] = {}
    problem = schema_of(Problem, schemas)
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, problem, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "searchblend collection service",
            "version": version("searchblend"),
            "description": "Rounds of private collection: opt-in records, reports, manifests, trends and their admin.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": dict(sorted(schemas.items())),
        },
    }


def _described(operation: Operation, problem: JsonObject, schemas: dict[str, JsonObject]) -> JsonObject:
    document: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", operation.name).strip("_").lower(),
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": [_parameter(name) for name in re.findall(r"{(\w+)}", operation.path)],
        "responses": {str(operation.status): _success(operation, schemas), **_refusals(operation, problem)},
    }
    if isinstance(operation.takes, str):
        document["requestBody"] = {"required": True, "content": {operation.takes: {"schema": _BINARY}}}
    elif operation.takes:
        schema = schema_of(operation.takes, schemas)
        needs_body = "required" in schemas[operation.takes.__name__]
        document["requestBody"] = {"required": needs_body, "content": {JSON: {"schema": schema}}}
    if operation.roles or operation.tag == "intake":
        document["security"] = [{"bearer": []}]
        if operation.roles:
            document["description"] = f"Roles: {', '.join(operation.roles)}."
    return document


def _success(operation: Operation, schemas: dict[str, JsonObject]) -> JsonObject:
    if operation.gives is None:
        return {"description": "done"}
    if isinstance(operation.gives, str):
        return {"description": "done", "content": {operation.gives: {"schema": {}}}}
    return {"description": "done", "content": {JSON: {"schema": schema_of(operation.gives, schemas)}}}


def _refusals(operation: Operation, problem: JsonObject) -> JsonObject:
    names = [*operation.problems, "internal", "method-not-allowed"]
    return {
        str(status): {
            "description": ", ".join(name for name in names if PROBLEMS[name].status == status),
            "content": {MEDIA_TYPE: {"schema": problem}},
        }
        for status in sorted({PROBLEMS[name].status for name in names})
    }


def _parameter(name: str) -> JsonObject:
    schema = {"type": "string", **({"pattern": _PATTERNS[name]} if name in _PATTERNS else {})}
    return {"name": name, "in": "path", "required": True, "schema": schema}
