"""Manifests and head lists that a device refuses, and the limits of its budget."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from device_parts import FILLERS, HEAD, NOW, HandClock, MadeTask, device, nothing_was_sent, sync
from searchblend.blender.best.subset_report import SINK_SETS, TWO_STAGE, ReportDesign
from searchblend.core.records import HeadList
from searchblend.device.device_errors import REASONS
from searchblend.device.policy import POLICY
from searchblend.wire.canonical import canonical_json
from searchblend.wire.consent import task_consent
from searchblend.wire.manifest import encode_signed
from searchblend.wire.report import decode_report
from searchblend.wire.signing import SigningKey, sign_manifest

# Manifests that must be refused


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"task": "ff" * 16}, "wrong-task"),
        ({"expires": NOW + 30}, "expired"),
        ({"issued": NOW + 10 * 86_400, "expires": NOW + 12 * 86_400}, "clock-behind"),
        ({"expires": NOW + 400 * 86_400}, "valid-too-long"),
        ({"min_device_version": "0.3"}, "device-too-old"),
        ({"min_device_version": "later"}, "device-too-old"),
        ({"epsilon": "4.5"}, "over-policy"),
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
        assert agent.status().last.status == reason
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
    with device(tmp_path, service, task, mode="opt-in") as agent:
        task.consent = task_consent(0, "")
        service.manifest = task.manifest("opt-in", records_per_optin=0)
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
        assert agent.status().killed
        assert agent.sent()[0].state == "dropped"
    assert service.reports() == []


def test_a_clock_that_jumps_back_revives_nothing(tmp_path, service, task):
    service.serve(task, issued=NOW, expires=NOW + 7 * 86_400)
    clock = HandClock()
    with device(tmp_path, service, task, clock=clock) as agent:
        sync(agent)
        clock.now = NOW - 400 * 86_400
        assert sync(agent).status == "reported"
        assert agent.status().clock_behind
        service.serve(task, number=2, issued=NOW + 5 * 86_400, expires=NOW + 6 * 86_400)
        assert sync(agent).status == "clock-behind"
        service.manifest = task.manifest("idle", 2, issued=NOW - 401 * 86_400, expires=NOW - 399 * 86_400)
        assert sync(agent).status == "expired"
        clock.now = NOW + 60
        assert not agent.status().clock_behind
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


def test_a_service_that_signs_ahead_of_the_clock_does_not_end_the_week(tmp_path, service, task):
    """Each manifest is within the allowed skew of the one before; nine of them are more than a week."""
    policy = replace(POLICY, window_epsilon=1.5)
    with device(tmp_path, service, task, policy=policy) as agent:
        service.serve(task)
        assert sync(agent).status == "reported"
        for day in range(1, 10):
            signed = NOW + day * 80_000
            document = task.document(number=2, issued=signed, expires=signed + 86_400)
            document["client"]["closes"] = signed + 86_400
            service.serve(task, task.sign(document), number=2)
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
def test_numbers_that_were_not_thought_of(tmp_path, service, task, monkeypatch, name, error):
    def fail(*_):
        raise error

    service.serve(task)
    module = "rounds" if name == "make_report" else "policy"
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
    head = HeadList([["weather", []], ["news", ["https://news.example"]], *FILLERS])
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


# Questions about one person


def test_a_list_that_is_too_short_to_hide_in(tmp_path, service, task):
    service.serve(task, head=HeadList(HEAD.as_json()[: POLICY.fewest_queries - 1]))
    with device(tmp_path, service, task) as agent:
        outcome = sync(agent)
        assert (outcome.status, outcome.ok) == ("short-list", False)
        assert nothing_was_sent(service, agent)


def test_queries_that_no_curator_has_drawn(tmp_path, service, task):
    """A publisher with its signing key alone: a list of its own, one query more, the word of another round."""
    targeted = HeadList([*HEAD.as_json(), ["one person's own", []]])
    word = json.loads(task.head_list())["optin_result"]
    longer = {**word, "salts": [*word["salts"], ["00" * 16]]}
    with device(tmp_path, service, task) as agent:
        for head, changes in (
            (HEAD, {"optin_result": None}),
            (targeted, {"optin_result": word}),
            (targeted, {"optin_result": longer}),
            (HEAD, {"optin_result": json.loads(task.head_list(number=2))["optin_result"]}),
        ):
            content = task.head_list(head, **changes)
            serve_content(service, task, content, digest=head.digest, report_bytes=task.shape(1, head).size)
            assert sync(agent).status == "not-drawn"
        assert nothing_was_sent(service, agent)


def test_a_device_that_pinned_the_curator_answers_about_no_other_s_list(tmp_path, service, task):
    service.serve(task)
    stranger = SigningKey.new().public_point.hex()
    for pinned, status in ((stranger, "not-drawn"), (task.curator.public_point.hex(), "reported")):
        with device(tmp_path / status, service, task) as agent:
            agent.enrol(service.address, task.task, [task.point], curators=[pinned])
            assert sync(agent).status == status


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
        service.serve(task, task.sign(document), number=3)
        agent.record("news", "https://news.example")
        assert sync(agent).status == "reported"
        document = task.document(number=4, issued=clock.now, expires=clock.now + 100)
        document["client"]["closes"] = clock.now + 100
        service.serve(task, task.sign(document), number=4)
        assert "life" in sync(agent).text
        assert agent.status().budget.lifetime_epsilon_left == 0.0
    assert len(service.reports()) == 3
