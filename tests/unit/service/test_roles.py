"""Every admin call × every role × no token, an unknown one and a revoked one."""

from __future__ import annotations

import hashlib

import pytest

from searchblend.service.api.app import all_operations
from searchblend.store.tokens import ROLES
from service_http import http_service

ALL_ROLES = {"viewer", "operator", "reviewer", "auditor"}
ALLOWED = {
    "GET /admin/v1/whoami": ALL_ROLES,
    "GET /admin/v1/tasks": ALL_ROLES,
    "POST /admin/v1/tasks": {"operator"},
    "GET /admin/v1/tasks/{task}": ALL_ROLES,
    "POST /admin/v1/tasks/{task}/kill": {"operator"},
    "POST /admin/v1/tasks/{task}/adjust": {"operator"},
    "POST /admin/v1/tasks/{task}/enrolments": {"operator"},
    "GET /admin/v1/tasks/{task}/rounds": ALL_ROLES,
    "POST /admin/v1/tasks/{task}/rounds": {"operator"},
    "GET /admin/v1/tasks/{task}/rounds/{round}": ALL_ROLES,
    "POST /admin/v1/tasks/{task}/rounds/{round}/open": {"operator"},
    "POST /admin/v1/tasks/{task}/rounds/{round}/close-opt-in": {"operator"},
    "POST /admin/v1/tasks/{task}/rounds/{round}/close-clients": {"operator"},
    "POST /admin/v1/tasks/{task}/rounds/{round}/extend": {"operator"},
    "POST /admin/v1/tasks/{task}/rounds/{round}/end-grace": {"operator"},
    "POST /admin/v1/tasks/{task}/rounds/{round}/abort": {"operator"},
    "GET /admin/v1/tasks/{task}/rounds/{round}/candidate": {"reviewer"},
    "POST /admin/v1/tasks/{task}/rounds/{round}/review": {"reviewer"},
    "POST /admin/v1/tasks/{task}/rounds/{round}/reject": {"reviewer"},
    "GET /admin/v1/blocklist": {"reviewer"},
    "PUT /admin/v1/blocklist": {"reviewer"},
    "GET /admin/v1/ledger": ALL_ROLES,
    "GET /admin/v1/audit": {"auditor"},
}
"""written down here by hand: the routes' own table is what is tested"""


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    folder = tmp_path_factory.mktemp("roles")
    with http_service(str(folder / "service.db"), folder) as service:
        yield service


def test_the_matrix_names_every_admin_call(http):
    assert {operation.name for operation in all_operations(http.services) if operation.tag == "admin"} == set(ALLOWED)


@pytest.mark.parametrize("name", ALLOWED)
def test_matrix(http, name):
    method, path = name.split(" ")
    path = path.removeprefix("/admin/v1").format(task="unknown", round="1")
    for role in ROLES:
        status = http.admin(method, path, role, json={} if method != "GET" else None).status_code
        if role in ALLOWED[name]:
            assert status in (200, 400, 404, 409), role
        else:
            assert status == 403, role
    revoked = http.parts.store.tokens.add_admin(f"gone {name}"[:100], "operator", actor="t", now=1)
    http.parts.store.tokens.revoke_admin(f"gone {name}"[:100], actor="t", now=1)
    unknown = f"sba_{hashlib.sha256(name.encode()).hexdigest()}"  # one token, tried often, would be locked
    for header in ({}, {"authorization": f"Bearer {unknown}"}, {"authorization": f"Bearer {revoked}"}):
        answer = http.client.request(method, f"/admin/v1{path}", headers=header)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    basic = http.client.request(method, f"/admin/v1{path}", headers={"authorization": f"Basic {revoked}"})
    assert basic.status_code == 401


def test_a_round_is_driven_by_two_people_over_the_api(tmp_path):
    """Operator and reviewer; the operator may not review, the reviewer may not open."""
    from service_parts import SMALL, people

    with http_service(str(tmp_path / "service.db"), tmp_path) as http:
        task = http.admin("POST", "/tasks", json=SMALL).json()["task"]
        assert http.admin("POST", "/tasks", json=SMALL).status_code == 400
        assert http.admin("POST", "/tasks", json={**SMALL, "name": "x", "epsilon": -1}).status_code == 400
        assert http.admin("POST", "/tasks", json=[1]).status_code == 400
        assert len(http.admin("POST", f"/tasks/{task}/enrolments", json={"count": 3}).json()["codes"]) == 3
        assert http.admin("POST", f"/tasks/{task}/enrolments", json={"count": 0}).status_code == 400
        assert http.admin("POST", f"/tasks/{task}/rounds").json()["state"] == "DRAFT"
        at = f"/tasks/{task}/rounds/1"
        assert http.admin("POST", f"{at}/close-opt-in").status_code == 409
        assert http.admin("POST", f"{at}/open").status_code == 200
        http.parts.work()
        round_ = http.parts.store.rounds.round(task, 1)
        http.parts.contribute(round_, people(400, seed=1))
        assert http.admin("GET", at, "viewer").json()["opt_in_records"] == 400
        assert http.admin("POST", f"{at}/close-opt-in").json()["state"] == "OPTIN_CLOSED"
        http.parts.work()
        assert http.admin("PUT", "/blocklist", "reviewer", json={"words": ["video"]}).status_code == 200
        assert http.admin("PUT", "/blocklist", "reviewer", json={"words": 1}).status_code == 400
        candidate = http.admin("GET", f"{at}/candidate", "reviewer").json()
        blocked = [i for i, (query, _) in enumerate(candidate["head"]) if query == "video"]
        assert {hit["query"] for hit in candidate["hits"]} == set(blocked)
        news = next(i for i, (query, _) in enumerate(candidate["head"]) if query == "news")
        for wrong in ({"remove": 1}, {"remove": [{"query": "x"}]}, {"remove": [{"query": 99, "reason": "other"}]}):
            assert http.admin("POST", f"{at}/review", "reviewer", json=wrong).status_code == 400
        body = {"remove": [{"query": news, "url": None, "reason": "other"}]}
        assert http.admin("POST", f"{at}/review", "reviewer", json=body).json()["state"] == "REVIEWED"
        http.parts.work()
        round_ = http.parts.store.rounds.round(task, 1)
        answer = http.reports(round_, b"".join(http.parts.messages(round_, people(300, seed=2))))
        assert answer.json() == {"accepted": 300, "refused": {}}
        assert http.admin("POST", f"{at}/close-clients").json()["state"] == "CLIENT_GRACE"
        assert http.admin("POST", f"{at}/end-grace").json()["reports"] == 300
        http.parts.work()
        final = http.admin("GET", at).json()
        assert (final["state"], final["reports"], final["conservation"]["holds"]) == ("PUBLISHED", 300, True)
        queries = {row["query"] for row in http.client.get(f"/v1/tasks/{task}/trends").json()["trends"]}
        assert {"news", "video"}.isdisjoint(queries)
        assert "weather" in queries
        assert len(http.admin("GET", "/ledger").json()["debits"]) == 2
        actions = [row["action"] for row in http.admin("GET", "/audit", "auditor").json()["rows"]]
        assert actions.count("round moved") == 10
        assert http.admin("POST", f"/tasks/{task}/kill").json()["killed"]
        assert http.admin("POST", f"/tasks/{task}/rounds").status_code == 409
