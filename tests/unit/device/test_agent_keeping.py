"""What a device keeps, its own file, and services that behave badly."""

from __future__ import annotations

import json
import multiprocessing
import stat
from dataclasses import replace

import pytest

from device_parts import HandClock, MadeTask, RecordingService, device, problem, sync
from searchblend.blender.best.subset_report import PLAIN_SETS, ReportDesign
from searchblend.core.errors import InputError
from searchblend.core.records import HeadList
from searchblend.device.agent import DeviceAgent
from searchblend.device.consent_texts import LOCAL, OPT_IN
from searchblend.device.device_errors import StateError, StorageFull
from searchblend.device.policy import POLICY
from searchblend.device.state import FILE, DeviceState
from searchblend.device.transport import Transport

# Searches


def test_old_and_many_searches_are_forgotten(tmp_path, service, task):
    clock = HandClock()
    with device(tmp_path, service, task, clock=clock, policy=replace(POLICY, most_searches=3)) as agent:
        for n in range(5):
            agent.record(f"query {n}")
        assert [row.query for row in agent.export().searches] == ["query 2", "query 3", "query 4"]
        clock.now += 29 * 86_400
        agent.record("fresh")
        assert [row.query for row in agent.export().searches] == ["fresh"]


def test_every_start_erases_searches_of_more_than_28_days(tmp_path, service, task):
    clock = HandClock()
    with device(tmp_path, service, task, clock=clock) as agent:
        agent.record("a search of long ago", "https://long-ago.example/page")
    clock.now += 28 * 86_400
    with DeviceAgent.open(tmp_path, clock=clock) as agent:
        assert agent.status().searches == 2
    clock.now += 1
    with DeviceAgent.open(tmp_path, clock=clock) as agent:
        assert agent.status().searches == 0
        assert agent.export().searches == []
        kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        assert b"long ago" not in kept
        assert b"long-ago" not in kept


@pytest.mark.parametrize(("mode", "phase", "part"), [(LOCAL, "client", "client"), (OPT_IN, "opt-in", "opt-in")])
@pytest.mark.parametrize("how", ["start", "sync", "record", "consent off"])
def test_the_search_of_a_report_is_erased_at_the_same_age(tmp_path, service, task, mode, phase, part, how):
    clock = HandClock()
    service.serve(task, phase=phase)
    with device(tmp_path, service, task, mode=mode, clock=clock) as agent:
        assert sync(agent).ok
        (sent,) = agent.sent()
        assert sent.group == part
        assert sent.true == [["weather", "https://weather.example"]]
        clock.now += 28 * 86_400 + 1
        if how == "sync":
            sync(agent)
        elif how == "record":
            agent.record("fresh")
        elif how == "consent off":
            agent.consent("off")
        else:
            agent.close()
            agent = DeviceAgent.open(tmp_path, clock=clock)
        (old,) = agent.sent()
        said = None if mode == OPT_IN else sent.said
        assert old == replace(sent, true=None, said=said)  # bytes, cost and answer stay
        agent.close()


def test_a_device_without_room_starts_and_erases_later(tmp_path, service, task, monkeypatch):
    clock = HandClock()
    with device(tmp_path, service, task, clock=clock):
        pass
    clock.now += 29 * 86_400

    def full(*_, **__):
        raise StorageFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr(DeviceState, "forget_searches", full)
        with DeviceAgent.open(tmp_path, clock=clock) as agent:
            assert agent.status().searches == 1
    with DeviceAgent.open(tmp_path, clock=clock) as agent:
        assert agent.status().searches == 0


def test_clicks_on_own_suggestions_are_not_kept(tmp_path, service, task):
    with device(tmp_path, service, task) as agent:
        assert agent.record("news", "https://news.example", from_suggestion=True).reason == "from-suggestion"
        assert agent.status().searches == 1


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
        assert agent.status().searches == 3


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "3: expected a JSON object"),
        (b"[1]", "3: expected an object"),
        (b'{"query": "x", "user": 1}', "3: expected an object"),
        (b'{"query": 1}', "3: query: expected a string"),
        (b'{"query": "x", "url": 1}', "3: url: expected a string"),
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
        assert agent.status().searches == 1
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
        (pages,) = state.execute("PRAGMA page_count")[0]
        state.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageFull, match="no room"):
            sync(agent)
        with pytest.raises(StorageFull, match="no room"):
            for n in range(10_000):
                agent.record(f"filling {n} " + "x" * 400, "https://weather.example")
        assert service.received == []
        assert [debit.round for debit in agent.export().ledger] == [1]
        state.execute("PRAGMA max_page_count = 1000000")
        assert sync(agent).status == "reported"
        assert [debit.round for debit in agent.export().ledger] == [1, 2]
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
        folder, clock=HandClock(), on_point=lambda p: p == "manifest: remembered" and barrier.wait(240)
    ) as agent:
        results.put(agent.sync(immediately=True).status)


@pytest.mark.thorough
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
    assert [results.get(timeout=240) for _ in both] == ["reported", "reported"]
    for process in both:
        process.join(240)
    with device(tmp_path, service, task) as agent:
        assert len(agent.export().ledger) == 1
    assert len(set(service.reports())) == 1


# Services that behave badly


@pytest.mark.thorough
def test_a_service_that_drips_is_given_up(tmp_path, service, task):
    service.serve(task)
    service.answers = ["slow"]
    with device(tmp_path, service, task, transport=Transport(service.address, seconds=5)) as agent:
        outcome = sync(agent)
        assert outcome.status == "unanswered"
        assert "slow" in outcome.text
    with device(tmp_path, service, task) as agent:
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


def test_a_server_that_is_not_there(tmp_path, task):
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
