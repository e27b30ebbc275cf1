"""Whoever sees sealed records or writes to the database makes no one count twice, and brings nothing back."""

from __future__ import annotations

import secrets

import pytest

from databases import DATABASES, fresh_database
from searchblend.core.records import Record
from searchblend.service.checkup import check_up
from searchblend.service.round_model import sealing_context
from searchblend.service.settings import ServeSettings
from searchblend.store.states import State
from searchblend.wire.sealed import encapsulation, seal_records
from service_http import http_service
from service_parts import people

N = 60
VICTIM = Record("a query of one person", "http://secret.example")


@pytest.fixture(params=DATABASES)
def http(request, tmp_path):
    with http_service(fresh_database(request.param, tmp_path), tmp_path) as service:
        yield service


@pytest.fixture
def round_(http):
    """A round that takes records, with those of some people."""
    round_ = http.parts.open(http.parts.task(min_queries=1))
    http.parts.contribute(round_, people(N, seed=1))
    return round_


def sealed_for(round_, code, record=VICTIM):
    context = sealing_context(round_)
    return seal_records([record], context, context.tag_of(code), round_.public_key)


def insert(http, round_, tag, sealed):
    http.parts.store.database.execute(
        "INSERT INTO contributions (round_key, tag, sealed, withdrawn) VALUES (?, ?, ?, 0)", (round_.key, tag, sealed)
    )


def counted(http, round_):
    """How many people the curator counted, and what it refused."""
    http.parts.lifecycle.close_optin(http.parts.store.rounds.by_key(round_.key), actor="ann")
    http.parts.work()
    details = [row.entry.detail for row in http.parts.store.audit.rows()]
    (detail,) = (detail for detail in details if detail.get("to") == State.HEADLIST_READY)
    return detail["records"], http.parts.store.reports.refusals(round_.key)


def test_a_record_sent_again_under_other_codes_counts_once(http, round_):
    victim, *others = http.parts.lifecycle.enrol(http.parts.store.rounds.task(round_.task), 9, actor="ann")
    sealed = sealed_for(round_, victim)
    for code in (victim, *others):
        assert http.contribute(round_, sealed, code).status_code == 200
    records, refused = counted(http, round_)
    assert records == N + 1
    assert sum(refused.values()) == 8


def test_rows_copied_in_the_database_count_once(http, round_):
    """Under new tags, and under those of enrolled people who have sent nothing."""
    victim, *others = http.parts.lifecycle.enrol(http.parts.store.rounds.task(round_.task), 9, actor="ann")
    sealed, context = sealed_for(round_, victim), sealing_context(round_)
    assert http.contribute(round_, sealed, victim).status_code == 200
    for code in others:
        insert(http, round_, context.tag_of(code), sealed)
    for tag in (secrets.token_bytes(32), b"", b"short", b"x" * 4000):
        insert(http, round_, tag or b"\0", sealed)
    records, refused = counted(http, round_)
    assert records == N + 1
    assert refused["bad-credential"] == 4
    assert sum(refused.values()) == 12


def test_a_record_of_an_unknown_tag_is_not_counted(http, round_):
    """Anyone can seal; only people with an enrolment code are counted, whatever is written into the table."""
    insert(http, round_, sealing_context(round_).tag_of("sbe_nobody"), sealed_for(round_, "sbe_nobody"))
    assert counted(http, round_) == (N, {"bad-credential": 1})


def test_a_tag_counts_once_even_without_the_tables_own_rule(http, round_):
    """Several records that one person sealed: each opens, and has an encapsulation of its own."""
    database = http.parts.store.database
    database.execute("CREATE TABLE copies AS SELECT * FROM contributions")
    database.execute("DROP TABLE contributions")
    database.execute("ALTER TABLE copies RENAME TO contributions")
    code = http.parts.lifecycle.enrol(http.parts.store.rounds.task(round_.task), 1, actor="ann")[0]
    for _ in range(3):
        insert(http, round_, sealing_context(round_).tag_of(code), sealed_for(round_, code))
    assert counted(http, round_) == (N + 1, {"conflicting-contribution": 2})


def test_an_encapsulation_counts_once(http, round_, monkeypatch):
    """If one ciphertext ever opened under two tags, it would still be one person's."""
    codes = http.parts.lifecycle.enrol(http.parts.store.rounds.task(round_.task), 2, actor="ann")
    sealed, context = sealed_for(round_, codes[0]), sealing_context(round_)
    monkeypatch.setattr("searchblend.service.workers.curator._opened_records", lambda *_: [VICTIM])
    for code in codes:
        insert(http, round_, context.tag_of(code), sealed)
    assert counted(http, round_) == (N + 1, {"conflicting-contribution": 1})


