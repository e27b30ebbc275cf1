"""The gateway of the service: sealed requests reach the routes of devices and no others, and errors are RFC 9458's."""

from __future__ import annotations

import json

import pytest

from searchblend.core.records import Record
from searchblend.service.clock import DAY
from searchblend.service.round_model import sealing_context
from searchblend.service.workers.gateway_keys import GatewayKeys
from searchblend.wire.binary_http import HttpRequest, decode_response, encode_request
from searchblend.wire.ohttp import (
    GATEWAY_PATH,
    KEY_PROBLEM,
    KEYS_MEDIA_TYPE,
    LARGEST_REQUEST,
    REQUEST_MEDIA_TYPE,
    RESPONSE_MEDIA_TYPE,
    GatewayKey,
    SealedRequest,
    decode_configurations,
)
from searchblend.wire.sealed import seal_records
from service_http import REPORT, SEALED, http_service
from service_parts import people

SEALED_REQUEST = {"content-type": REQUEST_MEDIA_TYPE}


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gateway")
    with http_service(str(folder / "service.db"), folder) as service:
        keys = GatewayKeys(folder / "gateway", 30 * DAY)
        keys.make_first(service.parts.clock.now())
        keys.keep_up(service.parts.store, service.parts.clock.now())
        service.services.gateway_keys = keys
        yield service


@pytest.fixture(scope="module")
def client_round(http):
    return http.client_round(name="reports")


def configuration(http):
    answer = http.client.get(GATEWAY_PATH)
    assert (answer.status_code, answer.headers["content-type"]) == (200, KEYS_MEDIA_TYPE)
    (found,) = decode_configurations(answer.content)
    return found


def ask(http, method, path, content=b"", **fields):
    """The inner answer, and the outer one."""
    lines = tuple((name.replace("_", "-"), value) for name, value in fields.items())
    sealed = SealedRequest(
        configuration(http), encode_request(HttpRequest(method, "https", "x.example", path, lines, content))
    )
    outer = http.client.post(GATEWAY_PATH, content=sealed.message, headers=SEALED_REQUEST)
    assert (outer.status_code, outer.headers["content-type"]) == (200, RESPONSE_MEDIA_TYPE), outer.text
    assert outer.headers["cache-control"] == "private, no-store"
    return decode_response(sealed.open(outer.content)), outer


def problem(answer):
    return json.loads(answer.content)["type"].rpartition(":")[2]


def test_a_report_through_the_gateway_counts_once_however_often_it_comes(http, client_round):
    (message,) = http.parts.messages(client_round, people(1, seed=7))
    path = f"/v1/tasks/{client_round.task}/rounds/{client_round.number}/reports"
    for _ in range(3):
        answer, outer = ask(http, "POST", path, message, content_type=REPORT["content-type"])
        assert (answer.status, answer.content) == (200, b"")
        assert len(outer.content) == 1024 + 32, "an empty answer looks like any short one"
    sealed = SealedRequest(
        configuration(http),
        encode_request(
            HttpRequest("POST", "https", "x.example", path, (("content-type", REPORT["content-type"]),), message)
        ),
    )
    for _ in range(2):
        outer = http.client.post(GATEWAY_PATH, content=sealed.message, headers=SEALED_REQUEST)
        assert decode_response(sealed.open(outer.content)).status == 200, "the same sealed bytes again"
    assert http.parts.store.reports.n_seen(client_round.key) == 1
    answer, _ = ask(http, "POST", path, message[:-1], content_type=REPORT["content-type"])
    assert (answer.status, problem(answer)) == (400, "malformed")
    assert dict(answer.fields)["content-type"] == "application/problem+json"


