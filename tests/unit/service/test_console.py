"""The console over HTTP: roles, sessions, forms, headers, and what pages cost the database."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import pytest

from console_person import Person
from console_site import BAD_URL, SCRIPT, SETTINGS, searchers
from searchblend.accounting.totals import BudgetCap
from searchblend.core.documents import encode
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget
from searchblend.service.caps import ask_for_cap, why_not_lower
from searchblend.service.console.public_pages import Imprint, link_of
from searchblend.service.console.render import HEADERS, static_files
from searchblend.service.console.sign_in import (
    COOKIE,
    SESSION_SECONDS,
    console_table,
)
from searchblend.service.console.task_page import GROUPS, default_values, settings_of_form, shown_values
from searchblend.service.console.users_page import read_users
from searchblend.service.console.visit import form_token, next_page
from searchblend.service.console.words import percent
from searchblend.service.failed_sign_ins import LOCKED_SECONDS, MOST_FAILURES, AccountLock
from searchblend.service.round_model import adjusted_name, settings_now, settings_of, task_now
from searchblend.service.task_settings import ADJUSTABLE, TaskSettings
from searchblend.store.ledger_book import canonical, chained
from searchblend.store.reports import ReportOutcome
from searchblend.store.states import State
from searchblend.store.tokens import ROLES
from searchblend.wire.manifest import decode_payload, decode_signed
from service_http import http_service
from service_parts import crowd, people

ALL_ROLES = set(ROLES)
TASK, ROUND = "/console/tasks/{task}", "/console/tasks/{task}/rounds/{round}"
ALLOWED = {
    "GET /console": ALL_ROLES,
    "GET /console/new-task": {"operator"},
    "POST /console/new-task": {"operator"},
    f"GET {TASK}": ALL_ROLES,
    f"POST {TASK}/rounds": {"operator"},
    f"GET {TASK}/adjust": {"operator"},
    f"POST {TASK}/adjust": {"operator"},
    f"POST {TASK}/kill": {"operator"},
    f"POST {TASK}/enrolments": {"operator"},
    f"GET {TASK}/trends": ALL_ROLES,
    f"GET {TASK}/search": ALL_ROLES,
    f"GET {ROUND}": ALL_ROLES,
    f"GET {ROUND}/live": ALL_ROLES,
    f"GET {ROUND}/files/{{name}}": ALL_ROLES,
    f"POST {ROUND}/open": {"operator"},
    f"POST {ROUND}/close-opt-in": {"operator"},
    f"POST {ROUND}/close-clients": {"operator"},
    f"POST {ROUND}/extend": {"operator"},
    f"POST {ROUND}/end-grace": {"operator"},
    f"POST {ROUND}/abort": {"operator"},
    "GET /console/review": ALL_ROLES,
    f"GET {ROUND}/review": {"reviewer"},
    f"POST {ROUND}/review": {"reviewer"},
    f"POST {ROUND}/reject": {"reviewer"},
    "GET /console/blocklist": {"reviewer"},
    "POST /console/blocklist": {"reviewer"},
    "GET /console/trends": ALL_ROLES,
    "GET /console/search": ALL_ROLES,
    "GET /console/budget": ALL_ROLES,
    "POST /console/budget": {"operator"},
    "GET /console/planner": ALL_ROLES,
    "GET /console/refusals": ALL_ROLES,
    "GET /console/users": {"operator", "auditor"},
    "GET /console/audit": {"auditor"},
    "GET /console/audit/{name}": {"auditor"},
    "POST /console/sign-out": ALL_ROLES,
}
"""written down here by hand: the routes' own table is what is tested"""


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    folder = tmp_path_factory.mktemp("console")
    with http_service(str(folder / "service.db"), folder) as service:
        yield service


@pytest.fixture
def fresh(tmp_path):
    with http_service(str(tmp_path / "service.db"), tmp_path) as service:
        yield service


@pytest.fixture(scope="module")
def operator(http):
    return Person(http, "operator")


def candidate_round(http, **changes):
    """A round that waits for its review, opened by ann; its list holds a script and a bad address."""
    task = http.parts.task(**{**SETTINGS, **changes})
    http.parts.contribute(http.parts.open(task), searchers(500, seed=3, odd=True))
    http.parts.lifecycle.close_optin(http.parts.current(task), actor="ann")
    http.parts.work()
    return task, http.parts.current(task)


def test_the_matrix_names_every_call_of_the_console(http):
    assert {row.name for row in console_table(http.services)} == set(ALLOWED)


@pytest.mark.parametrize("role", ROLES)
def test_matrix(http, role):
    person = Person(http, role)
    for name, allowed in ALLOWED.items():
        if name == "POST /console/sign-out":
            continue
        method, path = name.split(" ")
        path = path.format(task="unknown", round="1", name="x")
        status = (person.get(path) if method == "GET" else person.post(path)).status_code
        if role in allowed:
            assert status in (200, 303, 400, 404, 409), name
        else:
            assert status == 403, name


@pytest.mark.parametrize("name", ALLOWED)
def test_no_one_gets_in_without_a_session(http, name):
    method, path = name.split(" ")
    path = path.format(task="unknown", round="1", name="x")
    http.client.base_url = "https://testserver"
    for cookie in ("", "unknown", "x" * 500):
        http.client.cookies.clear()
        if cookie:
            http.client.cookies.set(COOKIE, cookie)
        answer = http.client.request(method, path, follow_redirects=False, data={} if method == "POST" else None)
        assert answer.status_code == (303 if method == "GET" else 401)
        if method == "GET":
            assert answer.headers["location"].startswith("/console/sign-in?next=%2Fconsole")
    polled = http.client.get("/console", headers={"hx-request": "true"}, follow_redirects=False)
    assert (polled.status_code, polled.headers["hx-redirect"]) == (401, "/console/sign-in")


