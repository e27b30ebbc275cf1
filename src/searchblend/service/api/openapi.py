"""The OpenAPI document, made from the table of operations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from searchblend.service.operations import Operation
from searchblend.wire.problems import MEDIA_TYPE, PROBLEMS


def openapi_document(operations: Iterable[Operation]) -> dict[str, Any]:
    """OpenAPI 3.1 for these operations."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
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
            "schemas": {
                "Problem": {
                    "type": "object",
                    "description": "RFC 9457",
                    "required": ["type", "title", "status"],
                    "properties": {
                        "type": {"type": "string"},
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string"},
                    },
                }
            },
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {str(operation.status): _success(operation)}
    names = [*operation.problems, "internal", "method-not-allowed"]
    for status in sorted({PROBLEMS[name].status for name in names}):
        titles = [name for name in names if PROBLEMS[name].status == status]
        responses[str(status)] = {
            "description": ", ".join(titles),
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    document: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", operation.name).strip("_").lower(),
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": [_parameter(name) for name in re.findall(r"{(\w+)}", operation.path)],
        "responses": responses,
    }
    if operation.takes:
        schema = operation.schema or {"type": "string", "format": "binary"}
        required = operation.schema is None
        document["requestBody"] = {"required": required, "content": {operation.takes: {"schema": schema}}}
    if operation.roles or operation.tag == "intake":
        document["security"] = [{"bearer": []}]
        if operation.roles:
            document["description"] = f"Roles: {', '.join(operation.roles)}."
    return document


def _success(operation: Operation) -> dict[str, Any]:
    if operation.gives is None:
        return {"description": "done"}
    schema: dict[str, Any] = {"type": "object"} if operation.gives == "application/json" else {}
    return {"description": "done", "content": {operation.gives: {"schema": schema}}}


def _parameter(name: str) -> dict[str, Any]:
    patterns = {"task": "^[0-9a-f]{32}$", "round": "^[1-9][0-9]{0,8}$", "sha256": "^[0-9a-f]{64}$"}
    schema = {"type": "string", **({"pattern": patterns[name]} if name in patterns else {})}
    return {"name": name, "in": "path", "required": True, "schema": schema}
