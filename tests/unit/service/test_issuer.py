"""The issuer: who gets how many tokens, with which keys, and what it never gets to see."""

from __future__ import annotations

import json
import stat
import urllib.request

import pytest

from issuer_parts import ask, running_issuer, token_request
from searchblend.core.errors import InputError, InvalidParameter, MessageError, UsageError
from searchblend.service.issuer.books import WEEK, BooksError, Issuance, IssuerBooks
from searchblend.service.issuer.keys import OVERLAP, IssuerKeys
from searchblend.service.issuer.serve import IssuerSettings
from searchblend.service.workers.token_terms import fetch_terms
from searchblend.service.workers.worker import Postponed
from searchblend.wire.tokens import DIRECTORY_MEDIA_TYPE, DIRECTORY_PATH, TokenAccount, TokenKey, terms_of_directory
from service_parts import ManualClock
from service_process import free_port

TASK = bytes(range(16)).hex()
NOW = 1_800_000_000


def test_an_issuer_over_http(tmp_path):
    clock = ManualClock(NOW - NOW % WEEK)
    with running_issuer(tmp_path, clock, per_week=2) as issuer:
        ann, ben = issuer.account("ann"), issuer.account("ben")
        terms = issuer.terms()
        key = TokenKey.of_text(terms.key)
        first, second, third = (token_request(terms, TASK, 1) for _ in range(3))

        with urllib.request.urlopen(issuer.address + DIRECTORY_PATH, timeout=240) as answer:
            assert answer.headers["content-type"] == DIRECTORY_MEDIA_TYPE
            document = json.load(answer)
        assert document["issuer-request-uri"] == "/token-request"
        assert [(entry["token-type"], entry["not-before"]) for entry in document["token-keys"]] == [(2, clock.now())]

        status, response = ask(ann, first.request)
        token = first.token(response, key)
        assert (status, len(token), key.is_signed(token[98:], token[:98])) == (200, 354, True)
        assert ask(ann, first.request) == (200, response)
        assert issuer.accounts()["ann"].issued == 1
        assert ask(ann, second.request)[0] == 200
        status, problem = ask(ann, third.request)
        assert (status, json.loads(problem)["type"]) == (429, "urn:searchblend:problem:token-limit")
        assert (ask(ann, first.request), ask(ben, third.request)[0]) == ((200, response), 200)
        clock.time += WEEK
        assert (ask(ann, third.request)[0], issuer.accounts()["ann"].issued) == (200, 1)

        wrong_key = token_request(terms, TASK, 1).request
        wrong_key = wrong_key[:2] + bytes([wrong_key[2] ^ 1]) + wrong_key[3:]
        too_large = wrong_key[:2] + key.key_id[-1:] + b"\xff" * 256
        for message in (b"", first.request[:-1], b"\0\1" + first.request[2:], wrong_key, too_large):
            assert ask(ann, message)[0] == 422
        assert ask(ann, first.request + b"\0")[0] == 413
        assert ask(ann, first.request, media_type="text/plain")[0] == 415
        assert ask(TokenAccount(issuer.address, "sbi_" + "x" * 43), first.request)[0] == 401
        assert issuer.accounts()["ann"].issued == 1
        for secret in (ann.credential, ben.credential, "ann"):
            assert secret not in issuer.log.getvalue()
    content = b"".join(path.read_bytes() for path in tmp_path.glob("issuer.db*"))
    assert ann.credential.encode() not in content
    assert token[2:34] not in content