def test_csrf_a_form_needs_the_proof_of_its_own_session(fresh):
    operator, other = Person(fresh, "operator"), Person(fresh, "viewer")
    values = {name: str(value) for name, value in default_values().items()} | {
        "name": "made",
        "has_urls": "yes",
        "uncapped": "yes",
    }
    wrong = ["", "x", form_token("another secret"), form_token(other.cookies[COOKIE]), "A" * 88]
    for form in wrong:
        answer = operator.post("/console/new-task", {**values, "form": form})
        assert answer.status_code == 403
        assert "form is out of date" in answer.text
    elsewhere = operator.post("/console/new-task", values, headers={"sec-fetch-site": "cross-site"})
    assert (elsewhere.status_code, "another site" in elsewhere.text) == (403, True)
    assert fresh.parts.store.rounds.tasks() == []
    form = Person.form_of(operator.get("/console/new-task"))
    assert operator.post("/console/new-task", {**values, "form": form}).status_code == 303
    assert [task.name for task in fresh.parts.store.rounds.tasks()] == ["made"]
    two = {Person.form_of(operator.get("/console")) for _ in range(2)}
    assert len(two) == 2, "the proof is masked anew on every page"
    signing_in = fresh.client.post("/console/sign-in", data={"token": fresh.tokens["operator"], "form": "x"})
    assert signing_in.status_code == 403


def test_xss_what_people_searched_for_is_shown_inert(fresh):
    reviewer = Person(fresh, "reviewer")
    task, round_ = candidate_round(fresh, name='<b>bold</b>"')
    at = f"/console/tasks/{task.task}/rounds/{round_.number}"
    review = reviewer.get(f"{at}/review")
    keep = re.findall(r'name="keep" value="([\d.]+)"', review.text)
    assert reviewer.confirm(f"{at}/review", {"keep": keep}).status_code == 303
    fresh.parts.work()
    round_ = fresh.parts.current(task)
    fresh.parts.count(round_, fresh.parts.messages(round_, searchers(300, seed=4, odd=True)))
    assert fresh.parts.finish(task).state is State.PUBLISHED
    odd = {"find": '"><script>x</script>', "q": SCRIPT, "typed": SCRIPT}
    pages = {
        "review": review,
        "round": reviewer.get(at, params=odd),
        "trends": reviewer.get(f"/console/tasks/{task.task}/trends", params=odd),
        "public": fresh.client.get(f"/trends/{task.task}", params=odd),
        "search": reviewer.get(f"/console/tasks/{task.task}/search", params=odd),
        "overview": reviewer.get("/console"),
        "list": reviewer.get(at),
    }
    for name, answer in pages.items():
        assert answer.status_code == 200, name
        for tag in re.findall(r"<script[^>]*>", answer.text):
            assert "src=" in tag or "application/json" in tag, name
        assert "<script>window" not in answer.text, name
        assert not re.search(r"""(href|src|action)\s*=\s*["']?\s*javascript:""", answer.text, re.IGNORECASE), name
        assert not re.search(r"<[^>]+\son\w+\s*=", answer.text), name
        assert "<b>bold" not in answer.text, name
    assert html.escape(SCRIPT) in pages["list"].text
    assert BAD_URL in html.unescape(pages["list"].text)
    assert html.escape(SCRIPT) in pages["review"].text


