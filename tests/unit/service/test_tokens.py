"""Single-use tokens: a blind-signed one pays for one report of one round, and for nothing else."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from databases import DATABASES, fresh_database
from issuer_parts import running_issuer, token_for
from openapi_answers import CheckedClient
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.service.api.app import build_app
from searchblend.service.checkup import check_up, gauges
from searchblend.service.round_model import RoundNumbers
from searchblend.service.services import Services
from searchblend.service.settings import ServeSettings
from searchblend.service.telemetry import Logbook
from searchblend.service.workers.worker import POSTPONED_SECONDS
from searchblend.store.states import State
from searchblend.wire.blind_rsa import blind_sign
from searchblend.wire.manifest import TokenPart
from searchblend.wire.tokens import (
    TOKEN_BYTES,
    TokenKey,
    TokenRequest,
    TokenVerifier,
    challenge_digest,
    read_request,
    token_header,
)
from service_http import REPORT, REPORTS, http_service
from service_parts import ManualClock, Service, crowd, people
from service_process import free_port

ISSUER = "https://issuer.example"
VECTORS = json.loads((Path(__file__).parents[3] / "vectors/v1/token.json").read_text(encoding="utf-8"))
PRIVATE = load_pem_private_key(
    VECTORS["cases"][0]["private_key"].encode(), None, unsafe_skip_rsa_key_validation=True
).private_numbers()
KEY = TokenKey(PRIVATE.public_numbers)
TERMS = TokenPart(ISSUER, "/token-request", KEY.text)
TASK = bytes(range(16))


def made_token(issuer="issuer.example", task=TASK, number=7):
    request = TokenRequest.make(KEY, challenge_digest(issuer, task, number))
    return request.token(blind_sign(read_request(request.request)[1], PRIVATE), KEY)


def test_a_blind_signed_token_is_accepted():
    token = made_token()
    verifier, header = TokenVerifier(TERMS, TASK, 7), token_header(token)
    assert verifier.verify(token) == verifier.nonce(header) == token[2:34]
    assert verifier.nonce(header.replace("=", "").replace("token", "token=", 1)) == token[2:34]


def test_any_other_token_is_refused():
    token, verifier = made_token(), TokenVerifier(TERMS, TASK, 7)
    for wrong in (token[:-1], token + b"\0", b"\0\1" + token[2:], b""):
        with pytest.raises(MessageError, match="expected 354 bytes"):
            verifier.verify(wrong)
    for position in (2, 40, 70, 98, 353):
        changed = bytearray(token)
        changed[position] ^= 1
        with pytest.raises(MessageError):
            verifier.verify(bytes(changed))
    for other in (made_token(number=8), made_token(task=b"x" * 16), made_token(issuer="other.example")):
        with pytest.raises(MessageError, match="another round, or by another issuer"):
            verifier.verify(other)
    other_key = TokenPart(ISSUER, "/", TokenKey(rsa.RSAPublicNumbers(65537, PRIVATE.public_numbers.n ^ 2)).text)
    with pytest.raises(MessageError, match="another key"):
        TokenVerifier(other_key, TASK, 7).verify(token)
    header = token_header(token)
    for text in (
        "",
        "Bearer x",
        "PrivateToken token=",
        "PrivateToken token=!!",
        header + "x",
        'PrivateToken token="A"',
    ):
        with pytest.raises(MessageError):
            verifier.nonce(text)


def test_keys_of_another_kind_are_refused():
    content = KEY.content
    for wrong in (content[:-1], content + b"\0", content[:-1] + b"\x03", content[:40] + b"\0" + content[41:], b""):
        with pytest.raises(MessageError, match="expected an RSASSA-PSS key of 2048 bits"):
            TokenKey.read(wrong)
    with pytest.raises(MessageError, match="expected an RSASSA-PSS key"):
        TokenKey.read(content[:81] + bytes(256) + content[-5:])


@pytest.fixture(params=DATABASES)
def paying(request, tmp_path):
    """A service with a round that asks for tokens, its issuer, and an account there."""
    clock = ManualClock()
    with (
        running_issuer(tmp_path / "issuer", clock) as issuer,
        http_service(fresh_database(request.param, tmp_path), tmp_path, clock=clock) as http,
    ):
        round_ = http.client_round(token_issuer=issuer.address)
        ann, terms = issuer.account("ann"), issuer.terms()
        yield http, round_, lambda: token_for(ann, terms, round_)


def test_a_token_pays_for_one_report(paying, tmp_path):
    http, round_, token = paying
    first, second = http.parts.messages(round_, people(2, seed=2))
    path, paid = f"/v1/tasks/{round_.task}/rounds/{round_.number}/reports", token()

    def send(message, token=None, client=http.client):
        extra = {"authorization": token_header(token)} if token else {}
        return client.post(path, content=message, headers={**REPORT, **extra})

    assert send(first).json()["detail"] == "token: expected Authorization: PrivateToken token=…"
    assert send(first, paid[:-1] + bytes([paid[-1] ^ 1])).json()["detail"] == "token: wrong signature"
    other_round = made_token(task=bytes.fromhex(round_.task), number=round_.number)
    assert send(first, other_round).status_code == 401
    assert send(first, paid).status_code == 200
    assert send(first, paid).status_code == 200
    assert send(second, paid).json()["type"].endswith("spent-token")
    # Another collector on the same database was told nothing of tokens, and asks for them.
    another = Services(http.services.reader._where, clock=http.parts.clock, logbook=Logbook(io.StringIO()))
    with CheckedClient(build_app(another, "collector"), raise_server_exceptions=False) as client:
        assert send(second, client=client).status_code == 401
        assert send(second, paid, client).status_code == 409
        assert send(second, token(), client).status_code == 200
    assert http.parts.store.reports.n_seen(round_.key) == 2
    assert RoundNumbers.read(http.parts.store, round_).conservation.holds
    http.client.__exit__(None, None, None)
    assert http.parts.store.reports.refusals(round_.key) == {"bad-credential": 4, "spent-token": 2}


def test_each_report_of_a_batch_has_its_own_token(paying):
    http, round_, token = paying
    reports = http.parts.messages(round_, people(6, seed=3))
    tokens = [token() for _ in range(4)]
    path = f"/v1/tasks/{round_.task}/rounds/{round_.number}/report-batches"

    def send(*pairs):
        return http.client.post(path, content=b"".join(report + paid for report, paid in pairs), headers=REPORTS)

    forged = tokens[3][:-1] + bytes([tokens[3][-1] ^ 1])
    broken = reports[4][:-1] + bytes([reports[4][-1] ^ 1])
    answer = send(
        (reports[0], tokens[0]),
        (reports[1], tokens[0]),
        (reports[2], tokens[1]),
        (reports[3], forged),
        (broken, tokens[2]),
        (reports[0], tokens[0]),
    )
    refused = {"1": "spent-token", "3": "bad-credential", "4": "id-mismatch"}
    assert answer.json() == {"accepted": 3, "refused": refused}
    assert send((reports[5], tokens[1]), (reports[4], tokens[2])).json() == {
        "accepted": 1,
        "refused": {"0": "spent-token"},
    }
    assert send((reports[0], tokens[0]), (reports[2], tokens[1])).json() == {"accepted": 2, "refused": {}}
    alone = http.reports(round_, reports[3] + reports[4])
    assert (alone.status_code, alone.json()["type"]) == (400, "urn:searchblend:problem:malformed")
    assert alone.json()["detail"].endswith("and its token")
    assert http.parts.store.reports.n_seen(round_.key) == 3
    assert RoundNumbers.read(http.parts.store, round_).conservation.holds
    http.client.__exit__(None, None, None)
    counted = {"bad-credential": 1, "id-mismatch": 1, "malformed": 1, "spent-token": 2}
    assert http.parts.store.reports.refusals(round_.key) == counted


def test_a_round_waits_for_its_issuer(tmp_path):
    port = free_port()
    parts = Service.start(str(tmp_path / "service.db"), tmp_path)
    task = parts.task(token_issuer=f"http://127.0.0.1:{port}")
    parts.contribute(parts.open(task), crowd(seed=1))
    parts.lifecycle.close_optin(parts.current(task), actor="ann")
    parts.work()
    parts.lifecycle.review(parts.current(task), actor="rob")
    for _ in range(12):
        parts.clock.time += POSTPONED_SECONDS
        parts.work()
    assert parts.current(task).state is State.REVIEWED
    assert "job postponed" in parts.log.getvalue()
    settings = ServeSettings(data_dir=str(tmp_path))
    [waiting] = [row for row in check_up(parts.store, parts.clock, settings) if row.check.startswith("opening")]
    assert (waiting.fine, waiting.detail) == (
        False,
        "waits: the issuer of tokens does not answer: ConnectionRefusedError",
    )
    assert gauges(parts.store, parts.clock)["rounds_waiting_for_issuer"] == 1
    with running_issuer(tmp_path / "issuer", parts.clock, port=port) as issuer:
        parts.clock.time += POSTPONED_SECONDS
        parts.work()
        manifest = parts.publisher._manifest(task, 1, parts.clock.now())
        assert manifest.client is not None
        assert manifest.client.tokens == issuer.terms()
        assert manifest.min_device_version == "0.2"
    assert parts.current(task).state is State.CLIENT_OPEN
    assert gauges(parts.store, parts.clock)["rounds_waiting_for_issuer"] == 0
    assert not [row for row in check_up(parts.store, parts.clock, settings) if row.check.startswith("opening")]
    parts.store.close()


@pytest.mark.parametrize(
    "issuer", ["issuer.example", "http://issuer.example", "https://i.example/x", "https://i.example:99999"]
)
def test_an_issuer_that_no_device_would_ask_is_refused(issuer, tmp_path):
    parts = Service.start(str(tmp_path / "service.db"), tmp_path)
    with pytest.raises(InvalidParameter, match="token_issuer"):
        parts.task(token_issuer=issuer)
    parts.store.close()


def test_the_token_has_the_length_that_batches_count_with():
    assert len(made_token()) == TOKEN_BYTES
