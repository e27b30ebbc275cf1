"""One device against a service that writes down what it is sent: reports of every kind, groups and silence."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from dataclasses import replace

import pytest

from device_parts import CODE, HEAD, HandClock, MadeTask, device, nothing_was_sent, sync
from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, TWO_STAGE, ReportDesign
from searchblend.blender.report_odds import report_odds
from searchblend.core.errors import InvalidParameter
from searchblend.core.records import HeadList, Record
from searchblend.device.consent_texts import text_digest, text_of
from searchblend.device.policy import POLICY
from searchblend.device.state import FILE
from searchblend.wire.consent import odds_words, optin_consent, task_consent
from searchblend.wire.report import decode_report
from searchblend.wire.sealed import Opener, SealingContext, new_round_key
from searchblend.wire.signing import SigningKey

DESIGNS = [None, ReportDesign(10, 1, 2, SINK_SETS), ReportDesign(0, 1, 2, PLAIN_SETS), ReportDesign(0, 1, 1, TWO_STAGE)]


# One round


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.mechanism if design else "printed")
def test_a_report_of_every_mechanism(tmp_path, service, design):
    task = MadeTask(design=design)
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "reported"
        (message,) = service.reports()
        shown = agent.sent()[0]
    _, parts = decode_report(message, task.shape(1))
    assert shown.bytes == message.hex()
    assert (shown.state, shown.answer, shown.epsilon, shown.delta) == ("accepted", "200", "1.0", "1e-06")
    assert shown.true == [["weather", "https://weather.example"]]
    assert [len(part.items) for part in shown.said] == [len(part.items) for part in parts]
    assert {part.odds for part in shown.said} == {odds_words(report_odds(HEAD, task.params, design))}
    cells = [[part if isinstance(part, str) else None for part in cell] for cell in HEAD.cells()]
    names = [[query] for query in (*HEAD.queries, None)]
    for part, said in zip(parts, shown.said, strict=True):
        assert said.items == [(names if part.about_queries else cells)[item] for item in part.items]


def test_the_report_says_nothing_but_its_bytes(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        sync(agent)
    assert set(service.headers[0]) == {"host", "accept-encoding", "content-type", "content-length"}
    assert service.headers[0]["content-type"] == "application/vnd.searchblend.report"
    assert not any("weather" in path for path in service.asked)


def test_a_second_sync_sends_nothing(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        for _ in range(3):
            assert sync(agent).status == "reported"
    assert len(service.reports()) == 1


def test_a_later_round_is_another_report_and_another_debit(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        sync(agent)
        service.serve(task, number=2)
        assert sync(agent).status == "reported"
        assert agent.status().budget.lifetime_epsilon == 2.0
        assert [debit.round for debit in agent.export().ledger] == [1, 2]
    assert len(set(service.reports())) == 2


def test_the_delay_is_random_and_inside_the_window(tmp_path, service, task):
    service.serve(task)
    delays = []
    for n in range(8):
        clock = HandClock()
        with device(tmp_path / str(n), service, task, clock=clock) as agent:
            assert agent.sync().status == "waiting"
            assert agent.status().waiting == 1
            turn = agent._state.turns()[0]
            delays.append(turn.send_after - clock.now)
            clock.now = turn.send_after
            assert agent.sync().status == "reported"
    assert len(set(delays)) > 4
    assert all(1 <= delay <= POLICY.longest_delay_seconds for delay in delays)


@pytest.mark.parametrize("answer", ["drop", 503, 429, 500, 302, b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n<html>"])
def test_what_is_no_answer_is_answered_with_the_same_bytes(tmp_path, service, task, answer):
    service.serve(task)
    # On a connection that was used before, a drop may mean that it was closed meanwhile: one more try each.
    service.answers = [answer] * (4 if answer == "drop" else 2)
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "unanswered"
        assert not sync(agent).ok
        assert sync(agent).status == "reported"
        assert agent.sent()[0].tries == 3
    assert len(service.reports()) >= 3
    assert len(set(service.reports())) == 1


def test_it_waits_before_it_tries_again(tmp_path, service, task):
    service.serve(task)
    service.answers = [503, 503]
    clock = HandClock()
    with device(tmp_path, service, task, clock=clock) as agent:
        sync(agent)
        assert agent.sync().status == "waiting"
        clock.now += 61
        assert agent.sync().status == "unanswered"
        clock.now += 59  # the second wait is 60 to 120 seconds, drawn at random
        assert agent.sync().status == "waiting"
        clock.now += 62
        assert agent.sync().status == "reported"


@pytest.mark.parametrize("name", ["window-closed", "malformed", "wrong-head-list", "killed", "internal"])
def test_a_refusal_is_final(tmp_path, service, task, name):
    service.serve(task)
    service.answers = [(409, name)]
    with device(tmp_path, service, task) as agent:
        for _ in range(2):
            outcome = sync(agent)
            assert (outcome.status, outcome.ok) == ("refused", False)
            assert name in outcome.text
    assert len(service.reports()) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_too_busy_is_no_refusal(tmp_path, service, task, status):
    service.serve(task)
    service.answers = [(status, "overloaded")]
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "unanswered"
        assert sync(agent).status == "reported"


# Groups and silence


def test_a_silent_device_is_skipped(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        agent.erase()
        assert sync(agent).status == "no-record"
        assert nothing_was_sent(service, agent)


def test_a_silent_device_reports_the_wildcard_if_asked(tmp_path, service, task):
    service.serve(task, silent_devices="report_wildcard")
    with device(tmp_path, service, task) as agent:
        agent.erase()
        assert sync(agent).status == "reported"
        assert agent.sent()[0].true == [[None, None]]
        assert len(agent.export().ledger) == 1


def test_searches_without_a_result_are_reported_only_where_urls_are_not_asked_for(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        agent.erase()
        agent.record("news")
        assert sync(agent).status == "no-record"
        bare = HeadList((query, []) for query in HEAD.queries)
        task.params = replace(task.params, query_budget_fraction=1.0)
        service.serve(task, head=bare)
        assert sync(agent).status == "reported"
        assert agent.sent()[0].true == [["news", None]]


def test_opt_in_seals_one_record_to_the_curator(tmp_path, service, task):
    service.manifest = task.manifest("opt-in")
    with device(tmp_path, service, task, mode="opt-in") as agent:
        assert sync(agent).status == "reported"
        assert agent.export().ledger[0].part == "opt-in"
    ((method, path, sealed),) = service.received
    assert (method, path.rsplit("/", 1)[1]) == ("POST", "contributions")
    assert service.headers[0]["authorization"] == f"Bearer {CODE}"
    context = SealingContext(bytes.fromhex(task.task), 1, bytes.fromhex(text_digest(text_of("opt-in"))))
    records = Opener(task.private_key, context, at_most=1).open(sealed, context.tag_of(CODE))
    assert records == [Record("weather", "https://weather.example")]


@pytest.mark.parametrize("pins", ["the curator", "another", "none"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_device_that_pinned_the_curator_seals_to_no_other_key(tmp_path, service, task, pins, swapped):
    """The publisher signs both manifests; only one of the two keys is the curator's."""
    curators = {"the curator": [task.curator], "another": [SigningKey.new()], "none": []}[pins]
    document = task.document("opt-in")
    if swapped:
        document["optin"]["public_key"] = new_round_key()[1].hex()
    service.manifest = task.sign(document)
    with device(tmp_path, service, task, mode="opt-in") as agent:
        points = [key.public_point.hex() for key in curators]
        agent.enrol(service.address, task.task, [task.point], code=CODE, curators=points)
        is_right = pins == "none" or (pins == "the curator" and not swapped)
        assert sync(agent).status == ("reported" if is_right else "wrong-curator")
    assert len(service.received) == is_right