def test_clickjacking_and_other_headers_are_on_every_answer(http, operator):
    answers = [operator.get("/console"), operator.get("/console/nowhere"), operator.get("/console/tasks/none")]
    answers += [http.client.get("/console/sign-in"), http.client.get("/console/static/console.css")]
    answers += [http.client.get("/trends/none"), operator.post("/console/new-task", {"form": "x"})]
    answers += [operator.get("/console/sign-out"), operator.get("/console/trends")]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, answer.url
    policy = HEADERS["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answers[0].headers["cache-control"] == "no-store"


def test_cookie_flags(http):
    http.client.cookies.clear()
    for base, proxy, secure in (
        ("https://testserver", {}, True),
        ("http://testserver", {}, True),
        ("http://localhost:8470", {}, False),
        ("http://127.0.0.1:8470", {}, False),
        ("http://127.0.0.1:8470", {"x-forwarded-proto": "https"}, True),
        ("http://127.0.0.1:8470", {"x-forwarded-proto": "http"}, False),
        ("http://testserver", {"x-forwarded-proto": "http"}, True),
        ("https://localhost", {}, True),
    ):
        http.client.base_url = base
        http.client.cookies.clear()
        page = http.client.get("/console/sign-in", headers=proxy)
        cookie = page.headers["set-cookie"]
        secret = re.search("searchblend_form=([^;]+)", cookie)[1]
        answer = http.client.post(
            "/console/sign-in",
            data={"form": form_token(secret), "token": http.tokens["viewer"]},
            headers={"cookie": f"searchblend_form={secret}", **proxy},
            follow_redirects=False,
        )
        for text in (cookie, answer.headers["set-cookie"]):
            flags = {part.strip().lower() for part in text.split(";")[1:]}
            assert {"httponly", "samesite=strict"} <= flags
            assert ("secure" in flags) == secure, base
        assert "path=/console" in answer.headers["set-cookie"].lower()
        assert f"max-age={SESSION_SECONDS}" in answer.headers["set-cookie"].lower()
        assert http.tokens["viewer"] not in answer.headers["set-cookie"]
    http.client.base_url = "https://testserver"


def test_a_session_ends_with_its_time_its_token_or_by_signing_out(fresh):
    store, clock = fresh.parts.store, fresh.parts.clock
    person = Person(fresh, "viewer")
    assert person.get("/console").status_code == 200
    clock.time += SESSION_SECONDS - 1
    assert person.get("/console").status_code == 200
    clock.time += 1
    assert person.get("/console").status_code == 303
    person.sign_in()
    assert len(store.database.execute("SELECT * FROM sessions")) == 1, "the old one is gone"
    cookie = person.cookies[COOKIE]
    assert cookie not in str(store.database.execute("SELECT * FROM sessions")), "only its hash is kept"
    assert person.post("/console/sign-out").status_code == 303
    person.cookies = {COOKIE: cookie}
    assert person.get("/console").status_code == 303
    person.sign_in()
    store.tokens.revoke_admin("viewer", actor="test", now=1)
    assert person.get("/console").status_code == 303
    assert "signed in" in [row.entry.action for row in store.audit.rows()]


def test_brute_force_ends_after_a_few_failures(fresh):
    person = Person(fresh, "operator")
    for _ in range(MOST_FAILURES):
        assert person.sign_in(f"{fresh.tokens['operator'][:20]} wrong").status_code == 401
    refused = person.sign_in(f"{fresh.tokens['operator'][:15]} wrong")
    assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
    assert person.sign_in(fresh.tokens["operator"]).status_code == 429, "not even the right one is tried"


def test_many_attempts_at_once_are_no_way_around_the_limit(fresh):
    """All are sent before the first is answered: the store is kept waiting meanwhile."""
    person = Person(fresh, "operator")
    form_page = fresh.client.get("/console/sign-in")
    data = {"form": Person.form_of(form_page), "token": "sba_wrong", "next": "/console"}
    waits = threading.Event()
    one_thread = person.http.services.console._executor
    one_thread.submit(waits.wait, 240)

    def attempt(_: int) -> int:
        return fresh.client.post("/console/sign-in", data=data, follow_redirects=False).status_code

    with ThreadPoolExecutor(3 * MOST_FAILURES) as threads:
        answers = [threads.submit(attempt, i) for i in range(3 * MOST_FAILURES)]
        deadline = time.monotonic() + 120
        while sum(one.done() for one in answers) + one_thread._work_queue.qsize() < len(answers):
            assert time.monotonic() < deadline, "some attempts are neither refused nor waiting"
            time.sleep(0.01)
        waits.set()
        statuses = [answer.result() for answer in answers]
    assert statuses.count(401) <= MOST_FAILURES
    assert statuses.count(429) >= 2 * MOST_FAILURES


def test_the_lock_forgets_and_keeps_accounts_apart():
    now = 0.0
    lock = AccountLock(lambda: now)
    for i in range(MOST_FAILURES):
        lock.failed(f"sba_12345678{i}")
    with pytest.raises(Exception, match="rate-limited"):
        lock.refuse_if_locked("sba_12345678 whatever follows")
    lock.refuse_if_locked("sba_12345679")
    now = LOCKED_SECONDS + 1.0
    lock.refuse_if_locked("sba_12345678")


def test_a_locked_account_keeps_no_one_else_out_and_is_locked_everywhere(fresh):
    """Operator and reviewer share an address, as all people do behind a proxy."""
    operator, reviewer = Person(fresh, "operator"), Person(fresh, "reviewer")
    guess = f"{fresh.tokens['operator'][:12]}{'x' * 35}"
    for _ in range(MOST_FAILURES):
        assert operator.sign_in(guess).status_code == 401
    assert operator.sign_in().status_code == 429
    assert fresh.admin("GET", "/tasks", "operator").status_code == 429
    assert reviewer.sign_in().status_code == 303
    assert fresh.admin("GET", "/tasks", "reviewer").status_code == 200


def test_an_audit_log_is_taken_away_as_json_lines_and_says_so(fresh):
    auditor = Person(fresh, "auditor")
    fresh.parts.store.audit.append("ann", "tried a line\nbreak and \u2028", 5, {"n": 1})
    answer = auditor.get("/console/audit/audit.jsonl")
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.split("\n")[:-1]]
    rows = fresh.parts.store.audit.rows()
    assert [line["hash"] for line in lines] == [row.hash for row in rows]
    for line in lines:  # the chain can be checked from the file alone
        body = canonical({name: line[name] for name in ("actor", "action", "when", "detail")})
        assert chained(line["previous"], body) == line["hash"]
    assert (lines[-1]["actor"], lines[-1]["action"]) == ("auditor", "audit log exported")
    assert lines[-1]["detail"] == {"form": "jsonl"}


def test_signing_in_leads_to_our_own_pages_alone():
    assert next_page("/console/budget?x=1") == "/console/budget?x=1"
    for elsewhere in ("https://evil.example", "//evil.example", "/consoles", "/console/\\evil", "javascript:1", "/v1"):
        assert next_page(elsewhere) == "/console"


def test_reviewer_is_not_who_opened(fresh):
    """The same name would be the same person, whatever roles their tokens have."""
    reviewer = Person(fresh, "reviewer")
    task = fresh.parts.task(**SETTINGS, name="own")
    round_ = fresh.parts.lifecycle.draft_round(task, actor="reviewer")
    fresh.parts.lifecycle.request_open(round_, actor="reviewer")
    fresh.parts.work()
    fresh.parts.contribute(fresh.parts.current(task), searchers(400, seed=1))
    fresh.parts.lifecycle.close_optin(fresh.parts.current(task), actor="ann")
    fresh.parts.work()
    at = f"/console/tasks/{task.task}/rounds/1"
    assert "another reviewer has to review it" in reviewer.get(f"{at}/review").text
    for action in ("review", "reject"):
        answer = reviewer.confirm(f"{at}/{action}", {"reason": "other"})
        assert (answer.status_code, "must not be the person who opened the round" in answer.text) == (409, True)
    assert fresh.parts.current(task).state is State.SHREDDED


