"""Sign-in at a real OpenID provider, and what an attacker can try between the browser, the provider and the console."""

from __future__ import annotations

import base64
import json
import re
import time
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from console_person import Person
from oidc_login import CONSOLE, oidc_issuer
from searchblend.core.errors import InvalidParameter
from searchblend.service.clock import SystemClock
from searchblend.service.console.sign_in import COOKIE, SSO_COOKIE
from searchblend.service.console.single_sign_on import SingleSignOn, roles_of
from searchblend.service.settings import ServeSettings
from searchblend.store.errors import StoreError
from searchblend.store.tokens import Admin
from service_http import http_service

SSO = "/console/sign-in/sso"
ROLES = "search-reviewers=reviewer, search-operators=operator"


@pytest.fixture(scope="module")
def issuer():
    with oidc_issuer() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def settings(issuer, tmp_path_factory):
    secret = tmp_path_factory.mktemp("oidc") / "secret"
    secret.write_text("console-secret\n")
    secret.chmod(0o600)
    return ServeSettings(
        oidc_issuer=issuer.address,
        oidc_client="console",
        oidc_secret_file=str(secret),
        oidc_roles=ROLES,
        console_address=CONSOLE,
    )


@pytest.fixture(scope="module")
def service(settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sso")
    with http_service(str(folder / "service.db"), folder, clock=SystemClock(), sso=settings) as http:
        http.client.base_url = CONSOLE
        yield http


@pytest.fixture
def http(service, issuer):
    service.client.cookies.clear()
    yield service
    issuer.swap("")


def begin(http, onward="/console/users"):
    """The address of the authorization request; the cookie stays with the client."""
    answer = http.client.get(f"{SSO}?next={quote(onward, safe='')}", follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def finish(http, answer):
    return http.client.get(f"{SSO}/callback", params=answer, follow_redirects=False)


def nonce_of(where):
    return parse_qs(urlsplit(where).query)["nonce"][0]


def refused(http, answer):
    assert (answer.status_code, COOKIE in http.client.cookies) == (403, False), answer.text
    return re.search(r"<h1>The sign-in failed.*", answer.text, re.DOTALL)[0].lower()


def test_a_person_signs_in_with_the_role_of_their_group(http, issuer):
    assert SSO in http.client.get("/console/sign-in").text
    where = begin(http)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(where).query).items()}
    assert (asked["code_challenge_method"], asked["response_type"], asked["client_id"]) == ("S256", "code", "console")
    assert {"state", "nonce", "code_challenge"} <= set(asked)
    answer = finish(http, issuer.sign_in(where, "olga"))
    assert 'content="0; url=/console/users"' in answer.text
    assert "samesite=strict" in answer.headers["set-cookie"].lower()
    users = http.client.get("/console/users")
    assert users.status_code == 200
    assert "sso:olga" in users.text
    assert "single sign-on" in users.text
    rows = [json.loads(row.body) for row in http.parts.store.audit.rows()]
    assert [row["detail"] for row in rows if row["actor"] == "sso:olga"] == [{"role": "operator"}]


def test_no_role_no_entry(http, issuer):
    assert "no role here" in refused(http, finish(http, issuer.sign_in(begin(http), "eve")))


def test_another_account_with_the_same_name_is_refused(http, issuer):
    """The provider lets mallory call themselves olga, whose sign-in came first."""
    finish(http, issuer.sign_in(begin(http), "olga"))
    http.client.cookies.clear()
    answer = finish(http, issuer.sign_in(begin(http), "mallory"))
    assert answer.status_code == 400
    assert "Another account of the issuer has this name" in answer.text
    assert COOKIE not in http.client.cookies


@pytest.mark.parametrize(
    "onward",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/console\\..",
        "/console/\r\nx: y",
        "/consolex",
        "",
    ],
)
def test_an_open_redirect_ends_at_the_console(http, issuer, onward):
    answer = finish(http, issuer.sign_in(begin(http, onward), "rob"))
    assert 'content="0; url=/console"' in answer.text


def test_a_state_is_good_once_even_with_its_cookie(http, issuer):
    where = begin(http)
    cookie = http.client.cookies[SSO_COOKIE]
    answer = issuer.sign_in(where, "rob")
    assert finish(http, answer).status_code == 200
    http.client.cookies.clear()
    http.client.cookies.set(SSO_COOKIE, cookie)
    assert "not begun in this browser" in refused(http, finish(http, answer))


def test_a_sign_in_of_another_browser_is_refused(http, issuer):
    """An attacker sends a victim the end of a sign-in of their own: the victim would act in the attacker's name."""
    answer = issuer.sign_in(begin(http), "rob")
    http.client.cookies.clear()
    assert "not begun in this browser" in refused(http, finish(http, answer))
    begin(http)
    assert "belongs to another one" in refused(http, finish(http, answer))


def test_the_answer_of_another_issuer_is_refused(http, issuer):
    answer = issuer.sign_in(begin(http), "rob")
    assert answer["iss"] == issuer.address
    assert "another issuer" in refused(http, finish(http, {**answer, "iss": "https://evil.example"}))


