"""One device against a service that writes down what it is sent: the whole way, and everything that can go wrong."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import stat
from dataclasses import replace

import pytest

from device_parts import CODE, HEAD, NOW, HandClock, MadeTask, RecordingService, device, problem
from searchblend.blender.subset_report import PLAIN_SETS, SINK_SETS, TWO_STAGE, ReportDesign
from searchblend.device.agent import DeviceAgent
from searchblend.device.consent_texts import LOCAL_TEXT, OPT_IN_TEXT, text_digest
from searchblend.device.device_errors import REASONS, StateError, StorageFull
from searchblend.device.policy import POLICY
from searchblend.device.state import FILE
from searchblend.device.transport import Transport
from searchblend.errors import InputError, InvalidParameter, UsageError
from searchblend.records import HeadList, Record
from searchblend.wire.canonical import canonical_json
from searchblend.wire.manifest import encode_signed
from searchblend.wire.report import decode_report
from searchblend.wire.sealed import Opener, SealingContext
from searchblend.wire.signing import SigningKey, sign_manifest

DESIGNS = [None, ReportDesign(10, 1, 2, SINK_SETS), ReportDesign(0, 1, 2, PLAIN_SETS), ReportDesign(0, 1, 1, TWO_STAGE)]


@pytest.fixture
def service():
    with RecordingService() as running:
        yield running


@pytest.fixture
def task():
    return MadeTask()


def sync(agent, **arguments):
    return agent.sync(immediately=True, **arguments)


def nothing_was_sent(service, agent):
    return not service.received and not agent.sent() and not agent.export()["ledger"]


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
    assert shown["bytes"] == message.hex()
    assert (shown["state"], shown["answer"], shown["epsilon"], shown["delta"]) == ("accepted", "200", "1.0", "1e-06")
    assert shown["true"] == [["weather", "https://weather.example"]]
    assert [len(part["items"]) for part in shown["said"]] == [len(part.items) for part in parts]
    cells = [[part if isinstance(part, str) else None for part in cell] for cell in HEAD.cells()]
    names = [[query] for query in (*HEAD.queries, None)]
    for part, said in zip(parts, shown["said"], strict=True):
        assert said["items"] == [(names if part.about_queries else cells)[item] for item in part.items]


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
        assert agent.status()["budget"]["lifetime_epsilon"] == 2.0
        assert [debit["round"] for debit in agent.export()["ledger"]] == [1, 2]
    assert len(set(service.reports())) == 2


def test_the_delay_is_random_and_inside_the_window(tmp_path, service, task):
    service.serve(task)
    delays = []
    for n in range(8):
        clock = HandClock()
        with device(tmp_path / str(n), service, task, clock=clock) as agent:
            assert agent.sync().status == "waiting"
            assert agent.status()["waiting"] == 1
            turn = agent._state.turns()[0]
            delays.append(turn.send_after - clock.now)
            clock.now = turn.send_after
            assert agent.sync().status == "reported"
    assert len(set(delays)) > 4
    assert all(0 <= delay <= POLICY.longest_delay_seconds for delay in delays)


@pytest.mark.parametrize("answer", ["drop", 503, 429, 500, 302, b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n<html>"])
def test_what_is_no_answer_is_answered_with_the_same_bytes(tmp_path, service, task, answer):
    service.serve(task)
    # On a connection that was used before, a drop may mean that it was closed meanwhile: one more try each.
    service.answers = [answer] * (4 if answer == "drop" else 2)
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "unanswered"
        assert not sync(agent).ok
        assert sync(agent).status == "reported"
        assert agent.sent()[0]["tries"] == 3
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
        clock.now += 61
        assert agent.sync().status == "waiting"
        clock.now += 61
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
        assert agent.sent()[0]["true"] == [[None, None]]
        assert len(agent.export()["ledger"]) == 1


def test_searches_without_a_result_are_reported_only_where_urls_are_not_asked_for(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        agent.erase()
        agent.record("news")
        assert sync(agent).status == "no-record"
        bare = HeadList({"weather": [], "news": []})
        task.params = replace(task.params, query_budget_fraction=1.0)
        service.serve(task, head=bare)
        assert sync(agent).status == "reported"
        assert agent.sent()[0]["true"] == [["news", None]]


def test_opt_in_seals_one_record_to_the_curator(tmp_path, service, task):
    service.manifest = task.manifest("opt-in")
    with device(tmp_path, service, task, mode="opt-in") as agent:
        assert sync(agent).status == "reported"
        assert agent.export()["ledger"][0]["part"] == "opt-in"
    ((method, path, sealed),) = service.received
    assert (method, path.rsplit("/", 1)[1]) == ("POST", "contributions")
    assert service.headers[0]["authorization"] == f"Bearer {CODE}"
    context = SealingContext(bytes.fromhex(task.task), 1, bytes.fromhex(text_digest(OPT_IN_TEXT)))
    assert Opener(task.private_key, context, at_most=1).open(sealed) == [Record("weather", "https://weather.example")]


LONG = "\U00020000" * 500, "https://long.example/" + "\U00020000" * 1900


def test_a_record_too_long_to_be_sealed_is_as_if_it_was_not_there(tmp_path, service, task):
    """Admission counts code points and a message bytes; such a record must not stop the others."""
    service.manifest = task.manifest("opt-in", records_per_optin=3)
    with device(tmp_path, service, task, mode="opt-in") as agent:
        agent.erase()
        assert agent.record(*LONG).kept
        assert sync(agent).status == "no-record"
        assert nothing_was_sent(service, agent)
        for n in range(2):
            agent.record(f"news {n}", "https://news.example")
        assert sync(agent).status == "reported"
        assert sorted(query for query, _ in agent.sent()[0]["true"]) == ["news 0", "news 1"]


def test_records_that_do_not_fit_together_are_sent_as_far_as_they_fit(tmp_path, service, task):
    service.manifest = task.manifest("opt-in", records_per_optin=5)
    with device(tmp_path, service, task, mode="opt-in") as agent:
        agent.erase()
        for n in range(5):
            agent.record(f"{n} " + "x" * 480, "https://long.example/" + "x" * 1400)
        assert sync(agent).status == "reported"
        assert len(agent.sent()[0]["true"]) == 2


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
        agent.consent("local", LOCAL_TEXT)
        assert sync(agent).status == "withdrawn"  # and nothing is said instead
        assert len(agent.export()["ledger"]) == 1
    assert service.reports() == []


def test_each_group_keeps_to_its_phase(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task, mode="opt-in") as agent:
        assert sync(agent).status == "other-group"
        agent.consent("local", LOCAL_TEXT)
        service.manifest = task.manifest("opt-in")
        assert sync(agent).status == "other-group"
        service.manifest = task.manifest("idle")
        assert sync(agent).status == "idle"
        assert nothing_was_sent(service, agent)


# Consent


def test_nothing_happens_before_consent(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task, mode="off") as agent:
        with pytest.raises(UsageError, match="no consent"):
            agent.record("weather")
        assert sync(agent).status == "off"
        assert service.asked == []
        with pytest.raises(InvalidParameter, match="text"):
            agent.consent("local")
        with pytest.raises(InvalidParameter, match="text"):
            agent.consent("local", "whatever")
        with pytest.raises(InvalidParameter, match="text"):
            agent.consent("opt-in", "\ud800")


def test_consents_are_kept_word_for_word(tmp_path, service, task):
    with device(tmp_path, service, task) as agent:
        agent.consent("opt-in", "My own words.")
        agent.consent("off")
        found = agent.export()["consents"]
    assert [(row["mode"], row["text"]) for row in found] == [
        ("local", LOCAL_TEXT),
        ("opt-in", "My own words."),
        ("off", None),
    ]
    assert found[1]["sha256"] == hashlib.sha256(b"My own words.").hexdigest()


def test_a_report_that_waits_is_dropped_with_the_consent_and_never_made_again(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        assert agent.sync().status == "waiting"
        agent.consent("off")
        agent.consent("local", LOCAL_TEXT)
        assert sync(agent).status == "dropped"
        assert agent.sent()[0]["tries"] == 0
        assert len(agent.export()["ledger"]) == 1
    assert service.reports() == []


def contents(folder):
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


def test_old_searches_go_with_a_sync_whatever_the_mode(tmp_path, service, task):
    service.serve(task)
    clock = HandClock()
    with device(tmp_path, service, task, clock=clock) as agent:
        agent.pause()
        clock.now += 29 * 86_400
        assert agent.sync().status == "paused"
        assert agent.export()["searches"] == []
    assert b"weather" not in contents(tmp_path)


def test_old_searches_go_with_another_consent(tmp_path, service, task):
    clock = HandClock()
    with device(tmp_path, service, task, clock=clock) as agent:
        clock.now += 29 * 86_400
        agent.consent("opt-in", OPT_IN_TEXT)
        assert agent.status()["searches"] == 0


def test_off_erases_the_searches_and_keeps_what_was_sent(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        sync(agent)
        agent.record("a very rare thing to look for", "https://rare.example/x")
        agent.consent("off")
        assert agent.export()["searches"] == []
        assert agent.sent()[0]["true"] == [["weather", "https://weather.example"]]
        assert b"rare" not in contents(tmp_path)
        assert agent.sync().status == "off"
    assert len(service.reports()) == 1


def test_off_forgets_a_report_that_never_left(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        assert agent.sync().status == "waiting"
        agent.consent("off")
        (shown,) = agent.sent()
        assert (shown["state"], shown["true"], shown["said"], shown["bytes"]) == ("dropped", None, None, None)
    assert b"weather" not in contents(tmp_path)


def test_nothing_is_kept_when_consent_ends_in_another_process(tmp_path, service, task, monkeypatch):
    """The mode is looked at under the lock that the search is written with."""
    with device(tmp_path, service, task) as agent, DeviceAgent.open(tmp_path, clock=HandClock()) as other:
        begin = agent._state.transaction

        def late():
            monkeypatch.undo()
            other.consent("off")
            return begin()

        monkeypatch.setattr(agent._state, "transaction", late)
        with pytest.raises(UsageError, match="no consent"):
            agent.record("news")
        assert agent.status()["searches"] == 0


# Withdrawal


class WatchedTransport(Transport):
    """Calls ``before`` just before it asks for a withdrawal."""

    def __init__(self, address, before):
        super().__init__(address)
        self._before = before

    def send(self, method, path, body=None, **arguments):
        if method == "DELETE":
            self._before()
        return super().send(method, path, body, **arguments)


@pytest.mark.parametrize("step", ["off", "local", "leave"])
def test_a_sync_during_the_withdrawal_sends_nothing(tmp_path, service, task, step):
    service.manifest = task.manifest("opt-in")

    def others():
        with DeviceAgent.open(tmp_path, clock=HandClock()) as other:
            seen.append(sync(other).status)

    seen = []
    with device(tmp_path, service, task, mode="opt-in", transport=WatchedTransport(service.address, others)) as agent:
        assert agent.sync().status == "waiting"
        outcome = agent.leave() if step == "leave" else agent.consent(step, LOCAL_TEXT if step == "local" else None)
        assert outcome.status == "withdrawn"
    assert seen == ["dropped" if step == "local" else "off"]
    assert [method for method, _, _ in service.received] == ["DELETE"]


@pytest.mark.parametrize("step", ["off", "leave"])
def test_who_interrupts_the_withdrawal_has_withdrawn_consent_and_may_try_again(tmp_path, service, task, step):
    service.manifest = task.manifest("opt-in")

    def interrupt():
        raise KeyboardInterrupt

    with device(
        tmp_path, service, task, mode="opt-in", transport=WatchedTransport(service.address, interrupt)
    ) as agent:
        assert agent.sync().status == "waiting"
        with pytest.raises(KeyboardInterrupt):
            agent.leave() if step == "leave" else agent.consent("off")
    with device(tmp_path, service, task) as agent:
        assert agent.status()["mode"] == "off"
        assert agent.export()["searches"] == []
        assert sync(agent).status == "off"
        assert (agent.leave() if step == "leave" else agent.consent("off")).status == "withdrawn"
    assert [method for method, _, _ in service.received] == ["DELETE"]


@pytest.mark.parametrize("answer", ["drop", 500, (503, "overloaded")])
@pytest.mark.parametrize("step", ["off", "leave"])
def test_a_withdrawal_without_an_answer_is_said_and_can_be_tried_again(tmp_path, service, task, step, answer):
    service.manifest = task.manifest("opt-in")
    with device(tmp_path, service, task, mode="opt-in") as agent:
        sync(agent)
        service.answers = [answer] * (2 if answer == "drop" else 1)

        def withdraw():
            return agent.leave() if step == "leave" else agent.consent("off")

        outcome = withdraw()
        assert (outcome.status, outcome.ok) == ("unanswered", False)
        assert "tries again" in outcome.text
        assert (agent.status()["mode"], agent.status()["task"]) == ("off", task.task)
        assert withdraw().status == "withdrawn"
        assert agent.sent()[0]["state"] == "withdrawn"
        assert withdraw() is None
        assert (agent.status()["task"] is None) == (step == "leave")


def test_who_leaves_a_dead_service_is_free_when_the_window_closes(tmp_path, service, task):
    service.manifest = task.manifest("opt-in")
    clock = HandClock()
    with device(tmp_path, service, task, mode="opt-in", clock=clock) as agent:
        sync(agent)
        service.answers = [500]
        assert not agent.leave().ok
        clock.now += 86_400
        assert agent.leave() is None
        assert agent.status()["task"] is None


def test_a_record_that_was_on_its_way_is_taken_back_by_its_sender(tmp_path, service, task):
    """The withdrawal overtakes the record: the service would keep what came second."""
    service.manifest = task.manifest("opt-in")

    def others(point):
        if point == "send: before":
            with DeviceAgent.open(tmp_path, clock=HandClock()) as other:
                assert other.consent("off").status == "withdrawn"

    with device(tmp_path, service, task, mode="opt-in", on_point=others) as agent:
        service.answers = [204, 200, 500]
        assert sync(agent).status == "unanswered"
        assert agent.consent("off").status == "withdrawn"
    assert [method for method, _, _ in service.received] == ["DELETE", "POST", "DELETE", "DELETE"]


def test_a_record_that_was_dropped_by_erase_is_still_withdrawn(tmp_path, service, task):
    """It may have arrived although no answer came."""
    service.manifest = task.manifest("opt-in")
    service.answers = ["drop", "drop"]
    with device(tmp_path, service, task, mode="opt-in") as agent:
        assert sync(agent).status == "unanswered"
        agent.erase()
        assert agent.leave().status == "withdrawn"


def test_without_a_code_nothing_is_asked_to_be_withdrawn(tmp_path, service, task):
    service.manifest = task.manifest("opt-in")
    with device(tmp_path, service, task, mode="opt-in") as agent:
        sync(agent)
        agent.enrol(service.address, task.task, [task.point])
        assert agent.consent("off").status == "not-withdrawn"
    assert [method for method, _, _ in service.received] == ["POST"]


@pytest.mark.parametrize("in_this_process", [True, False])
def test_after_another_enrolment_nothing_goes_to_the_service_before(tmp_path, service, task, in_this_process):
    service.serve(task)
    other_task = MadeTask(task="ab" * 16)
    with RecordingService() as later, device(tmp_path, service, task) as agent:
        sync(agent)
        asked, received = len(service.asked), len(service.received)
        later.manifest = other_task.manifest("opt-in")
        with DeviceAgent.open(tmp_path, clock=HandClock()) as other:
            changing = agent if in_this_process else other
            changing.leave()
            changing.enrol(later.address, other_task.task, [other_task.point], code=CODE)
        agent.consent("opt-in", OPT_IN_TEXT)
        agent.record("news", "https://news.example")
        assert sync(agent).status == "reported"
        assert [method for method, _, _ in later.received] == ["POST"]
        assert (len(service.asked), len(service.received)) == (asked, received)


def test_who_left_during_a_sync_gets_no_pack_and_no_last_word(tmp_path, service, task):
    service.serve(task)

    def others(point):
        if point == "manifest: remembered":
            with DeviceAgent.open(tmp_path, clock=HandClock()) as other:
                other.leave()

    with device(tmp_path, service, task, on_point=others) as agent:
        outcome = sync(agent)
        assert outcome.pack is None
        assert agent.status()["last"] is None
        assert nothing_was_sent(service, agent)


def test_pause_stops_everything_and_resume_continues(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        agent.pause()
        assert sync(agent).status == "paused"
        assert service.asked == []
        with pytest.raises(UsageError, match="paused"):
            agent.record("news")
        agent.resume()
        assert sync(agent).status == "reported"


def test_erase_leaves_the_ledger_and_nothing_else(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        sync(agent)
        agent.record("a very rare thing to look for", "https://rare.example/x")
        agent.erase()
        assert agent.status()["searches"] == 0
        assert agent.sent()[0]["true"] is None
        assert sync(agent).status == "reported"
        assert len(agent.export()["ledger"]) == 1
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"rare" not in kept
    assert b"weather" not in kept
    assert len(service.reports()) == 1


def test_who_leaves_and_comes_back_does_not_report_twice(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        sync(agent)
        assert agent.leave() is None
        assert agent.status()["task"] is None
        with pytest.raises(UsageError, match="enrol first"):
            agent.sync()
        agent.enrol(service.address, task.task, [task.point])
        agent.consent("local", LOCAL_TEXT)
        agent.record("news", "https://news.example")
        assert sync(agent).status == "reported"
        assert agent.status()["budget"]["lifetime_epsilon"] == 1.0
    assert len(service.reports()) == 1


def test_leaving_takes_the_contribution_back(tmp_path, service, task):
    service.manifest = task.manifest("opt-in")
    with device(tmp_path, service, task, mode="opt-in") as agent:
        sync(agent)
        assert agent.leave().status == "withdrawn"
    assert [method for method, _, _ in service.received] == ["POST", "DELETE"]
    assert service.headers[1]["authorization"] == f"Bearer {CODE}"


def test_leaving_says_when_it_could_not_be_taken_back(tmp_path, service, task):
    service.manifest = task.manifest("opt-in")
    service.answers = [200, (409, "window-closed")]
    with device(tmp_path, service, task, mode="opt-in") as agent:
        sync(agent)
        outcome = agent.leave()
        assert (outcome.ok, agent.status()["task"]) == (False, None)
        assert "window-closed" in outcome.text


def test_one_task_at_a_time(tmp_path, service, task):
    with device(tmp_path, service, task) as agent, pytest.raises(UsageError, match="another task"):
        agent.enrol(service.address, "ff" * 16, [task.point])


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("ftp://x.example", "ab" * 16, []), "server"),
        (("http://x.example", "ab" * 16, []), "server"),
        (("https://u:p@x.example", "ab" * 16, []), "server"),
        (("https://x.example:99999", "ab" * 16, []), "server"),
        (("https://x.example/?a", "ab" * 16, []), "server"),
        (("https://x.example/a b", "ab" * 16, []), "server"),
        (("https://x.example/\u00e4", "ab" * 16, []), "server"),
        (("https://\udcff.example", "ab" * 16, []), "server"),
        (("https://x..example", "ab" * 16, []), "server"),
        (("https://x.example", "xyz", []), "task"),
        (("https://x.example", "AB" * 16, []), "task"),
        (("https://x.example", "ab" * 16, []), "key"),
        (("https://x.example", "ab" * 16, ["04"]), "key"),
        (("https://x.example", "ab" * 16, ["zz"]), "key"),
    ],
)
def test_wrong_enrolments(tmp_path, arguments, field):
    with DeviceAgent.open(tmp_path, create=True) as agent:
        with pytest.raises(InvalidParameter) as refusal:
            agent.enrol(*arguments)
        assert refusal.value.field == field
        assert agent.status()["task"] is None


@pytest.mark.parametrize("code", ["", "a code\nof two lines", "c\u00f6de of sixteen signs", "\udcff" * 16])
def test_codes_that_no_header_carries(tmp_path, task, code):
    with DeviceAgent.open(tmp_path, create=True) as agent:
        with pytest.raises(InvalidParameter, match="code"):
            agent.enrol("https://x.example", task.task, [task.point], code=code)
        assert agent.status()["task"] is None


# Manifests that must be refused


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"task": "ff" * 16}, "wrong-task"),
        ({"expires": NOW + 30}, "expired"),
        ({"issued": NOW + 10 * 86_400, "expires": NOW + 12 * 86_400}, "clock-behind"),
        ({"expires": NOW + 400 * 86_400}, "valid-too-long"),
        ({"min_device_version": "0.2"}, "device-too-old"),
        ({"min_device_version": "later"}, "device-too-old"),
        ({"epsilon": "8.5"}, "over-policy"),
        ({"epsilon": "1e999"}, "over-policy"),
        ({"epsilon": "0"}, "over-policy"),
        ({"delta": "0.001"}, "over-policy"),
        ({"records_per_client": 21}, "over-policy"),
        ({"epsilon": "2.0"}, "wrong-parameters"),
        ({"delta": "1e-99999999"}, "wrong-parameters"),
        ({"records_per_client": 2}, "wrong-parameters"),
        ({"method": "best"}, "wrong-parameters"),
    ],
)
def test_manifests_that_are_refused(tmp_path, service, task, changes, reason):
    service.serve(task, task.manifest(**changes))
    with device(tmp_path, service, task) as agent:
        outcome = sync(agent)
        assert (outcome.status, outcome.ok) == (reason, False)
        assert REASONS[reason] in outcome.text
        assert agent.status()["last"]["status"] == reason
        assert nothing_was_sent(service, agent)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"digest": "00" * 32}, "wrong-digest"),
        ({"mechanism": SINK_SETS}, "wrong-parameters"),
        ({"report_bytes": 99}, "wrong-parameters"),
        ({"report_bytes": 1 << 20}, "over-policy"),
        ({"closes": NOW + 30}, "window-closed"),
        ({"opens": NOW + 3600}, "window-closed"),
    ],
)
def test_client_parts_that_are_refused(tmp_path, service, task, changes, reason):
    document = task.document()
    document["client"] |= changes
    service.serve(task, task.sign(document))
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == reason
        assert nothing_was_sent(service, agent)


@pytest.mark.parametrize("phase", ["client", "opt-in", "idle"])
def test_a_round_that_no_message_can_name(tmp_path, service, task, phase):
    payload = canonical_json({**task.document(phase), "round": 1 << 32})  # the service's own encoder refuses it
    service.serve(task, encode_signed(sign_manifest(payload, [task.key])))
    with device(tmp_path, service, task, mode="opt-in" if phase == "opt-in" else "local") as agent:
        outcome = sync(agent)
        assert outcome.status == "forged"
        assert "round" in outcome.text
        assert nothing_was_sent(service, agent)


@pytest.mark.parametrize("key", ["00" * 32, "01" + "00" * 31])
def test_a_key_that_nothing_can_be_sealed_to(tmp_path, service, task, key):
    document = task.document("opt-in")
    document["optin"]["public_key"] = key
    service.manifest = task.sign(document)
    with device(tmp_path, service, task, mode="opt-in") as agent:
        assert sync(agent).status == "bad-request"
        assert nothing_was_sent(service, agent)


def test_no_record_is_asked_of_opt_in_users(tmp_path, service, task):
    service.manifest = task.manifest("opt-in", records_per_optin=0)
    with device(tmp_path, service, task, mode="opt-in") as agent:
        assert sync(agent).status == "bad-request"
        assert nothing_was_sent(service, agent)


@pytest.mark.parametrize("message", [b"", b"{}", b"\xff", b"[" * 60_000, b'{"payload":"{}","signatures":[]}'])
def test_garbage_for_a_manifest(tmp_path, service, task, message):
    service.serve(task, message)
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "forged"
        assert nothing_was_sent(service, agent)


def test_a_manifest_of_a_stranger_or_changed_on_the_way(tmp_path, service, task):
    with device(tmp_path, service, task) as agent:
        service.serve(task, task.sign(task.document(), SigningKey.new()))
        assert sync(agent).status == "forged"
        service.serve(task, task.manifest().replace(b'\\"round\\":1', b'\\"round\\":2'))
        assert sync(agent).status == "forged"
        assert nothing_was_sent(service, agent)


def test_a_huge_manifest_is_not_read(tmp_path, service, task):
    service.manifest = b"x" * (1 << 20)
    with device(tmp_path, service, task) as agent:
        outcome = sync(agent)
        assert outcome.status == "no-answer"
        assert "too-large" in outcome.text


def test_older_manifests_and_rounds_are_refused(tmp_path, service, task):
    old = task.manifest(number=1)
    same = task.document("idle", 2)
    with device(tmp_path, service, task) as agent:
        service.serve(task, task.sign(same))
        assert sync(agent).status == "idle"
        service.serve(task, old)
        assert sync(agent).status == "rolled-back"
        service.serve(task, task.sign({**same, "name": "another"}))
        assert sync(agent).status == "two-faces"
        service.serve(task, task.sign(same))
        assert sync(agent).status == "idle"
        service.serve(task, number=1)
        assert sync(agent).status == "older-round"
        assert nothing_was_sent(service, agent)


def test_a_killed_task_stays_killed_and_drops_what_waits(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        assert agent.sync().status == "waiting"
        service.manifest = task.manifest("idle", killed=True)
        assert sync(agent).status == "killed"
        service.serve(task, number=2)
        assert sync(agent).status == "killed"
        assert agent.status()["killed"]
        assert agent.sent()[0]["state"] == "dropped"
    assert service.reports() == []


def test_a_clock_that_jumps_back_revives_nothing(tmp_path, service, task):
    service.serve(task, issued=NOW, expires=NOW + 7 * 86_400)
    clock = HandClock()
    with device(tmp_path, service, task, clock=clock) as agent:
        sync(agent)
        clock.now = NOW - 400 * 86_400
        assert sync(agent).status == "reported"
        assert agent.status()["clock_behind"]
        service.serve(task, number=2, issued=NOW + 5 * 86_400, expires=NOW + 6 * 86_400)
        assert sync(agent).status == "clock-behind"
        service.manifest = task.manifest("idle", 2, issued=NOW - 401 * 86_400, expires=NOW - 399 * 86_400)
        assert sync(agent).status == "expired"
        clock.now = NOW + 60
        assert not agent.status()["clock_behind"]
    assert len(service.reports()) == 1


def test_a_clock_that_jumps_back_does_not_hold_a_report_for_ever_nor_renew_the_budget(tmp_path, service, task):
    service.serve(task)
    clock = HandClock(NOW + 3 * 86_400)
    policy = replace(POLICY, window_epsilon=1.5)
    with device(tmp_path, service, task, clock=clock, policy=policy) as agent:
        assert agent.sync().status == "waiting"
        clock.now = NOW - 30 * 86_400
        assert agent.sync().status == "reported"
        service.serve(task, number=2)
        assert sync(agent).status == "over-budget"


# Head lists that must be refused


def test_another_file_than_the_named_one(tmp_path, service, task):
    service.serve(task)
    for name in service.artifacts:
        service.artifacts[name] = task.head_list(HeadList({"other": ["https://x.example"]}))
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "wrong-artifact"
        service.artifacts.clear()
        assert sync(agent).status == "no-answer"
        assert nothing_was_sent(service, agent)


def serve_content(service, task, content, **client):
    document = task.document()
    document["client"] |= {"artifact": hashlib.sha256(content).hexdigest(), **client}
    service.artifacts = {document["client"]["artifact"]: content}
    service.manifest = task.sign(document)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 100_000, b"{}", b"[1]", b"NaN"])
def test_garbage_for_a_head_list(tmp_path, service, task, content):
    serve_content(service, task, content)
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "bad-head-list"
        assert nothing_was_sent(service, agent)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 10**400},
        {"delta": 10**400},
        {"query_budget_fraction": 10**400},
        {"records_per_client": "x" * 10_000},
        {"records_per_client": 10**400},
        {"records_per_client": True},
    ],
)
def test_absurd_numbers_in_a_head_list(tmp_path, service, task, changes):
    serve_content(service, task, task.head_list(**changes))
    with device(tmp_path, service, task) as agent:
        outcome = sync(agent)
        assert outcome.status in ("bad-head-list", "wrong-parameters")
        assert len(outcome.text) < 300
        assert nothing_was_sent(service, agent)


@pytest.mark.parametrize("error", [OverflowError, ZeroDivisionError, ValueError])
@pytest.mark.parametrize("name", ["decode_head_list", "make_report"])
def test_numbers_that_nobody_thought_of(tmp_path, service, task, monkeypatch, name, error):
    def fail(*_):
        raise error

    service.serve(task)
    module = "rounds" if name == "make_report" else "manifest_checks"
    monkeypatch.setattr(f"searchblend.device.{module}.{name}", fail)
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "bad-head-list"
        assert nothing_was_sent(service, agent)


def test_an_empty_list(tmp_path, service, task):
    serve_content(service, task, task.head_list(HeadList({})), digest=HeadList({}).digest)
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "empty-list"
        assert nothing_was_sent(service, agent)


def test_a_list_larger_than_the_policy(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task, policy=replace(POLICY, most_queries=1)) as agent:
        assert sync(agent).status == "over-policy"
    with device(tmp_path, service, task, policy=replace(POLICY, most_cells=3)) as agent:
        assert sync(agent).status == "over-policy"
    with device(tmp_path, service, task, policy=replace(POLICY, largest_head_list=10)) as agent:
        assert sync(agent).status == "no-answer"
        assert nothing_was_sent(service, agent)


@pytest.mark.parametrize("design", [None, ReportDesign(10, 1, 2, SINK_SETS), ReportDesign(0, 1, 1, TWO_STAGE)])
def test_a_query_without_urls_among_others_is_reported_by_its_query_alone(tmp_path, service, design):
    """k_q = 1: what a review leaves of a query whose results were removed. There is no other URL to lie with."""
    head = HeadList({"weather": [], "news": ["https://news.example"]})
    task = MadeTask(design=design)
    service.serve(task, head=head)
    for n in range(6):
        with device(tmp_path / str(n), service, task) as agent:
            assert sync(agent).status == "reported"
    for message in service.reports():
        decode_report(message, task.shape(1, head))


@pytest.mark.parametrize(("head", "fraction"), [(HeadList({"weather": [], "news": []}), 0.85), (HEAD, 1.0)])
def test_budget_for_urls_where_there_are_none_and_none_where_there_are(tmp_path, service, task, head, fraction):
    content = task.head_list(head, query_budget_fraction=fraction)
    serve_content(service, task, content, digest=head.digest, report_bytes=task.shape(1, head).size)
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "wrong-parameters"
        assert nothing_was_sent(service, agent)


# Budget


def test_the_window_and_the_lifetime_are_limits(tmp_path, service, task):
    clock = HandClock()
    policy = replace(POLICY, window_epsilon=2.0, lifetime_epsilon=3.0)
    with device(tmp_path, service, task, clock=clock, policy=policy) as agent:
        for number in (1, 2):
            service.serve(task, number=number)
            assert sync(agent).status == "reported"
        service.serve(task, number=3)
        outcome = sync(agent)
        assert outcome.status == "over-budget"
        assert "7 days" in outcome.text
        clock.now += 8 * 86_400
        document = task.document(number=3, issued=clock.now, expires=clock.now + 100)
        document["client"]["closes"] = clock.now + 100
        service.serve(task, task.sign(document))
        agent.record("news", "https://news.example")
        assert sync(agent).status == "reported"
        document = {**document, "round": 4, "sequence": document["sequence"] + 1}
        service.serve(task, task.sign(document))
        assert "life" in sync(agent).text
        assert agent.status()["budget"]["lifetime_epsilon_left"] == 0.0
    assert len(service.reports()) == 3


# Searches


def test_old_and_many_searches_are_forgotten(tmp_path, service, task):
    clock = HandClock()
    with device(tmp_path, service, task, clock=clock, policy=replace(POLICY, most_searches=3)) as agent:
        for n in range(5):
            agent.record(f"query {n}")
        assert [row["query"] for row in agent.export()["searches"]] == ["query 2", "query 3", "query 4"]
        clock.now += 29 * 86_400
        agent.record("fresh")
        assert [row["query"] for row in agent.export()["searches"]] == ["fresh"]


def test_clicks_on_own_suggestions_are_not_kept(tmp_path, service, task):
    with device(tmp_path, service, task) as agent:
        assert agent.record("news", "https://news.example", from_suggestion=True).reason == "from-suggestion"
        assert agent.status()["searches"] == 1


def test_import_of_json_lines(tmp_path, service, task):
    lines = [
        {"query": "News", "url": "https://news.example/"},
        {"query": "ann@example.org"},
        {"query": "maps", "url": None},
        {"query": "intra", "url": "http://wiki/x"},
    ]
    path = tmp_path / "searches.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    with device(tmp_path / "d", service, task) as agent:
        assert agent.import_searches(path) == {"kept": 2, "e-mail": 1, "private-address": 1}
        assert agent.status()["searches"] == 3


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "3: expected a JSON object"),
        (b"[1]", "3: expected an object"),
        (b'{"query": "x", "user": 1}', "3: expected an object"),
        (b'{"query": 1}', "3: query: expected a text"),
        (b'{"query": "x", "url": 1}', "3: url: expected a text"),
        (b'{"query": "\xff"}', "3: expected a JSON object"),
        (b'{"query": "' + b"x" * 20_000 + b'"}', "3: expected at most"),
        (b"[" * 10_000, "3: expected a JSON object"),
    ],
)
def test_a_broken_line_imports_nothing(tmp_path, service, task, line, says):
    path = tmp_path / "searches.jsonl"
    path.write_bytes(b'{"query": "a"}\n{"query": "b"}\n' + line)
    with device(tmp_path / "d", service, task) as agent:
        with pytest.raises(InputError) as refusal:
            agent.import_searches(path)
        assert says in str(refusal.value)
        assert agent.status()["searches"] == 1
        with pytest.raises(InputError, match="cannot be read"):
            agent.import_searches(tmp_path / "missing.jsonl")


# The device's own file


def test_the_file_is_its_owners_alone(tmp_path, service, task):
    with device(tmp_path / "d", service, task):
        assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "d" / FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\0" * 500])
def test_a_file_that_is_something_else(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StateError):
        DeviceAgent.open(tmp_path)


def test_no_device_here(tmp_path):
    with pytest.raises(StateError, match="no device here"):
        DeviceAgent.open(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot be opened"):
        DeviceAgent.open(tmp_path / "file" / "x", create=True)


def test_storage_full_sends_nothing_and_says_so(tmp_path, service):
    """No page may be added: the turn cannot be committed, so nothing may leave."""
    head = HeadList((f"query {n}", ["https://x.example"]) for n in range(4000))
    task = MadeTask(design=ReportDesign(0, 1, 3000, PLAIN_SETS))
    service.serve(task, head=head)
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status in ("reported", "unanswered")
        service.received.clear()
        service.serve(task, head=head, number=2)
        state = agent._state
        state.scrub()  # no free page is left either
        (pages,) = state._run("PRAGMA page_count")[0]
        state._run(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageFull, match="no room"):
            sync(agent)
        with pytest.raises(StorageFull, match="no room"):
            for n in range(10_000):
                agent.record(f"filling {n} " + "x" * 400, "https://weather.example")
        assert service.received == []
        assert [debit["round"] for debit in agent.export()["ledger"]] == [1]
        state._run("PRAGMA max_page_count = 1000000")
        assert sync(agent).status == "reported"
        assert [debit["round"] for debit in agent.export()["ledger"]] == [1, 2]
    assert len(service.reports()) == 1


def test_storage_full_after_the_send_sends_the_same_bytes_again(tmp_path, service, task, monkeypatch):
    service.serve(task)
    with device(tmp_path, service, task) as agent:

        def full(*_):
            raise StorageFull("no room")

        with monkeypatch.context() as patch:
            patch.setattr(agent._state, "note_answer", full)
            with pytest.raises(StorageFull):
                sync(agent)
        assert sync(agent).status == "reported"
    assert len(service.reports()) == 2
    assert len(set(service.reports())) == 1


def _race(folder, address, point, barrier, results):
    with DeviceAgent.open(
        folder, clock=HandClock(), on_point=lambda p: p == "manifest: remembered" and barrier.wait(20)
    ) as agent:
        results.put(agent.sync(immediately=True).status)


def test_two_processes_race_and_one_report_is_made(tmp_path, service, task):
    """Both have read the manifest and the (empty) state before either debits."""
    service.serve(task)
    with device(tmp_path, service, task):
        pass
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    both = [context.Process(target=_race, args=(tmp_path, service.address, task.point, barrier, results)) for _ in "ab"]
    for process in both:
        process.start()
    assert [results.get(timeout=60) for _ in both] == ["reported", "reported"]
    for process in both:
        process.join(30)
    with device(tmp_path, service, task) as agent:
        assert len(agent.export()["ledger"]) == 1
    assert len(set(service.reports())) == 1


# Services that behave badly


def test_a_service_that_drips_is_given_up(tmp_path, service, task):
    service.serve(task)
    service.answers = ["slow"]
    with device(tmp_path, service, task, transport=Transport(service.address, seconds=0.4)) as agent:
        outcome = sync(agent)
        assert outcome.status == "unanswered"
        assert "slow" in outcome.text
        assert sync(agent).status == "reported"
    assert len(set(service.reports())) == 1


def test_a_huge_answer_is_given_up(tmp_path, service, task):
    service.serve(task)
    service.answers = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n30d40\r\n" + b"x" * 200_000,
    ]
    with device(tmp_path, service, task) as agent:
        for _ in range(2):
            assert "too-large" in sync(agent).text
        assert sync(agent).status == "reported"
    assert len(set(service.reports())) == 1


def test_nobody_there(tmp_path, task):
    with RecordingService() as service:
        pass
    with device(tmp_path, service, task) as agent:
        outcome = sync(agent)
        assert (outcome.status, outcome.ok) == ("no-answer", False)
        assert "unreachable" in outcome.text


def test_what_a_service_says_is_not_repeated(tmp_path, service, task):
    service.serve(task)
    service.answers = [(400, "malformed")]
    service.manifest, good = problem("x") + b"<script>", service.manifest
    with device(tmp_path, service, task) as agent:
        assert "script" not in sync(agent).text
        service.manifest = good
        assert sync(agent).text.endswith("malformed")