def test_a_removal_and_a_rejection_need_a_reason(fresh):
    reviewer = Person(fresh, "reviewer")
    task, _ = candidate_round(fresh, name="reasons")
    at = f"/console/tasks/{task.task}/rounds/1"
    for action, data in (
        ("review", {"remove": "0", "reason": ""}),
        ("review", {"remove": "0", "reason": "because"}),
        ("review", {"remove": "x", "reason": "other"}),
        ("review", {"remove": "999", "reason": "other"}),
        ("reject", {"reason": ""}),
    ):
        answer = reviewer.confirm(f"{at}/{action}", data)
        assert (answer.status_code, "Nothing was done" in answer.text) == (400, True)
    assert fresh.parts.current(task).state is State.SHREDDED
    assert reviewer.confirm(f"{at}/reject", {"reason": "other"}).status_code == 303
    assert fresh.parts.current(task).state is State.ABORTED
    page = reviewer.get(at).text
    assert "The reviewer rejected the list." in page
    assert SCRIPT not in fresh.parts.log.getvalue()


def test_ticks_outlive_a_mistake_and_published_shares_stand_beside_queries(fresh):
    parts, reviewer = fresh.parts, Person(fresh, "reviewer")
    task = parts.task(**SETTINGS, name="again")
    parts.contribute(parts.open(task), searchers(400, seed=1))
    round_ = parts.head_list(task)
    parts.count(round_, parts.messages(round_, searchers(300, seed=2)))
    parts.finish(task)
    parts.contribute(parts.open(task), searchers(400, seed=3, odd=True))
    parts.lifecycle.close_optin(parts.current(task), actor="ann")
    parts.work()
    at = f"/console/tasks/{task.task}/rounds/2"
    first = parts.store.artifacts.lists([round_.key])[round_.key]
    page = html.unescape(reviewer.get(f"{at}/review").text)
    share = percent(next(row.probability for row in first if row.query == "weather"))
    assert f'<span class="query">weather</span><span class="small muted">{share} in round 1</span>' in page
    assert f'{SCRIPT}</span><span class="small muted">not in round 1</span>' in page
    assert " checked" not in page
    places = re.findall(r'name="remove" value="([\d.]+)"', page)[:3]
    keep = re.findall(r'name="keep" value="([\d.]+)"', page)[:1]
    again = reviewer.post(f"{at}/review", {"remove": places, "keep": keep, "reason": ""})
    assert again.status_code == 400
    assert "Nothing was done: choose why the ticked entries are removed." in again.text
    assert sorted(re.findall(r'value="([\d.]+)" checked', again.text)) == sorted([*places, *keep])


def test_the_candidate_list_is_for_reviewers_alone(fresh):
    task, _ = candidate_round(fresh, name="secret until reviewed")
    for role in ("viewer", "operator", "auditor"):
        person = Person(fresh, role)
        for path in (
            "/console",
            "/console/review",
            f"/console/tasks/{task.task}",
            f"/console/tasks/{task.task}/rounds/1",
        ):
            text = person.get(path).text
            assert "weather" not in text
            assert html.escape(SCRIPT) not in text
        assert person.get(f"/console/tasks/{task.task}/rounds/1/review").status_code == 403


def test_the_form_has_every_setting_once_and_gives_them_back(operator):
    names = [field.name for group in GROUPS for field in group.fields]
    assert sorted(names) == sorted(field.name for field in fields(TaskSettings))
    settings = TaskSettings(name="x", grace_seconds=90, repeat_seconds=7200, wide_list=True, consent="a\nb")
    form = {
        name: ("yes" if value else "") if isinstance(value, bool) else str(value)
        for name, value in shown_values(encode(settings)).items()
    }
    assert settings_of_form(form) == settings


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("epsilon", "-1", "epsilon"),
        ("epsilon", "much", "expected a number"),
        ("min_optin", "1", "min_optin"),
        ("name", "", "expected 1 to 100"),
        ("optin_seconds", "1.5", "expected a whole number"),
    ],
)
def test_a_wrong_setting_is_named_and_what_was_typed_stays(operator, field, value, says):
    values = {name: str(shown) for name, shown in default_values().items()} | {
        "name": "typed by hand",
        "has_urls": "yes",
    }
    answer = operator.post("/console/new-task", {**values, field: value})
    assert answer.status_code == 400
    assert says in html.unescape(answer.text)
    assert field == "name" or "typed by hand" in answer.text


def test_actions_in_the_wrong_state_are_explained(fresh):
    operator = Person(fresh, "operator")
    task = fresh.parts.task(**SETTINGS, name="states")
    fresh.parts.lifecycle.draft_round(task, actor="ann")
    at = f"/console/tasks/{task.task}/rounds/1"
    answer = operator.post(f"{at}/close-clients")
    assert (answer.status_code, "another state" in answer.text) == (409, True)
    assert operator.confirm(f"{at}/abort").status_code == 303
    assert operator.post(f"/console/tasks/{task.task}/enrolments", {"count": "0"}).status_code == 400
    codes = operator.post(f"/console/tasks/{task.task}/enrolments", {"count": "3"}).text
    assert len(re.findall("sbe_", codes)) == 3
    assert operator.confirm(f"/console/tasks/{task.task}/kill").status_code == 303
    assert fresh.parts.store.rounds.task(task.task).killed
    huge = operator.post("/console/new-task", {"consent": "x" * 2_000_000})
    assert huge.status_code == 413