def test_manifest_and_files_come_through_the_gateway_whole(http, client_round):
    http.parts.work()
    path = f"/v1/tasks/{client_round.task}/manifest"
    answer, outer = ask(http, "GET", path)
    assert (answer.status, answer.content) == (200, http.client.get(path).content)
    assert len(outer.content) & (len(outer.content) - 32) or len(outer.content) - 32 in (1024, 2048, 4096, 8192)
    payload = json.loads(json.loads(answer.content)["payload"])
    assert payload["gateway"] == [configuration(http).digest]
    artifact = f"/v1/artifacts/{payload['client']['artifact']}"
    assert ask(http, "GET", artifact)[0].content == http.client.get(artifact).content
    large = http.parts.store.artifacts.put(bytes(range(256)) * 4096, "application/octet-stream")
    answer, outer = ask(http, "GET", f"/v1/artifacts/{large}")
    assert answer.content == bytes(range(256)) * 4096
    assert (len(outer.content) - 32) % 65_536 == 0


def test_a_sealed_record_and_its_withdrawal_come_through_the_gateway(http):
    round_ = http.parts.open(http.parts.task(name="records"))
    code = http.parts.code_of(round_.task, 1)
    context = sealing_context(round_)
    sealed = seal_records(
        [Record("weather", "http://weather.example/a")], context, context.tag_of(code), round_.public_key
    )
    path = f"/v1/tasks/{round_.task}/rounds/{round_.number}/contributions"
    fields = {"content_type": SEALED["content-type"], "authorization": f"Bearer {code}"}
    assert problem(ask(http, "POST", path, sealed, content_type=SEALED["content-type"])[0]) == "bad-credential"
    for _ in range(2):
        assert ask(http, "POST", path, sealed, **fields)[0].status == 200
    for _ in range(2):
        assert ask(http, "DELETE", path, **fields)[0].status == 204
    assert problem(ask(http, "POST", path, sealed, **fields)[0]) == "conflicting-contribution"


@pytest.mark.parametrize(
    "path", ["/console", "/admin/v1/tasks", "/healthz", "/openapi.json", GATEWAY_PATH, "/", "*", "/v1/tasks/x/trends"]
)
def test_the_gateway_asks_no_route_that_is_not_for_devices(http, path):
    for method, content in (("GET", b""), ("POST", b"{}")):
        answer, _ = ask(http, method, path, content, authorization=f"Bearer {http.tokens['operator']}")
        assert answer.status == 404


def test_another_method_is_refused_inside(http, client_round):
    answer, _ = ask(http, "PUT", f"/v1/tasks/{client_round.task}/manifest")
    assert (answer.status, problem(answer)) == (405, "method-not-allowed")


def test_what_is_wrong_before_a_request_is_open_is_answered_in_the_clear(http):
    def post(content, media_type=REQUEST_MEDIA_TYPE):
        return http.client.post(GATEWAY_PATH, content=content, headers={"content-type": media_type})

    known = configuration(http)
    good = SealedRequest(known, encode_request(HttpRequest("GET", "https", "x", "/"))).message
    assert problem(post(b"")) == problem(post(good[:-1])) == problem(post(good[:60])) == "malformed"
    assert post(good[:-1]).status_code == 400
    assert post(good, "message/bhttp").status_code == 415
    assert post(bytes(LARGEST_REQUEST + 1)).status_code == 413
    unknown = post(SealedRequest(GatewayKey.of_bytes(bytes(range(32))).configuration, b"").message)
    assert (unknown.status_code, unknown.json()["type"]) == (400, KEY_PROBLEM)
    assert http.client.put(GATEWAY_PATH).status_code == 405


def test_what_is_wrong_inside_is_answered_inside(http):
    sealed = SealedRequest(configuration(http), b"\x09 no binary HTTP")
    outer = http.client.post(GATEWAY_PATH, content=sealed.message, headers=SEALED_REQUEST)
    assert outer.status_code == 200
    answer = decode_response(sealed.open(outer.content))
    assert (answer.status, problem(answer)) == (400, "malformed")


def test_a_role_without_keys_has_no_gateway(tmp_path):
    with http_service(str(tmp_path / "service.db"), tmp_path, role="collector") as service:
        assert service.client.get(GATEWAY_PATH).status_code == 404
    with http_service(str(tmp_path / "service.db"), tmp_path, role="gateway") as service:
        assert problem(service.client.get(GATEWAY_PATH)) == "not-found"
        assert service.client.get("/v1/tasks/x/manifest").status_code == 404, "everything else comes sealed"
