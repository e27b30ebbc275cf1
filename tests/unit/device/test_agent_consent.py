"""What a person allows, and takes back."""

from __future__ import annotations

import hashlib

import pytest

from device_parts import CODE, HandClock, MadeTask, RecordingService, device, nothing_was_sent, sync
from searchblend.core.errors import InvalidParameter, UsageError
from searchblend.device.agent import DeviceAgent
from searchblend.device.consent_texts import text_of
from searchblend.device.transport import Transport
from searchblend.wire.consent import optin_consent, task_consent

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


def test_consents_are_kept_word_for_word_with_their_number(tmp_path, service, task):
    words = task_consent(2, "My own words.")
    assert words == f"{optin_consent(2)}\nMy own words."
    with device(tmp_path, service, task) as agent:
        for text, records in (("My own words.", 1), (words, 3)):
            with pytest.raises(InvalidParameter, match="own text for a round"):
                agent.consent("opt-in", text, records=records)
        agent.consent("opt-in", words, records=2)
        agent.consent("off")
        found = agent.export().consents
    assert [(row.mode, row.text, row.records) for row in found] == [
        ("local", text_of("local"), 1),
        ("opt-in", words, 2),
        ("off", None, 1),
    ]
    assert found[1].sha256 == hashlib.sha256(words.encode()).hexdigest()


def test_a_report_that_waits_is_dropped_with_the_consent_and_never_made_again(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        assert agent.sync().status == "waiting"
        agent.consent("off")
        agent.consent("local", text_of("local"))
        assert sync(agent).status == "dropped"
        assert agent.sent()[0].tries == 0
        assert len(agent.export().ledger) == 1
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
        assert agent.export().searches == []
    assert b"weather" not in contents(tmp_path)


def test_old_searches_go_with_another_consent(tmp_path, service, task):
    clock = HandClock()
    with device(tmp_path, service, task, clock=clock) as agent:
        clock.now += 29 * 86_400
        agent.consent("opt-in", text_of("opt-in"))
        assert agent.status().searches == 0


def test_off_erases_the_searches_and_keeps_what_was_sent(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        sync(agent)
        agent.record("a very rare thing to look for", "https://rare.example/x")
        agent.consent("off")
        assert agent.export().searches == []
        assert agent.sent()[0].true == [["weather", "https://weather.example"]]
        assert b"rare" not in contents(tmp_path)
        assert agent.sync().status == "off"
    assert len(service.reports()) == 1


def test_off_forgets_a_report_that_never_left(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        assert agent.sync().status == "waiting"
        agent.consent("off")
        (shown,) = agent.sent()
        assert (shown.state, shown.true, shown.said, shown.bytes) == ("dropped", None, None, None)
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
        assert agent.status().searches == 0


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
        outcome = (
            agent.leave() if step == "leave" else agent.consent(step, text_of("local") if step == "local" else None)
        )
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
        assert agent.status().mode == "off"
        assert agent.export().searches == []
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
        assert (agent.status().mode, agent.status().task) == ("off", task.task)
        assert withdraw().status == "withdrawn"
        assert agent.sent()[0].state == "withdrawn"
        assert withdraw() is None
        assert (agent.status().task is None) == (step == "leave")


def test_who_leaves_a_dead_service_is_free_when_the_window_closes(tmp_path, service, task):
    service.manifest = task.manifest("opt-in")
    clock = HandClock()
    with device(tmp_path, service, task, mode="opt-in", clock=clock) as agent:
        sync(agent)
        service.answers = [500]
        assert not agent.leave().ok
        clock.now += 86_400
        assert agent.leave() is None
        assert agent.status().task is None


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
        later.manifest, later.log.key = other_task.manifest("opt-in"), other_task.key
        with DeviceAgent.open(tmp_path, clock=HandClock()) as other:
            changing = agent if in_this_process else other
            changing.leave()
            changing.enrol(later.address, other_task.task, [other_task.point], code=CODE)
        agent.consent("opt-in", text_of("opt-in"))
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
        assert agent.status().last is None
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
        assert agent.status().searches == 0
        assert agent.sent()[0].true is None
        assert sync(agent).status == "reported"
        assert len(agent.export().ledger) == 1
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"rare" not in kept
    assert b"weather" not in kept
    assert len(service.reports()) == 1


def test_who_leaves_and_comes_back_does_not_report_twice(tmp_path, service, task):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        sync(agent)
        assert agent.leave() is None
        assert agent.status().task is None
        with pytest.raises(UsageError, match="enrol first"):
            agent.sync()
        agent.enrol(service.address, task.task, [task.point])
        agent.consent("local", text_of("local"))
        agent.record("news", "https://news.example")
        assert sync(agent).status == "reported"
        assert agent.status().budget.lifetime_epsilon == 1.0
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
        assert (outcome.ok, agent.status().task) == (False, None)
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
        assert agent.status().task is None


@pytest.mark.parametrize("code", ["", "a code\nof two lines", "c\u00f6de of sixteen signs", "\udcff" * 16])
def test_codes_that_no_header_carries(tmp_path, task, code):
    with DeviceAgent.open(tmp_path, create=True) as agent:
        with pytest.raises(InvalidParameter, match="code"):
            agent.enrol("https://x.example", task.task, [task.point], code=code)
        assert agent.status().task is None
