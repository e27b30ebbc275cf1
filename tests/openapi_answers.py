"""A test client that holds every answer of the service against the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import httpx2
import jsonschema_rs
from starlette.testclient import TestClient

from searchblend.service.api.app import all_operations
from searchblend.service.api.operations import openapi_document
from searchblend.service.services import Services


@cache
def document() -> Mapping[str, Any]:
    return openapi_document(all_operations(Services("unused")))


@cache
def validator(path: str, method: str, status: str, media_type: str) -> jsonschema_rs.Validator:
    schema = document()["paths"][path][method]["responses"][status]["content"][media_type]["schema"]
    return jsonschema_rs.validator_for({**schema, "components": document()["components"]})


@cache
def described_path(path: str) -> str | None:
    patterns = {name: re.compile(re.sub(r"{\w+}", "[^/]+", name)) for name in document()["paths"]}
    return next((name for name, pattern in patterns.items() if pattern.fullmatch(path)), None)


def check_answer(method: str, path: str, answer: httpx2.Response) -> None:
    """Refuse an answer whose status, media type or fields the document does not describe."""
    known = described_path(path)
    described = document()["paths"][known].get(method.lower()) if known else None
    if known is None or described is None or answer.status_code in (304, 404):
        return
    content = described["responses"][str(answer.status_code)].get("content", {})
    media_type = answer.headers.get("content-type", "").partition(";")[0]
    if media_type.endswith("json") and "*/*" not in content:
        validator(known, method.lower(), str(answer.status_code), media_type).validate(answer.json())


class CheckedClient(TestClient):
    def request(self, *arguments: Any, **options: Any) -> httpx2.Response:
        answer = super().request(*arguments, **options)
        check_answer(answer.request.method, answer.request.url.path, answer)
        return answer
