"""Tokens on a device: fetched before anything is drawn, kept, and spent with the report that they pay for."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict

import pytest

from device_parts import NOW, HandClock, RecordingService, device, nothing_was_sent, sync
from issuer_parts import running_issuer
from searchblend.core.errors import InvalidParameter, UsageError
from searchblend.device.agent import DeviceAgent
from searchblend.device.state import FILE, SCHEMA_VERSION, DeviceState
from searchblend.service.issuer.keys import IssuerKeys
from searchblend.wire.manifest import TokenPart
from searchblend.wire.tokens import TokenAccount, TokenVerifier


class Crash(Exception):
    """The process is gone at this point."""


class IssuerClock:
    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> int:
        return self.time


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with running_issuer(tmp_path_factory.mktemp("issuer"), IssuerClock(), per_week=3) as issuer:
        yield issuer


@pytest.fixture
def account(running, request):
    return running.account(request.node.name[:100])


@pytest.fixture
def issued(running, request):
    return lambda: running.accounts()[request.node.name[:100]].issued


@pytest.fixture
def paid_task(running, task):
    task.tokens = asdict(running.terms())
    return task


def kept_tokens(folder):
    with DeviceState(folder / FILE) as state:
        return state.execute("SELECT round, token FROM tokens")


def test_a_report_is_paid_for_and_a_retry_pays_nothing_more(tmp_path, service, paid_task, account, issued):
    service.serve(paid_task)
    service.answers = ["drop", 503, 503]  # what was dropped on an open connection is sent again at once
    with device(tmp_path, service, paid_task) as agent:
        agent.set_account(account.link)
        assert [sync(agent).status for _ in range(4)] == ["unanswered", "unanswered", "reported", "reported"]
        [sent] = agent.sent()
        exported = agent.export()
    assert len(service.reports()) == 4
    assert len(set(service.reports())) == 1
    headers = [headers["authorization"] for headers in service.headers]
    assert len(set(headers)) == 1
    verifier = TokenVerifier(TokenPart(**paid_task.tokens), bytes.fromhex(paid_task.task), 1)
    assert verifier.nonce(headers[0]).hex() in sent.token
    assert (issued(), kept_tokens(tmp_path)) == (1, [])
    assert exported.token_issuer == account.issuer
    assert account.credential not in str(exported)


@pytest.mark.parametrize("point", ["token: asked", "token: kept", "turn: debited", "turn: before commit"])
def test_a_crash_before_the_turn_costs_no_second_token(point, tmp_path, service, paid_task, account, issued):
    service.serve(paid_task)

    def crash(at):
        if at == point:
            raise Crash

    with device(tmp_path, service, paid_task, on_point=crash) as agent:
        agent.set_account(account.link)
        for _ in range(1 if point == "token: kept" else 2):
            with pytest.raises(Crash):
                sync(agent)
        assert nothing_was_sent(service, agent)
    assert len(kept_tokens(tmp_path)) == 1
    with device(tmp_path, service, paid_task) as agent:
        assert sync(agent).status == "reported"
    assert (issued(), kept_tokens(tmp_path)) == (1, [])


def test_a_crash_after_the_turn_sends_the_bytes_with_their_token(tmp_path, service, paid_task, account, issued):
    service.serve(paid_task)

    def crash(at):
        if at == "turn: committed":
            raise Crash

    with device(tmp_path, service, paid_task, on_point=crash) as agent:
        agent.set_account(account.link)
        with pytest.raises(Crash):
            sync(agent)
        [made] = agent.sent()
    with device(tmp_path, service, paid_task) as agent:
        assert sync(agent).status == "reported"
        [sent] = agent.sent()
    assert (sent.bytes, sent.token) == (made.bytes, made.token)
    assert issued() == 1


def test_without_a_token_nothing_is_made(tmp_path, running, service, paid_task, account):
    service.serve(paid_task)
    with device(tmp_path, service, paid_task) as agent:
        assert sync(agent).status == "no-account"
        agent.set_account("https://other.example#" + account.credential)
        assert sync(agent).status == "wrong-issuer"
        agent.set_account(TokenAccount(account.issuer, "sbi_" + "x" * 43).link)
        refused = sync(agent)
        assert (refused.status, "does not know the account" in refused.text) == ("no-token", True)
        assert nothing_was_sent(service, agent)


def test_more_than_the_rate_is_refused(tmp_path, service, paid_task, account, issued):
    with device(tmp_path, service, paid_task, clock=HandClock()) as agent:
        agent.set_account(account.link)
        for number in (1, 2, 3):
            service.serve(paid_task, number=number)
            assert sync(agent).status == "reported"
        service.serve(paid_task, number=4)
        refused = sync(agent)
        assert (refused.status, "of this week" in refused.text) == ("no-token", True)
        assert (issued(), len(agent.sent())) == (3, 3)


def test_a_key_that_the_issuer_does_not_have_is_refused(tmp_path, service, paid_task, account, issued):
    other = IssuerKeys(tmp_path / "other").rotate(NOW).public
    paid_task.tokens["key"] = other.text
    service.serve(paid_task)
    with device(tmp_path, service, paid_task) as agent:
        agent.set_account(account.link)
        refused = sync(agent)
        assert refused.status == "no-token"
        assert nothing_was_sent(service, agent)
    assert issued() <= 1  # the last byte of a key's id may be the same by chance: then the answer is no signature of it


def test_an_issuer_that_is_away_is_asked_again(tmp_path, service, paid_task, account, issued):
    service.serve(paid_task)
    with RecordingService() as away:
        paid_task.tokens = {**paid_task.tokens, "issuer": away.address}
        service.serve(paid_task)
        with device(tmp_path, service, paid_task) as agent:
            agent.set_account(f"{away.address}#{account.credential}")
            away.answers = ["drop", 503, (500, "internal")]
            assert [sync(agent).status for _ in range(3)] == ["no-answer"] * 3
            assert nothing_was_sent(service, agent)
        asked = {body for _, _, body in away.received}
    assert (len(asked), len(away.received)) == (1, 3)
    assert {headers["authorization"] for headers in away.headers} == {f"Bearer {account.credential}"}
    assert issued() == 0


def test_tokens_go_with_consent_and_rounds(tmp_path, service, paid_task, account):
    service.serve(paid_task)

    def crash(at):
        if at == "turn: begun":
            raise Crash

    with device(tmp_path, service, paid_task, on_point=crash) as agent:
        agent.set_account(account.link)
        with pytest.raises(Crash):
            sync(agent)
        assert len(kept_tokens(tmp_path)) == 1
        service.serve(paid_task, phase="idle", number=2)
        assert sync(agent).status == "idle"
        assert kept_tokens(tmp_path) == []
        service.serve(paid_task, number=3)
        with pytest.raises(Crash):
            sync(agent)
        assert len(kept_tokens(tmp_path)) == 1
        agent.erase()
        assert kept_tokens(tmp_path) == []
        agent.leave()
        assert agent.export().token_issuer is None


def test_an_account_needs_an_enrolment_and_a_link(tmp_path, service, task):
    with DeviceAgent.open(tmp_path / "new", create=True) as agent, pytest.raises(UsageError, match="enrol first"):
        agent.set_account("https://issuer.example#" + "x" * 30)
    with device(tmp_path / "one", service, task) as agent, pytest.raises(InvalidParameter, match="account"):
        agent.set_account("https://issuer.example")


def test_a_file_without_tokens_is_upgraded(tmp_path, service, paid_task, account):
    service.serve(paid_task)
    with device(tmp_path, service, paid_task):
        pass
    with sqlite3.connect(tmp_path / FILE) as old:
        old.execute("DROP TABLE tokens")
        old.execute("ALTER TABLE turns DROP COLUMN token")
        old.execute("PRAGMA user_version = 2")
    old.close()
    with device(tmp_path, service, paid_task) as agent:
        agent.set_account(account.link)
        assert sync(agent).status == "reported"
    with DeviceState(tmp_path / FILE) as state:
        assert state.number("user_version") == SCHEMA_VERSION