def test_what_cannot_be_undone_asks_first_and_says_what_it_costs(fresh):
    parts = fresh.parts
    operator, reviewer = Person(fresh, "operator"), Person(fresh, "reviewer")
    task = parts.task(**SETTINGS, name="asked")
    at = f"/console/tasks/{task.task}/rounds/1"

    def asked(person, path, says, data=None):
        before = parts.current(task)
        answer = person.post(path, data)
        assert (answer.status_code, "This cannot be undone." in answer.text) == (200, True), path
        text = html.unescape(answer.text)
        assert [words for words in says if words not in text] == [], path
        assert parts.current(task) == before, "asking changes nothing"
        return answer

    parts.lifecycle.enrol(task, 700, actor="ann")
    round_ = parts.open(task)
    parts.contribute(round_, searchers(400, seed=3, odd=True))
    asked(operator, f"{at}/close-opt-in", ["400 of 700 expected records so far.", "ε = 4 will be charged"])
    assert operator.confirm(f"{at}/close-opt-in").status_code == 303
    parts.work()
    sent = {"remove": ["0", "1"], "reason": "other"}
    page = asked(reviewer, f"{at}/review", ["Charged already, and not given back: ε = 4 to opt-in users."], sent)
    carried = re.findall(r'<input type="hidden" name="(remove|reason)" value="([^"]*)"', page.text)
    assert carried == [("remove", "0"), ("remove", "1"), ("reason", "other")], "the answer sends what was ticked"
    candidates = parts.current(task)
    back = reviewer.post(f"{at}/review", {**sent, "sure": "no"})
    assert (back.status_code, parts.current(task)) == (200, candidates), "no changes nothing"
    assert re.findall(r'value="([\d.]+)" checked', back.text) == ["0", "1"], "no loses nothing that was ticked"
    assert '<option value="other" selected>' in back.text
    asked(reviewer, f"{at}/reject", ["The list is destroyed"], {"reason": "other"})
    assert reviewer.confirm(f"{at}/review").status_code == 303
    parts.work()
    asked(operator, f"{at}/close-clients", ["0 of 1,000 expected reports so far.", "with fewer the round ends"])
    assert operator.confirm(f"{at}/close-clients").status_code == 303
    asked(operator, f"{at}/end-grace", ["Reports that arrive later are lost"])
    asked(operator, f"{at}/abort", ["ε = 4 to clients."])
    asked(operator, f"/console/tasks/{task.task}/kill", ["Devices are told to forget it", "ε = 4 to clients."])


def test_live_parts_agree_and_what_was_done_is_not_said_again(fresh):
    person, task = Person(fresh, "viewer"), fresh.parts.task(**SETTINGS, name="live")
    round_ = fresh.parts.open(task)
    at = f"/console/tasks/{task.task}/rounds/1"
    fresh.parts.contribute(round_, searchers(60, seed=1))
    answer = person.get(f"{at}/live", {"version": str(fresh.parts.current(task).version)})
    figures = re.findall(r'<dd (data-figure="optin"|id="moving-group" data-hx-swap-oob="true")>(\d+)</dd>', answer.text)
    assert [n for _, n in figures] == ["60", "60"]
    assert re.search(r'<dd id="moving-group">60</dd>', person.get(at).text), "what the answer takes the place of"
    moved = person.get(f"{at}/live", {"version": "0"})
    assert moved.headers["hx-redirect"] == at
    fresh.parts.store.jobs.add(fresh.parts.current(task).key, "head-list", fresh.parts.clock.now())
    begun = person.get(f"{at}/live", {"version": str(fresh.parts.current(task).version)})
    assert begun.headers["hx-redirect"] == at, "the next step says that a job is under way"


def test_an_open_client_window_is_extended_and_devices_hear_of_it(fresh):
    parts, operator = fresh.parts, Person(fresh, "operator")
    task = parts.task(**SETTINGS, name="longer")
    parts.contribute(parts.open(task), searchers(300, seed=1))
    at = f"/console/tasks/{task.task}/rounds/1"
    assert operator.post(f"{at}/extend", {"hours": "2"}).status_code == 409, "what the curator signed stays"
    assert "Its end cannot be moved" in operator.get(at).text
    before = parts.head_list(task)
    parts.work()
    for hours in ("0", "x", "9999"):
        assert operator.post(f"{at}/extend", {"hours": hours}).status_code == 400
    assert operator.post(f"{at}/extend", {"hours": "48"}).status_code == 303
    after = parts.current(task)
    assert (after.client_closes, after.grace_until) == (before.client_closes + 172_800, before.grace_until + 172_800)
    assert "<strong>Client window extended</strong>" in operator.get(at).text
    spent, first = parts.store.ledger.book().head, parts.store.artifacts.manifest(task.task)
    parts.clock.time += 1
    parts.work()
    newest = decode_payload(decode_signed(parts.store.artifacts.manifest(task.task)[2]).payload)
    assert (newest.client.closes, newest.sequence > first[0]) == (after.client_closes, True)
    assert parts.store.ledger.book().head == spent, "nothing more is charged"
    parts.clock.time = before.client_closes + 1
    parts.work()
    assert parts.current(task).state is State.CLIENT_OPEN
    report = parts.messages(after, searchers(1, seed=5))
    assert parts.count(after, report) == [ReportOutcome.TAKEN]
    parts.clock.time = after.client_closes
    parts.work()
    assert parts.current(task).state is State.CLIENT_GRACE


def test_a_new_task_like_another_has_its_settings_and_no_name(operator):
    task = operator.http.parts.task(
        **{**SETTINGS, "name": "model", "market": "en-GB", "uncapped": True, "consent": "Ask."}
    )
    assert f"/console/new-task?like={task.task}" in operator.get(f"/console/tasks/{task.task}").text
    page = operator.get("/console/new-task", {"like": task.task}).text
    assert 'name="market" type="text" maxlength="100" required value="en-GB"' in page
    assert 'name="name" type="text" maxlength="100" required value=""' in page
    assert ">Ask.</textarea>" in page  # and not the sentence about a number that the form may change
    assert operator.get("/console/new-task", {"like": "none"}).status_code == 404