def test_a_code_needs_the_verifier_it_was_asked_with(http, issuer, settings):
    """A code that an attacker has seen, brought to the console in a sign-in of the attacker's own."""
    stolen = issuer.sign_in(begin(http), "rob")["code"]
    http.client.cookies.clear()
    own = parse_qs(urlsplit(begin(http)).query)
    refused(http, finish(http, {"code": stolen, "state": own["state"][0]}))


def test_a_token_for_another_client_is_refused(http, issuer):
    where = begin(http)
    issuer.swap(issuer.token_of_another_client("rob", nonce_of(where)))
    assert "invalidclaimerror" in refused(http, finish(http, issuer.sign_in(where, "rob")))


def test_a_token_of_an_earlier_sign_in_is_refused(http, issuer):
    tokens = []
    sso = http.services.sso
    verified = sso._verified

    async def keep(client, known, token, nonce):
        tokens.append(token["id_token"])
        return await verified(client, known, token, nonce)

    sso._verified = keep
    try:
        finish(http, issuer.sign_in(begin(http), "rob"))
    finally:
        del sso._verified
    http.client.cookies.clear()
    issuer.swap(tokens[0])
    assert "invalidclaimerror" in refused(http, finish(http, issuer.sign_in(begin(http), "rob")))


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_a_token_that_the_issuer_did_not_sign_is_refused(http, issuer, algorithm):
    where = begin(http)
    now = int(time.time())
    claims = {
        "iss": issuer.address,
        "aud": "console",
        "sub": "rob",
        "iat": now,
        "exp": now + 60,
        "nonce": nonce_of(where),
    }
    parts = [json.dumps(part).encode() for part in ({"alg": algorithm}, {**claims, "groups": "search-reviewers"})]
    issuer.swap(".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), "AAAA"]))
    refused(http, finish(http, issuer.sign_in(where, "rob")))


def test_an_expired_token_is_refused(http, issuer, settings, monkeypatch):
    """Genuine in all else: the console's clock is two hours on, and the token holds for one."""
    monkeypatch.setattr(http.services, "sso", SingleSignOn(settings, lambda: int(time.time()) + 7200))
    assert "expiredtokenerror" in refused(http, finish(http, issuer.sign_in(begin(http), "rob")))


def test_failures_are_in_the_audit_log_and_name_no_one(http):
    refused(http, finish(http, {"code": "x", "state": "canary"}))
    http.services.failed_sign_ins._failed.clear()
    assert any("single sign-on" in row.body for row in http.parts.store.audit.rows())
    assert "canary" not in str(http.parts.store.audit.rows()) + http.parts.log.getvalue()


def test_whoever_opened_a_round_does_not_review_it_under_their_other_name(http):
    from searchblend.store.tokens import person_of

    assert person_of("sso:ann") == person_of("os:ann") == person_of("ann") != person_of("sso:rob")


def test_sessions_of_a_person_can_be_ended_at_once(http, issuer):
    finish(http, issuer.sign_in(begin(http), "rob"))
    assert http.client.get("/console/blocklist").status_code == 200
    store, now = http.parts.store, http.parts.clock.now()
    assert store.sessions.end_all("sso:rob", actor="os:root", now=now)
    assert not store.sessions.end_all("sso:none", actor="os:root", now=now)
    assert http.client.get("/console/blocklist", follow_redirects=False).status_code == 303


def test_an_account_keeps_its_name(http):
    store, now = http.parts.store, http.parts.clock.now()
    store.sessions.open_sso("i", "s", Admin("sso:one", "viewer"), now=now, seconds=60)
    with pytest.raises(StoreError, match="another name"):
        store.sessions.open_sso("i", "s", Admin("sso:two", "viewer"), now=now, seconds=60)


def test_without_an_issuer_there_is_no_such_page(tmp_path):
    with http_service(str(tmp_path / "service.db"), tmp_path) as plain:
        person = Person(plain, "viewer")
        assert SSO not in person.client.get("/console/sign-in").text
        assert person.client.get(SSO, follow_redirects=False).status_code == 404


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"oidc_issuer": "http://login.example"}, "oidc_issuer"),
        ({"console_address": "http://console.example"}, "console_address"),
        ({"console_address": ""}, "console_address"),
        ({"oidc_client": ""}, "oidc_client"),
        ({"oidc_roles": ""}, "oidc_roles"),
        ({"oidc_roles": "staff=owner"}, "oidc_roles"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes, field):
    given = {
        "oidc_issuer": "https://login.example",
        "oidc_client": "c",
        "oidc_roles": ROLES,
        "console_address": CONSOLE,
    }
    with pytest.raises(InvalidParameter) as raised:
        SingleSignOn(ServeSettings(**{**given, **changes}), lambda: 0)
    assert raised.value.field == field


def test_the_first_group_that_fits_decides():
    assert roles_of("a=b=viewer, x=auditor") == [("a=b", "viewer"), ("x", "auditor")]