def test_a_pinned_curator_has_nothing_to_do_with_other_phases(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        agent.enrol(service.address, task.task, [task.point], curators=[task.curator.public_point.hex()])
        assert sync(agent).status == "reported"


LONG = "\U00020000" * 500, "https://long.example/" + "\U00020000" * 1900


def test_a_record_too_long_to_be_sealed_is_as_if_it_was_not_there(tmp_path, service, task):
    """Admission counts code points and a message bytes; such a record must not stop the others."""
    task.consent, task.agreed = optin_consent(3), 3
    service.manifest = task.manifest("opt-in", records_per_optin=3)
    with device(tmp_path, service, task, mode="opt-in") as agent:
        agent.erase()
        assert agent.record(*LONG).kept
        assert sync(agent).status == "no-record"
        assert nothing_was_sent(service, agent)
        for n in range(2):
            agent.record(f"news {n}", "https://news.example")
        assert sync(agent).status == "reported"
        assert sorted(query for query, _ in agent.sent()[0].true) == ["news 0", "news 1"]


OUR_SENTENCE = optin_consent(1)


@pytest.mark.parametrize(
    ("agreed", "asked", "words"),
    [
        (1, 2, ""),
        (1, 20, " "),
        (1, 20, "One of my searches is sent."),
        (1, 20, OUR_SENTENCE[:-1]),
        (19, 20, OUR_SENTENCE.lower()),
    ],
)
def test_a_round_that_takes_more_than_was_agreed_gets_nothing_whatever_its_text(
    tmp_path, service, task, agreed, asked, words
):
    task.consent, task.agreed = task_consent(agreed, words), agreed
    service.manifest = task.manifest("opt-in", records_per_optin=asked)
    with device(tmp_path, service, task, mode="opt-in") as agent:
        outcome = sync(agent)
        assert outcome.status == "more-than-agreed"
        assert f"consent opt-in --records {asked}" in outcome.text
        assert nothing_was_sent(service, agent)
        task.consent = task_consent(asked, words)
        service.manifest = task.manifest("opt-in", records_per_optin=asked)
        agent.consent("opt-in", task.consent, records=asked)
        assert sync(agent).status == "reported"


@pytest.mark.parametrize("asked", [1, 5, 20])
def test_consent_to_up_to_twenty_covers_rounds_that_take_fewer(tmp_path, service, task, asked):
    task.consent, task.agreed = task_consent(asked, "My own words."), asked
    service.manifest = task.manifest("opt-in", records_per_optin=asked)
    with device(tmp_path, service, task, mode="opt-in") as agent:
        agent.consent("opt-in", task_consent(20, "Other words."), records=20)
        assert sync(agent).status == "wrong-consent", "the task's own words are agreed to as they are"
        assert nothing_was_sent(service, agent)
        agent.consent("opt-in", task_consent(20, "My own words."), records=20)
        assert sync(agent).status == "reported"


def test_a_round_whose_text_leaves_out_the_number_gets_nothing(tmp_path, service, task):
    with device(tmp_path, service, task, mode="opt-in") as agent:
        agent.consent("opt-in", task_consent(1, "My own words."))
        task.consent = "My own words."
        service.manifest = task.manifest("opt-in")
        assert sync(agent).status == "wrong-consent"
        assert nothing_was_sent(service, agent)


def test_clients_are_asked_for_no_more_answers_than_they_agreed_to(tmp_path, service, task):
    task.params = replace(task.params, records_per_client=3)
    service.artifacts[hashlib.sha256(task.head_list()).hexdigest()] = task.head_list()
    service.manifest = task.manifest(records_per_client=3)
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "more-than-agreed"
        assert nothing_was_sent(service, agent)
        text = text_of("local", 3)
        assert "draws up to 3 of them at random" in " ".join(text.split())
        with pytest.raises(InvalidParameter, match="up to 3 searches"):
            agent.consent("local", text_of("local"), records=3)
        agent.consent("local", text, records=3)
        assert sync(agent).status == "reported"


@pytest.mark.parametrize("asked", [1, 2])
def test_a_consent_without_a_number_is_for_one_search(tmp_path, service, task, asked):
    """A file of version 1, as earlier versions wrote it, with our sentence for as many as the round takes."""
    task.consent, task.agreed = optin_consent(asked), asked
    with device(tmp_path, service, task, mode="opt-in"):
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.executescript("ALTER TABLE consents DROP COLUMN records; ALTER TABLE turns DROP COLUMN token")
        connection.executescript("DROP TABLE tokens; PRAGMA user_version = 1")
    service.manifest = task.manifest("opt-in", records_per_optin=asked)
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == ("reported" if asked == 1 else "more-than-agreed")
        assert agent.export().consents[-1].records == 1


def test_records_that_do_not_fit_together_are_sent_as_far_as_they_fit(tmp_path, service, task):
    task.consent, task.agreed = optin_consent(5), 5
    service.manifest = task.manifest("opt-in", records_per_optin=5)
    with device(tmp_path, service, task, mode="opt-in") as agent:
        agent.erase()
        for n in range(5):
            agent.record(f"{n} " + "x" * 480, "https://long.example/" + "x" * 1400)
        assert sync(agent).status == "reported"
        assert len(agent.sent()[0].true) == 2


def test_consent_to_another_text_sends_nothing(tmp_path, service, task):
    document = task.document("opt-in")
    document["optin"]["consent"] = "00" * 32
    service.manifest = task.sign(document)
    with device(tmp_path, service, task, mode="opt-in") as agent:
        assert sync(agent).status == "wrong-consent"
        assert nothing_was_sent(service, agent)


def test_opt_in_without_a_code_sends_nothing(tmp_path, service, task):
    service.manifest = task.manifest("opt-in")
    with device(tmp_path, service, task, mode="opt-in") as agent:
        agent.enrol(service.address, task.task, [task.point])
        assert sync(agent).status == "no-credential"
        assert nothing_was_sent(service, agent)


def test_never_both_groups_in_one_round(tmp_path, service, task):
    service.manifest = task.manifest("opt-in")
    with device(tmp_path, service, task, mode="opt-in") as agent:
        sync(agent)
        service.serve(task)
        assert sync(agent).status == "reported"  # what was done, not done again
        agent.consent("local", text_of("local"))
        assert sync(agent).status == "withdrawn"  # and nothing is said instead
        assert len(agent.export().ledger) == 1
    assert service.reports() == []


def test_each_group_keeps_to_its_phase(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task, mode="opt-in") as agent:
        assert sync(agent).status == "other-group"
        agent.consent("local", text_of("local"))
        service.manifest = task.manifest("opt-in")
        assert sync(agent).status == "other-group"
        service.manifest = task.manifest("idle")
        assert sync(agent).status == "idle"
        assert nothing_was_sent(service, agent)