def test_settings_change_for_coming_rounds_if_no_one_agreed_to_them(fresh):
    parts, operator = fresh.parts, Person(fresh, "operator")
    task = parts.task(**SETTINGS, name="adjusted")
    parts.open(task)
    at = f"/console/tasks/{task.task}"
    page = operator.get(f"{at}/adjust").text
    asked = set(re.findall(r'<(?:input|select)[^>]* name="([a-z_]+)"', page)) - {"form"}
    assert {name for name in asked if not name.endswith("_unit")} == set(ADJUSTABLE) | {"asks_uncapped"}
    form = {"min_optin": "60", "optin_seconds": "4", "optin_seconds_unit": "days", "asks_uncapped": "yes"}
    assert operator.post(f"{at}/adjust", form).headers["location"] == f"{at}?done=adjust"
    assert parts.current(task).settings["min_optin"] == 50, "a round under way keeps its own"
    assert parts.store.rounds.task(task.task).settings == task.settings, "and so does what people agreed to"
    shown = fresh.admin("GET", f"/tasks/{task.task}").json()["settings"]
    assert (shown["min_optin"], shown["optin_seconds"], shown["uncapped"]) == (60, 4 * 86_400, False)
    refused = operator.post(f"{at}/adjust", {**form, "min_optin": "49"})
    assert (refused.status_code, "min_optin: expected at least 50" in html.unescape(refused.text)) == (400, True)
    assert 'value="49"' in refused.text
    parts.lifecycle.abort(parts.current(task), actor="ann", reason="operator")
    drafted = parts.lifecycle.draft_round(parts.store.rounds.task(task.task), actor="ann")
    assert (drafted.settings["min_optin"], drafted.settings["optin_seconds"]) == (60, 4 * 86_400)
    assert drafted.settings["consent"] == task.settings["consent"]
    assert "<dd>4 days</dd>" in operator.get(at).text
    changes = [row.entry.detail["changes"] for row in parts.store.audit.rows() if row.entry.action == "task adjusted"]
    assert changes == [{"min_optin": [50, 60], "optin_seconds": [3 * 86_400, 4 * 86_400], "uncapped": [True, False]}]


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("epsilon", 2.0, "people who joined agreed to it"),
        ("consent", "Else.", "people who joined agreed to it"),
        ("population", "others", "the ledger charges it"),
        ("shred_seconds", 6 * 86_400, "expected at most 432,000"),
        ("min_queries", 1, "expected at least 2"),
        ("optin_seconds", 9 * 86_400, "expected more than optin_seconds"),
        ("colour", "red", "no such setting"),
        ("min_optin", "many", "expected a whole number"),
    ],
)
def test_a_setting_that_people_agreed_to_is_refused_by_name_with_the_reason(http, name, value, why):
    task = http.parts.task(**SETTINGS, name=f"refuses {name}")
    with pytest.raises(InvalidParameter, match=re.escape(why)) as refused:
        http.parts.lifecycle.adjust(task, {"grace_seconds": 60, name: value}, actor="ann")
    assert refused.value.field == ("shred_seconds" if name == "optin_seconds" else name)
    assert settings_now(http.parts.store, task) == settings_of(task), "all or nothing"


def test_adjustments_that_someone_wrote_by_hand_change_no_promise(http):
    task = http.parts.task(**SETTINGS, name="by hand")
    for content in (b'{"epsilon": 9}', b'{"min_optin": 2}', b"[1]", b"{"):
        http.parts.store.artifacts.keep(0, adjusted_name(task), content)
        assert task_now(http.parts.store, task).settings == {}
        with pytest.raises((InvalidParameter, ValueError, AttributeError)):
            http.parts.lifecycle.draft_round(task, actor="ann")
    http.parts.store.artifacts.drop(0, adjusted_name(task))
    assert task_now(http.parts.store, task) == task


def test_a_cap_is_set_and_lowered_by_operators_and_raised_by_no_one_of_them(fresh):
    parts, operator = fresh.parts, Person(fresh, "operator")
    asked = {"per_window_epsilon": "8", "per_window_delta": "1e-4", "lifetime_epsilon": "", "lifetime_delta": ""}
    assert "Set a cap" in operator.get("/console/budget").text
    assert operator.post("/console/budget", asked).headers["location"] == "/console/budget?done=cap"
    assert parts.store.ledger.book().cap is None, "the console writes no ledger"
    parts.work()
    assert parts.store.ledger.book().cap == BudgetCap(Budget(8.0, 1e-4))
    assert "Lower the cap" in operator.get("/console/budget").text
    for change in ({"per_window_epsilon": "8.5"}, {"per_window_delta": "1e-3"}, {"per_window_epsilon": "x"}):
        assert operator.post("/console/budget", {**asked, **change}).status_code == 400
    nothing = operator.post("/console/budget", dict.fromkeys(asked, ""))
    assert nothing.status_code == 400
    lower = {**asked, "per_window_epsilon": "6", "lifetime_epsilon": "50", "lifetime_delta": "1e-3"}
    assert operator.post("/console/budget", lower).status_code == 303
    parts.work()
    assert parts.store.ledger.book().cap == BudgetCap(Budget(6.0, 1e-4), Budget(50.0, 1e-3))
    assert operator.post("/console/budget", asked).status_code == 400, "without the lifetime's it would allow more"
    done = [(row.entry.actor, row.entry.action) for row in parts.store.audit.rows() if "cap" in row.entry.action]
    assert done == [("operator", "cap asked for"), ("curator", "cap set")] * 2


