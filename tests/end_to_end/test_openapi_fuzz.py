"""Schemathesis over the OpenAPI document, against the real application: no 5xx, every answer as it is described."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from databases import DATABASES, fresh_database
from openapi_answers import check_answer, document
from searchblend.wire.problems import MEDIA_TYPE
from service_http import http_service
from service_parts import people

LABELS = [f"{method.upper()} {path}" for path, methods in document()["paths"].items() for method in methods]


@cache
def operations():
    """By label, as Schemathesis reads them from the document; it is loaded by the workers that run these tests."""
    import schemathesis

    @schemathesis.serializer(
        "application/vnd.searchblend.report",
        "application/vnd.searchblend.reports",
        "application/vnd.searchblend.sealed",
        "message/ohttp-req",
    )
    def octets(context, value):
        return value if isinstance(value, bytes) else str(value).encode()

    schema = schemathesis.openapi.from_dict(document())
    found = [result.ok() for result in schema.get_all_operations()]
    return {operation.label: operation for operation in found}


def test_the_fuzzer_reads_every_operation_of_the_document():
    assert list(operations()) == LABELS


@pytest.fixture(params=DATABASES, scope="module")
def http(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    with http_service(fresh_database(request.param, folder), folder, anonymous_intake=True) as service:
        found = service.client_round(client_seconds=10**6)
        service.reports(found, b"".join(service.parts.messages(found, people(100, seed=3))))
        yield service


@pytest.mark.parametrize("label", LABELS)
def test_no_request_is_a_server_error(label, http):
    """With the token that may call it, and mostly on a task that exists, so that the fuzzer gets past the door."""
    operation = operations()[label]
    roles = operation.definition.raw.get("description", "")
    role = next((name for name in http.tokens if name in roles), "viewer")
    credential = http.tokens[role] if "/admin/" in operation.path else "some credential of nobody"
    task = http.parts.store.rounds.tasks()[0].task

    @settings(
        max_examples=20 if http.parts.store.database.dialect == "sqlite" else 6,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case):
        path = operation.path
        for name, value in (case.path_parameters or {}).items():
            path = path.replace(f"{{{name}}}", task if name == "task" and len(str(value)) == 32 else str(value))
        headers = {"authorization": f"Bearer {credential}"}
        content = b""
        if case.media_type:
            headers["content-type"] = case.media_type
            content = case.body if isinstance(case.body, bytes) else json.dumps(_plain(case.body)).encode()
        answer = http.client.request(operation.method.upper(), path, headers=headers, content=content)
        assert answer.status_code < 500, answer.text
        assert str(answer.status_code) in operation.definition.raw["responses"] or answer.status_code == 404
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == MEDIA_TYPE
        check_answer(operation.method, path, answer)

    check()


def _plain(body):
    return body if isinstance(body, dict | list | str | int | float | bool | None) else {}
