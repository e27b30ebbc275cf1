"""NUL and its kin: hostile devices seal what no honest one would keep. It never reaches review, and rounds go on."""

from __future__ import annotations

import json

import pytest

from attack_service import COMMON, queries
from searchblend.core.records import Record

HOLDERS = 25
"""enough for any of these to be listed with certainty, were it counted"""
URL = "http://page.example/a"
HOSTILE = [
    Record("nul\0nul", URL),
    Record("\0", URL),
    Record("escape\x1b[31m", URL),
    Record("delete\x7f", URL),
    Record("c1\x9b31m", URL),
    Record("\u202eoverride", URL),
    Record("isolate\u2066d", URL),
    Record("mark\u200f", URL),
    Record("script", "javascript:alert(1)"),
    Record("file", "file:///etc/passwd"),
    Record("data", "data:text/html,x"),
    Record("nul in url", "http://page.example/\0"),
    Record("bidi in url", "http://page.example/\u202egpj.exe"),
    Record("intranet", "http://10.0.0.1/a"),
    Record("somebody@mail.example", URL),
]
SURROGATES = [
    rb'{"records":[["\ud800",null]]}',
    rb'{"records":[["lone \udfff","http://page.example/a"]]}',
    b'{"records":[["raw \xed\xa0\x80","http://page.example/a"]]}',
    b'{"records":[["broken \xff","http://page.example/a"]]}',
    b'{"records":[[' + b'"a"' * 3 + b"]]}",
    b"[" * 200,
    b'{"records":[["a",{}]]}',
    b'{"records":[[1e999,null]]}',
]


def test_what_hostile_devices_seal_never_reaches_review_and_the_round_is_published(service):
    task = service.task(max_head_queries=50)
    honest, hostile = COMMON * 20, HOSTILE * HOLDERS
    manifest = service.open_round(task)
    codes = service.codes(task, len(honest) + len(hostile) + len(SURROGATES))
    service.contribute(manifest, honest + hostile, codes[: -len(SURROGATES)])
    for content, code in zip(SURROGATES, codes[-len(SURROGATES) :], strict=True):
        sealed = service.seal(manifest, COMMON[:1], code, content=content)
        assert service.send_sealed(manifest, sealed, code).status_code == 200
    candidate, drawn = service.draw(task)
    assert set(queries(candidate)) <= {record.query for record in COMMON}
    assert {url for _, urls in candidate["head"] for url in urls} <= {record.url for record in COMMON}
    assert drawn["records"] == len(honest)
    assert drawn["refused"] == len(hostile) + len(SURROGATES)
    files = service.finish(task)
    published = json.dumps(json.loads(files["result.json"]), ensure_ascii=False)
    assert not any(record.query in published for record in HOSTILE if len(record.query) > 1)


@pytest.mark.parametrize("text", ["nul\0", "\ud800", "\u202ebidi", "\x1b[31m", "\x85"])
@pytest.mark.parametrize("field", ["name", "population", "consent", "engine", "market", "min_device_version"])
def test_a_task_takes_no_such_text(service, field, text):
    content = json.dumps({**{"name": "searches"}, field: text})
    headers = {"authorization": f"Bearer {service.tokens['operator']}", "content-type": "application/json"}
    answer = service.http.post("/admin/v1/tasks", content=content, headers=headers)
    assert 400 <= answer.status_code < 500, answer.text


@pytest.mark.parametrize("text", ["%00", "%C0%80", "%ED%A0%80", "%E2%80%AE", "a%00b", "%0d%0aX-Injected:%201"])
def test_addresses_with_such_texts_are_refused(service, text):
    operator = {"authorization": f"Bearer {service.tokens['operator']}"}
    for method, path in (
        ("GET", f"/v1/tasks/{text}/manifest"),
        ("GET", f"/v1/tasks/{text}/trends"),
        ("GET", f"/v1/artifacts/{text}"),
        ("GET", f"/trends/{text}"),
        ("GET", f"/trends/{text}?q={text}"),
        ("POST", f"/v1/tasks/{text}/rounds/1/reports"),
        ("POST", f"/v1/tasks/{'0' * 32}/rounds/{text}/reports"),
        ("POST", f"/v1/tasks/{text}/rounds/1/contributions"),
        ("GET", f"/admin/v1/tasks/{text}"),
        ("GET", f"/admin/v1/tasks/{text}/rounds/{text}"),
        ("GET", f"/console/tasks/{text}"),
    ):
        answer = service.http.request(method, path, headers=operator)
        assert answer.status_code < 500, f"{method} {path}: {answer.status_code}"
        assert "x-injected" not in answer.headers


def test_a_blocklist_takes_no_nul_and_goes_on(service):
    headers = {"authorization": f"Bearer {service.tokens['reviewer']}", "content-type": "application/json"}
    for word in ("a\0b", "\ud800x"):
        content = json.dumps({"words": [word]})
        assert service.http.put("/admin/v1/blocklist", content=content, headers=headers).status_code == 400
    assert service.done("GET", "/blocklist", "reviewer") == {"words": []}