def test_a_cap_that_was_asked_for_is_compared_again_when_it_is_set(fresh):
    parts = fresh.parts
    ask_for_cap(parts.store, BudgetCap(Budget(8.0, 1e-4)), actor="ann", now=parts.clock.now())
    parts.store.ledger.set_cap(BudgetCap(Budget(2.0, 1e-4)))
    parts.work()
    assert parts.store.ledger.book().cap == BudgetCap(Budget(2.0, 1e-4))
    assert "cap refused" in [row.entry.action for row in parts.store.audit.rows()]
    assert why_not_lower(BudgetCap(Budget(2.0, 1e-4)), BudgetCap(Budget(2.0, 1e-4), planned=True))


def test_the_audit_log_is_read_checked_and_taken_away(fresh):
    auditor, task = Person(fresh, "auditor"), fresh.parts.task(**SETTINGS, name="logged")
    fresh.parts.store.audit.append("=cmd", "tried", 5, {"task": task.task})
    page = auditor.get("/console/audit").text
    assert "The chain is whole." in page
    assert fresh.parts.store.audit.rows()[-1].hash in page
    for form in ("json", "csv"):
        answer = auditor.get(f"/console/audit/audit.{form}")
        taken = answer.json()["rows"] if form == "json" else list(csv.DictReader(io.StringIO(answer.text)))
        assert [entry["hash"] for entry in taken] == [row.hash for row in fresh.parts.store.audit.rows()]
        assert (taken[-1]["actor"], taken[-1]["action"]) == ("auditor", "audit log exported")
    assert "'=cmd" in [line["actor"] for line in taken], "no formula for a spreadsheet"
    for i in range(150):
        fresh.parts.store.audit.append("ann", f"step {i}", 6, {})
    assert "step 149" in auditor.get("/console/audit").text
    older = auditor.get("/console/audit", {"from": "100"}).text
    assert "step 149" not in older
    assert "step 49" in older
    fresh.parts.store.database.execute("DROP TRIGGER audit_no_update")
    fresh.parts.store.database.execute("UPDATE audit SET body = replace(body, 'tried', 'did')")
    assert "The log is not what was written" in auditor.get("/console/audit").text


def test_users_are_listed_with_their_last_actions(fresh):
    """Also those who are not allowed any more, and accounts of the machine; never a token or its hash."""
    store, clock, auditor = fresh.parts.store, fresh.parts.clock, Person(fresh, "auditor")
    first = clock.now()
    token = store.tokens.add_admin("eve", "reviewer", actor="os:root", now=first)
    clock.time += 3600
    store.tokens.revoke_admin("eve", actor="os:root", now=clock.now())
    store.audit.append(auditor.role, "looked", clock.now(), {})
    store.tokens.add_admin("zoe", "viewer", actor="os:root", now=clock.now(), expires=clock.now())
    users = {user.name: user for user in read_users(store, clock.now())}
    assert list(users)[-2:] == ["eve", "zoe"]
    assert (users["eve"].created, users["eve"].credential, users["eve"].acted) == (first, "revoked", None)
    assert (users["zoe"].expires, users["zoe"].credential, users["zoe"].used) == (clock.now(), "expired", None)
    assert (users["os:root"].created, users["os:root"].acted) == (None, clock.now())
    mine = users["auditor"]
    assert (mine.signed_in, mine.acted, mine.used) == (first, clock.now(), first)
    page = auditor.get("/console/users").text
    assert page.count("<tr") == len(users) + 1
    assert "revoked</td>" in page
    assert read_users(store, clock.now())[0].used == clock.now(), "reading is a use"
    assert token not in page
    assert hashlib.sha256(token.encode()).hexdigest() not in page


def test_empty_states_and_unknown_things(fresh):
    person = Person(fresh, "viewer")
    assert "No task yet." in person.get("/console").text
    assert "Nothing was charged yet." in person.get("/console/budget").text
    assert "Nothing was refused." in person.get("/console/refusals").text
    assert "Nothing waits for a review." in person.get("/console/review").text
    assert "No task yet." in person.get("/console/search").text
    task = fresh.parts.task(**SETTINGS, name="alone")
    assert person.get("/console/trends").headers["location"] == f"/console/tasks/{task.task}/trends"
    assert "No round is published yet." in person.get(f"/console/tasks/{task.task}/trends").text
    assert "No pack yet." in person.get(f"/console/tasks/{task.task}/search").text
    for path in ("/console/tasks/x", f"/console/tasks/{task.task}/rounds/9", "/console/tasks/x/rounds/y", "/trends/x"):
        answer = person.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert person.get("/console/static/../render.py").status_code == 404
    assert person.get("/console/static/nothing.css").status_code == 404
    wrong = person.get("/console/planner", params={"users": "0"})
    assert (wrong.status_code, "expected 5000 to" in wrong.text) == (400, True)