def test_a_record_of_another_round_does_not_open(http, round_):
    """The number of a round is bound in, so that a kept copy is worth nothing in the next."""
    code = http.parts.lifecycle.enrol(http.parts.store.rounds.task(round_.task), 1, actor="ann")[0]
    context = sealing_context(round_)
    earlier = type(context)(context.task, round_.number + 1, context.consent)
    insert(http, round_, context.tag_of(code), seal_records([VICTIM], earlier, earlier.tag_of(code), round_.public_key))
    assert counted(http, round_) == (N, {"malformed": 1})


def test_a_withdrawn_record_does_not_come_back(http, round_):
    """The same bytes again, sent by whoever has seen them; also bytes that were held up until after the withdrawal."""
    task = http.parts.store.rounds.task(round_.task)
    for code, arrives in zip(http.parts.lifecycle.enrol(task, 2, actor="ann"), (True, False), strict=True):
        sealed = sealed_for(round_, code)
        assert not arrives or http.contribute(round_, sealed, code).status_code == 200
        assert http.contribute(round_, b"", code, "DELETE").status_code == 204
        assert http.contribute(round_, sealed, code).status_code == 409
    assert http.parts.store.contributions.count(round_.key) == N
    assert counted(http, round_)[0] == N


def test_a_round_that_was_aborted_is_not_reported_for_its_withdrawals(http, round_):
    """Its rows are destroyed at once, and what the curator remembers of them at its next turn."""
    parts = http.parts
    (code,) = parts.lifecycle.enrol(parts.store.rounds.task(round_.task), 1, actor="ann")
    assert http.contribute(round_, sealed_for(round_, code), code).status_code == 200
    assert http.contribute(round_, b"", code, "DELETE").status_code == 204
    parts.work()
    parts.lifecycle.abort(round_, actor="ann", reason="a test")
    checks = check_up(parts.store, parts.clock, ServeSettings(data_dir=str(parts.folder)))
    assert [check for check in checks if check.check.startswith("withdrawals")] == []


def test_a_withdrawn_record_written_back_by_hand_is_not_counted_and_is_reported(http, round_):
    """Whoever may write to the table kept the bytes: over the withdrawn row, or after removing it."""
    parts = http.parts
    codes = parts.lifecycle.enrol(parts.store.rounds.task(round_.task), 2, actor="ann")
    context = sealing_context(round_)
    for code in codes:
        assert http.contribute(round_, sealed_for(round_, code), code).status_code == 200
        assert http.contribute(round_, b"", code, "DELETE").status_code == 204
    parts.work()
    over, removed = (context.tag_of(code) for code in codes)
    parts.store.database.execute(
        "UPDATE contributions SET sealed = ?, withdrawn = 0 WHERE tag = ?", (sealed_for(round_, codes[0]), over)
    )
    parts.store.database.execute("DELETE FROM contributions WHERE tag = ?", (removed,))
    insert(http, round_, removed, sealed_for(round_, codes[1]))
    checks = check_up(parts.store, parts.clock, ServeSettings(data_dir=str(parts.folder)))
    (undone,) = (check for check in checks if check.check.startswith("withdrawals"))
    assert (undone.fine, undone.detail[:2]) == (False, "2 ")
    assert counted(http, round_) == (N, {"withdrawn": 2})
    details = [row.entry.detail for row in parts.store.audit.rows()]
    assert [detail["withdrawn"] for detail in details if "withdrawn" in detail] == [2]
    assert not list((parts.folder / "keys").glob("*.withdrawn*")), "destroyed with the key"


def test_a_withdrawn_record_does_not_come_back_under_another_code(http, round_):
    """Nothing of the first is left to compare it with: that it was sealed for one tag is all that keeps it out."""
    task = http.parts.store.rounds.task(round_.task)
    victim, other = http.parts.lifecycle.enrol(task, 2, actor="ann")
    sealed = sealed_for(round_, victim)
    assert http.contribute(round_, sealed, victim).status_code == 200
    assert http.contribute(round_, b"", victim, "DELETE").status_code == 204
    assert http.contribute(round_, sealed, other).status_code == 200
    assert counted(http, round_) == (N, {"malformed": 1})


def test_no_two_sealings_share_an_encapsulation(round_):
    assert encapsulation(sealed_for(round_, "sbe_somebody")) != encapsulation(sealed_for(round_, "sbe_somebody"))
