"""What each route answers, over both databases."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest

import openapi_answers
from databases import DATABASES, fresh_database
from searchblend.service.api.operations import Operation
from searchblend.service.round_model import RoundNumbers, sealing_context
from searchblend.store.errors import StoreUnavailable
from searchblend.store.states import State
from searchblend.wire.problems import MEDIA_TYPE, PREFIX, PROBLEMS
from searchblend.wire.report import report_id
from searchblend.wire.sealed import seal_records
from searchblend.wire.signing import verify_manifest
from service_http import http_service
from service_parts import crowd, people


@pytest.fixture(params=DATABASES)
def where(request, tmp_path):
    return fresh_database(request.param, tmp_path)


@pytest.fixture
def http(where, tmp_path):
    with http_service(where, tmp_path) as service:
        yield service


def is_problem(answer, name):
    kind = PROBLEMS[name]
    assert answer.status_code == kind.status, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert answer.json()["type"] == PREFIX + name
    assert ("retry-after" in answer.headers) == kind.retry
    return True


class TestReports:
    def test_one_report_is_counted_once_however_often_it_comes(self, http):
        round_ = http.client_round()
        messages = http.parts.messages(round_, people(3, seed=2))
        for message in [*messages, *messages, messages[0]]:
            assert http.report(round_, message).status_code == 200
        assert http.parts.store.reports.n_seen(round_.key) == 3
        assert RoundNumbers.read(http.parts.store, round_).conservation.holds

    def test_a_batch_says_which_were_refused(self, http):
        round_ = http.client_round()
        good = http.parts.messages(round_, people(3, seed=2))
        broken = good[2][:-1] + bytes([good[2][-1] ^ 1])
        foreign = bytearray(good[2])
        foreign[20] ^= 1
        answer = http.reports(round_, good[0] + broken + good[1] + bytes(foreign) + good[0])
        assert answer.json() == {"accepted": 3, "refused": {"1": "id-mismatch", "3": "wrong-round"}}
        assert http.parts.store.reports.n_seen(round_.key) == 2

    def test_changed_bytes_are_refused_and_counted_by_reason(self, http):
        round_ = http.client_round()
        message = http.parts.messages(round_, people(1, seed=2))[0]
        payload = message[:-32]
        other_list = payload[:22] + b"\0" * 8 + payload[30:]
        nonce = b"n" * 16
        for bad, name in (
            (message[:-1], "malformed"),
            (message + b"\0", "malformed"),
            (b"", "malformed"),
            (message[:-1] + bytes([message[-1] ^ 1]), "id-mismatch"),
            (other_list + nonce + report_id(nonce, other_list), "wrong-head-list"),
        ):
            assert is_problem(http.report(round_, bad), name)
        assert is_problem(http.reports(round_, message[:-1]), "malformed")
        http.client.__exit__(None, None, None)
        assert http.parts.store.reports.refusals(round_.key) == {"malformed": 4, "id-mismatch": 1, "wrong-head-list": 1}
        assert http.parts.store.reports.n_seen(round_.key) == 0

    def test_a_round_takes_reports_only_in_its_window(self, http):
        round_ = http.client_round()
        message, late = http.parts.messages(round_, people(2, seed=2))
        assert http.report(round_, message).status_code == 200
        http.parts.clock.time += 110
        assert is_problem(http.report(round_, late), "window-closed")
        assert is_problem(http.reports(round_, late), "window-closed")
        assert http.parts.store.reports.n_seen(round_.key) == 1

    def test_a_round_before_its_window_and_a_killed_task(self, http):
        task = http.parts.task()
        early = http.parts.open(task)
        assert is_problem(http.report(early, b"x"), "window-closed")
        http.parts.contribute(early, crowd(seed=1))
        round_ = http.parts.head_list(task)
        message = http.parts.messages(round_, people(1, seed=2))[0]
        http.parts.lifecycle.kill(task, actor="ann")
        assert is_problem(http.report(round_, message), "killed")

    def test_unknown_rounds_large_bodies_and_other_media(self, http):
        round_ = http.client_round()
        assert is_problem(http.client.post("/v1/tasks/00/rounds/1/reports", content=b"x"), "unknown-task")
        assert is_problem(http.client.post(f"/v1/tasks/{round_.task}/rounds/x/reports", content=b"x"), "unknown-task")
        assert is_problem(http.client.post(f"/v1/tasks/{round_.task}/rounds/99/reports", content=b"x"), "unknown-task")
        assert is_problem(http.report(round_, b"x" * 70_000), "too-large")
        assert is_problem(http.reports(round_, b"x" * 600_000), "too-large")
        message = http.parts.messages(round_, people(1, seed=2))[0]
        assert is_problem(http.reports(round_, message * 1001), "too-large")
        path = f"/v1/tasks/{round_.task}/rounds/{round_.number}/reports"
        assert is_problem(http.client.post(path, content=message), "unsupported-media-type")
        assert is_problem(http.client.get(path), "method-not-allowed")
        assert is_problem(http.client.get("/nowhere"), "not-found")

    def test_too_many_a_second_are_told_to_come_back(self, where, tmp_path):
        with http_service(where, tmp_path, reports_per_second=3) as http:
            round_ = http.client_round()
            answers = [http.report(round_, message) for message in http.parts.messages(round_, people(8, seed=2))]
            refused = [answer for answer in answers if answer.status_code != 200]
            assert is_problem(refused[-1], "rate-limited")
            assert 3 <= 8 - len(refused) == http.parts.store.reports.n_seen(round_.key)

    def test_a_full_queue_turns_away_before_anything_is_kept(self, where, tmp_path):
        with http_service(where, tmp_path, most_waiting=2) as http:
            round_ = http.client_round()
            messages = http.parts.messages(round_, people(3, seed=2))
            assert is_problem(http.reports(round_, b"".join(messages)), "overloaded")
            assert http.parts.store.reports.n_seen(round_.key) == 0
            assert http.reports(round_, b"".join(messages[:2])).status_code == 200

    def test_a_database_out_of_reach_is_a_503_and_the_same_bytes_count_later(self, http):
        round_ = http.client_round()
        message = http.parts.messages(round_, people(1, seed=2))[0]
        assert http.report(round_, message).status_code == 200
        store = http.services.writer._thread._store
        real = store.reports.add

        def fail(arrivals, now):
            raise StoreUnavailable("busy")

        store.reports.add = fail
        other = http.parts.messages(round_, people(1, seed=3))[0]
        assert is_problem(http.report(round_, other), "storage-unavailable")
        store.reports.add = real
        assert http.report(round_, other).status_code == 200
        assert http.parts.store.reports.n_seen(round_.key) == 2

    def test_a_mistake_of_ours_is_a_500_that_says_nothing(self, http):
        round_ = http.client_round()
        message = http.parts.messages(round_, people(1, seed=2))[0]
        assert http.report(round_, message).status_code == 200

        def fail(arrivals, now):
            raise RuntimeError("secret words")

        http.services.writer._thread._store.reports.add = fail
        answer = http.report(round_, http.parts.messages(round_, people(1, seed=3))[0])
        assert is_problem(answer, "internal")
        assert "secret" not in answer.text + http.parts.log.getvalue()
        assert '"error": "RuntimeError"' in http.parts.log.getvalue()


class TestContributions:
    def sealed(self, round_, record, code):
        context = sealing_context(round_)
        return seal_records([record], context, context.tag_of(code), round_.public_key)

    def test_one_record_for_each_enrolment_code(self, http):
        task = http.parts.task()
        round_ = http.parts.open(task)
        code, other = http.parts.lifecycle.enrol(task, 2, actor="ann")
        record, another = people(2, seed=1)
        sealed = self.sealed(round_, record, code)
        assert http.contribute(round_, sealed, code).status_code == 200
        assert http.contribute(round_, sealed, code).status_code == 200
        assert is_problem(http.contribute(round_, self.sealed(round_, another, code), code), "conflicting-contribution")
        assert http.contribute(round_, self.sealed(round_, another, other), other).status_code == 200
        assert is_problem(http.contribute(round_, sealed, "sbe_" + "x" * 30), "bad-credential")
        assert is_problem(http.contribute(round_, sealed, "short"), "bad-credential")
        assert http.parts.store.contributions.count(round_.key) == 2
        assert http.contribute(round_, b"", code, "DELETE").status_code == 204
        assert http.contribute(round_, b"", code, "DELETE").status_code == 204
        assert http.parts.store.contributions.count(round_.key) == 1
        http.parts.clock.time += 100
        assert is_problem(http.contribute(round_, sealed, code), "window-closed")
        assert is_problem(http.contribute(round_, b"", other, "DELETE"), "window-closed")

    def test_what_is_not_a_sealed_record_is_refused(self, http):
        task = http.parts.task()
        round_ = http.parts.open(task)
        code = http.parts.lifecycle.enrol(task, 1, actor="ann")[0]
        sealed = self.sealed(round_, people(1, seed=1)[0], code)
        assert is_problem(http.contribute(round_, sealed[:-1], code), "malformed")
        assert is_problem(http.contribute(round_, sealed[:2] + b"\0" * 32 + sealed[34:], code), "wrong-consent")
        assert is_problem(http.contribute(round_, b"x" * 5000, code), "too-large")

    def test_anonymous_intake_is_for_demos_only(self, where, tmp_path):
        with http_service(where, tmp_path, anonymous_intake=True) as http:
            round_ = http.parts.open(http.parts.task())
            sealed = self.sealed(round_, people(1, seed=1)[0], "any credential of its own")
            assert http.contribute(round_, sealed, "any credential of its own").status_code == 200
            assert is_problem(http.contribute(round_, sealed, "short"), "bad-credential")


class TestDistribution:
    def test_the_manifest_is_signed_and_cacheable(self, http):
        round_ = http.client_round()
        answer = http.client.get(f"/v1/tasks/{round_.task}/manifest")
        pinned = {key.key_id: key.public_point for key in http.parts.signing_keys.all()}
        manifest = verify_manifest(answer.content, pinned).document
        assert manifest["phase"] == "client"
        assert "max-age" in answer.headers["cache-control"]
        again = http.client.get(f"/v1/tasks/{round_.task}/manifest", headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        artifact = http.client.get(f"/v1/artifacts/{manifest['client']['artifact']}")
        assert json.loads(artifact.content)["digest"] == manifest["client"]["digest"]
        assert "immutable" in artifact.headers["cache-control"]
        assert is_problem(http.client.get("/v1/artifacts/xyz"), "not-found")
        assert is_problem(http.client.get(f"/v1/artifacts/{'0' * 64}"), "not-found")
        assert is_problem(http.client.get("/v1/tasks/none/manifest"), "unknown-task")

    def test_results_are_there_once_they_are_published(self, http):
        round_ = http.client_round()
        http.reports(round_, b"".join(http.parts.messages(round_, people(200, seed=2))))
        files = f"/v1/tasks/{round_.task}/rounds/{round_.number}/files"
        assert is_problem(http.client.get(files), "unknown-task")
        task = http.parts.store.rounds.task(round_.task)
        assert http.parts.finish(task).state is State.PUBLISHED
        names = http.client.get(files).json()["files"]
        result = http.client.get(f"/v1/artifacts/{names['result.json']}").json()
        trends = http.client.get(f"/v1/tasks/{round_.task}/trends").json()["trends"]
        assert [row["query"] for row in trends] == [row["query"] for row in result["trends"]]
        assert {"low", "high", "optin", "client", "optin_weight", "influence", "round"} <= set(trends[0])

    def test_health_readiness_and_metrics(self, http):
        round_ = http.client_round()
        http.report(round_, http.parts.messages(round_, people(1, seed=2))[0])
        assert http.client.get("/healthz").text == http.health.get("/healthz").text == "ok\n"
        assert http.health.get("/readyz").text == "ready\n"
        text = http.health.get("/metrics").text
        for inside in ("/readyz", "/metrics"):
            assert is_problem(http.client.get(inside), "not-found")
        assert 'searchblend_reports_total{result="accepted"} 1' in text
        assert "searchblend_commit_seconds_count 1" in text


@pytest.mark.parametrize(
    ("role", "answers", "silent"),
    [
        ("collector", "/v1/tasks/x/rounds/1/reports", "/v1/tasks/x/rounds/1/contributions"),
        ("intake", "/v1/tasks/x/rounds/1/contributions", "/v1/tasks/x/rounds/1/reports"),
        ("publisher", "/v1/tasks/x/manifest", "/admin/v1/tasks"),
        ("admin", "/admin/v1/tasks", "/v1/tasks/x/manifest"),
    ],
)
def test_a_role_answers_its_own_routes_only(tmp_path, role, answers, silent):
    with http_service(str(tmp_path / "service.db"), tmp_path, role=role) as http:
        assert http.client.request("PATCH", answers).status_code == 405
        assert http.client.request("PATCH", silent).status_code == 404
        assert http.client.get("/healthz").status_code == 200


def test_the_openapi_document_names_every_operation_and_problem(tmp_path):
    from searchblend.service.api.app import all_operations

    with http_service(str(tmp_path / "service.db"), tmp_path) as http:
        document = http.client.get("/openapi.json").json()
        operations = all_operations(http.services)
        assert len({operation.name for operation in operations}) == len(operations)
        for operation in operations:
            assert isinstance(operation, Operation)
            described = document["paths"][operation.path][operation.method.lower()]
            assert str(operation.status) in described["responses"]
            assert all(name in PROBLEMS for name in operation.problems)


def test_the_committed_openapi_document_is_the_current_one():
    import openapi

    assert openapi.FILE.read_text() == openapi.content(), "run scripts/documentation/openapi.py"


def test_every_json_answer_and_body_has_fields_in_the_openapi_document():
    """A bare object would say nothing; only what has no fixed fields may be one."""
    document = openapi_answers.document()
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            bodies = [described["requestBody"]] if "requestBody" in described else []
            for part in [*described["responses"].values(), *bodies]:
                for media_type, content in part.get("content", {}).items():
                    if media_type.endswith("json"):
                        assert "$ref" in content["schema"], (method, path)
    without_fields = {name for name, schema in document["components"]["schemas"].items() if not schema["properties"]}
    assert without_fields == {"Nothing"}


def test_the_check_of_answers_refuses_a_field_of_the_wrong_type(http):
    task = http.parts.task()
    answer = http.admin("GET", f"/tasks/{task.task}", "viewer")
    changed = type(answer)(200, json={**answer.json(), "killed": "no"})
    with pytest.raises(jsonschema_rs.ValidationError):
        openapi_answers.check_answer("GET", f"/admin/v1/tasks/{task.task}", changed)


def test_the_protocol_page_names_every_problem():
    from pathlib import Path

    protocol = (Path(__file__).parents[3] / "docs" / "reference" / "protocol.md").read_text()
    for name, kind in PROBLEMS.items():
        assert f"| `{name}` | {kind.status}" in protocol


def test_a_round_has_one_address_and_no_alias(http):
    round_ = http.client_round()
    assert round_.number == 1
    message = http.parts.messages(round_, people(1, seed=2))[0]
    at = f"/v1/tasks/{round_.task}/rounds"
    sealed = {"authorization": f"Bearer sbe_{'a' * 24}", "content-type": "application/vnd.searchblend.sealed"}
    report = {"content-type": "application/vnd.searchblend.report"}
    for alias in ("01", "١", "%D9%A1", "1.0", "+1", "-1", "1%20", "0", "1e0", "1" * 40):
        assert is_problem(http.client.post(f"{at}/{alias}/reports", content=message, headers=report), "unknown-task")
        assert is_problem(http.client.post(f"{at}/{alias}/contributions", content=b"x", headers=sealed), "unknown-task")
        assert is_problem(http.client.get(f"{at}/{alias}/files"), "unknown-task")
        assert is_problem(http.admin("GET", f"/tasks/{round_.task}/rounds/{alias}"), "unknown-task")
    assert http.parts.store.reports.n_seen(round_.key) == 0
    assert http.report(round_, message).status_code == 200


def test_no_task_can_be_named_like_the_id_of_another(http):
    task = http.parts.task()
    for name in (task.task, task.task.upper(), "0" * 32):
        refused = http.admin("POST", "/tasks", json={"name": name, "uncapped": True})
        assert is_problem(refused, "invalid-request")
        assert refused.json()["detail"].startswith("name:")
    assert http.admin("POST", "/tasks", json={"name": "0" * 31, "uncapped": True}).status_code == 200


def test_an_id_wins_over_a_name_that_an_earlier_version_allowed(http):
    first, second = http.parts.task(name="a"), http.parts.task(name="b")
    for impostor, victim in ((first, second), (second, first)):
        http.parts.store.database.execute("UPDATE tasks SET name = ? WHERE task = ?", (victim.task, impostor.task))
    for task in (first, second):
        assert http.parts.store.rounds.task(task.task).task == task.task


@pytest.mark.parametrize("damage", ['{"epsilon": NaN}', '{"epsilon": 1e999}', '{"name": "\\ud800"}'])
def test_one_damaged_task_hides_no_other_in_the_list(http, damage):
    """JSON that can be read and not written again."""
    broken, fine = http.parts.task(name="broken"), http.parts.task(name="fine")
    http.parts.store.database.execute("UPDATE tasks SET settings = ? WHERE task = ?", (damage, broken.task))
    tasks = http.admin("GET", "/tasks").json()["tasks"]
    assert {task["task"]: bool(task["settings"]) for task in tasks} == {broken.task: False, fine.task: True}