@pytest.mark.parametrize(
    ("role", "there"), [("admin", (303, 200)), ("publisher", (404, 200)), ("collector", (404, 404))]
)
def test_each_role_has_the_pages_that_it_should(tmp_path, role, there):
    imprint = Imprint("Office of <Searches>", "desk@office.example", "CC BY 4.0")
    with http_service(str(tmp_path / "service.db"), tmp_path, role=role, imprint=imprint) as http:
        task = http.parts.task(**SETTINGS, name='roles"><i>')
        http.parts.contribute(http.parts.open(task), crowd(seed=1))
        round_ = http.parts.head_list(task)
        http.parts.count(round_, http.parts.messages(round_, people(100, seed=2)))
        http.parts.clock.time += 2 * 86_400
        http.parts.finish(task)
        public = http.client.get(f"/trends/{task.task}")
        assert (http.client.get("/console", follow_redirects=False).status_code, public.status_code) == there
        front = http.client.get("/", follow_redirects=False)
        assert (front.status_code, front.headers.get("location")) == (
            (303, "/console") if role == "admin" else (404, None)
        )
        says = ("change the odds by a factor of 54.6 at most", "95 % interval", "10⁻⁴", "How to cite this release")
        says += (
            "Office of &lt;Searches&gt;",
            'href="mailto:desk@office.example"',
            "CC BY 4.0",
            "<dd>15 to 17 Jan 2027",
        )
        assert [words for words in says if (words in public.text) != (role != "collector")] == []
        links = re.findall(r'href="(/v1/artifacts/[^"]+)"', public.text)
        assert bool(links) == (role == "publisher")
        assert all(http.client.get(link).status_code == 200 for link in links)
        assert ("/v1/tasks/" in public.text) == (role == "publisher")
        embed = http.client.get(f"/trends/{task.task}/embed")
        assert embed.status_code == there[1]
        if role != "collector":
            check_embedded(task, public.text, embed)


def check_embedded(task, page: str, embed) -> None:
    """What other sites may frame can do nothing, and the snippet that they copy cannot be broken out of."""
    assert "x-frame-options" not in embed.headers
    policy = embed.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert not {"script-src", "frame-ancestors", "unsafe"} & set(re.split("[ ;]+", policy))
    assert not re.search("<(script|form|input|button)", embed.text)
    assert "set-cookie" not in embed.headers
    says = (">weather<", "95 % interval", "Office of &lt;Searches&gt;", "15 to 17 Jan 2027")
    assert [words for words in says if words not in embed.text] == []
    snippet = html.unescape(re.search(r"<textarea[^>]*data-embed>(.*?)</textarea>", page)[1])
    assert snippet.count('"') == 10
    assert html.unescape(re.search('title="([^"]*)"', snippet)[1]) == task.name
    assert f'src="/trends/{task.task}/embed"' in snippet


def test_only_web_and_mail_addresses_become_links():
    assert link_of("https://office.example/terms") == "https://office.example/terms"
    assert link_of("desk@office.example") == "mailto:desk@office.example"
    for words in ("javascript:alert(1)", "CC BY 4.0", "x https://a.example", "desk@office", "data:text/html,x", ""):
        assert link_of(words) == ""


def test_alerts(fresh):
    operator = Person(fresh, "operator")
    parts = fresh.parts
    assert "All is well" in operator.get("/console").text
    parts.store.ledger.set_cap(BudgetCap(lifetime=Budget(4.5, 1e-2)))
    task = parts.task(**SETTINGS, name="alarming")
    parts.contribute(parts.open(task), crowd(seed=1))
    round_ = parts.head_list(task)
    parts.count(round_, parts.messages(round_, people(100, seed=2)))
    parts.store.reports.refuse({(round_.key, "malformed"): 30})
    parts.store.database.execute("UPDATE counts SET n = n + 1 WHERE round_key = ?", (round_.key,))
    late = parts.task(**SETTINGS, name="late", population="others")
    parts.open(late)
    parts.clock.time += 6 * 86_400 + 3600
    operator.sign_in()
    text = operator.get("/console").text
    for alert in (
        "Shredding is overdue",
        "Conservation check failed",
        "Many messages are refused",
        "Signature near its end",
        "Ledger near its cap",
    ):
        assert alert in text, alert
    parts.clock.time += 2 * 86_400
    operator.sign_in()
    assert "Signature has expired" in operator.get("/console").text


def test_a_few_refusals_among_many_contributions_are_no_alarm(fresh):
    operator, parts = Person(fresh, "operator"), fresh.parts
    task = parts.task(**SETTINGS, name="busy")
    round_ = parts.open(task)
    parts.contribute(round_, people(400, seed=1))
    parts.store.reports.refuse({(round_.key, "bad-credential"): 20})
    assert "Many messages are refused" not in operator.get("/console").text
    assert "4.76 % of all" in operator.get(f"/console/tasks/{task.task}/rounds/1").text
    parts.store.reports.refuse({(round_.key, "bad-credential"): 20})
    assert "Many messages are refused" in operator.get("/console").text


def test_vendored_files_are_the_ones_on_record():
    files = static_files()
    record = json.loads(files["vendor/VENDORED.json"][0])
    listed = {name: digest for package in record.values() for name, digest in package["files"].items()}
    there = {name.removeprefix("vendor/") for name in files if name.startswith("vendor/")} - {"VENDORED.json"}
    assert set(listed) == there
    for name, digest in listed.items():
        assert hashlib.sha256(files[f"vendor/{name}"][0]).hexdigest() == digest
    committed = {
        "htmx.min.js": "e484d9171a9db30a39c8f16e3d709d4137f3211c659f8e6125816635033d593f",
        "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
        "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    }
    assert committed.items() <= listed.items()
    assert all(f"{name.split('.')[0]}.LICENSE" in there for name in committed)


def test_no_template_asks_another_host_or_has_inline_script_or_style():
    folder = Path(__file__).parents[3] / "src/searchblend/service/console"
    for path in [*folder.glob("templates/*.html"), *folder.glob("static/*.css"), *folder.glob("static/*.js")]:
        text = path.read_text()
        assert not re.search(r"(src|href|url)\s*[=(]\s*[\"']?(https?:)?//", text), path.name
        assert " style=" not in text, path.name
        assert not re.search(r"\son\w+=", text), path.name
        assert "|safe" not in text.replace(" ", ""), path.name