def test_keys_rotate_and_both_sign_for_the_stated_time(tmp_path):
    keys = IssuerKeys(tmp_path / "keys")
    keys.rotate_if_due(NOW, every=90)
    keys.rotate_if_due(NOW + 89, every=90)
    [old] = keys.in_use(NOW + 89)
    keys.rotate_if_due(NOW + 90, every=90)
    new, still = keys.in_use(NOW + 90)
    assert (new.start, still) == (NOW + 90, old)
    assert terms_of_directory("https://i.example", keys.directory(NOW + 90, "/t"), NOW + 90).key == new.public.text
    assert terms_of_directory("https://i.example", keys.directory(NOW + 90, "/t"), NOW + 89).key == old.public.text
    request = token_request(terms_of_directory("https://i.example", keys.directory(NOW, "/t"), NOW), TASK, 1)
    last = NOW + 90 + OVERLAP - 1
    key, blinded = keys.of_request(request.request, last)
    assert request.token(key.sign(blinded), old.public)[:2] == b"\0\2"
    assert "private" not in repr(key)
    with pytest.raises(MessageError, match="not in use"):
        keys.of_request(request.request, last + 1)
    assert len(list((tmp_path / "keys").iterdir())) == 2
    with pytest.raises(UsageError, match="this second"):
        keys.rotate(NOW + 90)
    newest = keys.rotate(last + 1)
    assert [key.start for key in IssuerKeys(tmp_path / "keys").in_use(last + 1)] == [newest.start, new.start]
    files = list((tmp_path / "keys").iterdir())
    assert sorted(path.name for path in files) == [f"token-{NOW + 90}.pem", f"token-{last + 1}.pem"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    keys.rotate(last + 2, at_once=True)
    assert [path.name for path in (tmp_path / "keys").iterdir()] == [f"token-{last + 2}.pem"]


def test_a_key_file_that_is_none_is_named(tmp_path):
    keys = IssuerKeys(tmp_path)
    path = tmp_path / "token-1.pem"
    path.touch(0o600)
    path.write_text("nothing")
    with pytest.raises(InputError, match=r"token-1\.pem: expected a private key in PEM"):
        keys.in_use(NOW)
    path.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        keys.in_use(NOW)


def test_the_books(tmp_path):
    books = IssuerBooks(tmp_path)
    [secret] = books.add(["ann"], now=NOW)
    with pytest.raises(UsageError, match="exists already"):
        books.add(["ben", "ann"], now=NOW)
    for name in ("", " x", "a\nb", "x" * 101):
        with pytest.raises(InvalidParameter, match="name"):
            books.add([name], now=NOW)
    assert [account.name for account in books.accounts(now=NOW)] == ["ann"]
    assert books.take(secret, b"1", per_week=1, now=NOW) is Issuance.GRANTED
    assert books.take(secret, b"2", per_week=1, now=NOW) is Issuance.LIMIT
    assert books.take("sbi_other", b"1", per_week=1, now=NOW) is Issuance.UNKNOWN
    assert (books.end("ann", now=NOW), books.end("ann", now=NOW), books.end("eve", now=NOW)) == (True, False, False)
    assert books.take(secret, b"1", per_week=1, now=NOW) is Issuance.UNKNOWN
    books.close()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "issuer.db").write_bytes(b"no database" * 1000)
    with pytest.raises(BooksError, match=r"issuer\.db"):
        IssuerBooks(tmp_path / "other")


def test_a_week_cannot_be_begun_anew_by_a_restart(tmp_path):
    books = IssuerBooks(tmp_path)
    [secret] = books.add(["ann"], now=NOW)
    assert books.take(secret, b"1", per_week=1, now=NOW) is Issuance.GRANTED
    books.close()
    again = IssuerBooks(tmp_path)
    assert again.take(secret, b"2", per_week=1, now=NOW) is Issuance.LIMIT
    assert again.take(secret, b"1", per_week=1, now=NOW) is Issuance.GRANTED
    again.close()


@pytest.mark.parametrize(
    "wrong",
    [{"port": 65_536}, {"per_week": 0}, {"rotate_days": 0}, {"tls_key": "key.pem"}, {"peer_seconds": 0}],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        IssuerSettings(**wrong)


KEY = {"token-type": 2, "token-key": "x", "not-before": 0}


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ([], "expected an object"),
        ({"token-keys": 1}, "expected an object"),
        ({"issuer-request-uri": "https://other.example/t", "token-keys": [KEY]}, "on the issuer's own host"),
        ({"issuer-request-uri": "/t?u=1", "token-keys": [KEY]}, "on the issuer's own host"),
        ({"issuer-request-uri": "/t", "token-keys": []}, "expected a key of token type 2"),
        ({"issuer-request-uri": "/t", "token-keys": [{**KEY, "not-before": NOW + 1}]}, "that is in use"),
        ({"issuer-request-uri": "/t", "token-keys": [{**KEY, "token-type": 1}, 1]}, "expected a key of token type 2"),
        ({"issuer-request-uri": "/t", "token-keys": [KEY]}, "base64url"),
        ({"issuer-request-uri": "/t", "token-keys": [{**KEY, "token-key": "QUFB"}]}, "expected an RSASSA-PSS key"),
    ],
)
def test_a_directory_that_cannot_be_used_is_refused(document, why):
    with pytest.raises(MessageError, match=why):
        terms_of_directory("https://i.example", json.dumps(document).encode(), NOW)


def test_an_issuer_that_is_away_postpones(tmp_path):
    with pytest.raises(Postponed, match="does not answer"):
        fetch_terms(f"http://127.0.0.1:{free_port()}", NOW)


@pytest.mark.parametrize(
    "link", ["", "https://i.example", "http://i.example#" + "x" * 30, "https://i.example/p#" + "x" * 30]
)
def test_an_account_is_a_link(link):
    account = TokenAccount.of_link(" https://i.example/#sbi_" + "x" * 43 + "\n")
    assert (account.issuer, account.link) == ("https://i.example", "https://i.example#sbi_" + "x" * 43)
    assert "x" not in repr(account).replace("example", "")
    with pytest.raises(InvalidParameter, match="account"):
        TokenAccount.of_link(link)
